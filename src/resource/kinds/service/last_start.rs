//! When the files that a service depends on were written, to be compared with its last start.
//!
//! A file may have been changed by a run that did not contain the service: the packages of another layer, another
//! state. Such a run leaves no marker ([`Owed`](crate::resource::contract::owed::Owed)), so only the times on the host
//! show that a restart is pending.

use crate::resource::contract::footprint::Footprint;
use crate::resource::contract::probe::{Probe, UnitState};
use crate::resource::contract::resource_id::ResourceId;
use crate::resource::kinds::archive;

/// The moment that is compared with.
#[derive(Debug, Clone, Copy)]
pub enum Moment {
    /// Its last start.
    Start,
    /// Its last start or reload.
    Reload,
}

impl Moment {
    /// When it was, in seconds since 1970; `None` for a service that never started.
    pub fn of(self, unit: &UnitState) -> Option<i64> {
        match self {
            Self::Start => unit.started,
            Self::Reload => unit.changed,
        }
    }
}

/// Asks when the resources last changed, by the time of writing of their files. `None` where none of them has a file.
pub fn probe(ids: &[ResourceId]) -> Option<Probe> {
    let (mut files, mut packages) = (Vec::new(), Vec::new());
    for id in ids {
        let name = id.name.as_str();
        match id.kind.footprint() {
            Footprint::File | Footprint::Artefact => files.push(name.to_owned()),
            Footprint::Archive => files.push(format!("{name}/{}", archive::MARKER)),
            Footprint::UnitFile => files.push(format!("/etc/systemd/system/{name}")),
            Footprint::Package => packages.push(name.to_owned()),
            Footprint::None | Footprint::Unknown | Footprint::Link | Footprint::Directory => {}
        }
    }
    (!files.is_empty() || !packages.is_empty()).then_some(Probe::Written { files, packages })
}
