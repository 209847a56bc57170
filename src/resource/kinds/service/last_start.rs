//! Whether the files that a service depends on are newer than its last start.
//!
//! A file may have been changed by a run that did not contain the service: the packages of another layer, another
//! state. Such a run leaves no marker ([`Owed`](crate::resource::contract::owed::Owed)), so only the times on the host
//! show that a restart is pending.

use crate::model::shell_word::quote;
use crate::resource::contract::footprint::Footprint;
use crate::resource::contract::probe::Probe;
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

/// A guard that succeeds where a file of one of the resources was written after the moment. `None` where none of them
/// has a file.
///
/// A time in the future, which results from a clock that was set back, is ignored: else every run would restart the
/// service. So is a service that never started.
pub fn owed(unit: &str, moment: Moment, ids: &[ResourceId]) -> Option<Probe> {
    let files: Vec<String> = ids.iter().filter_map(witness).collect();
    if files.is_empty() {
        return None;
    }
    let property = match moment {
        Moment::Start => "ActiveEnterTimestamp",
        Moment::Reload => "StateChangeTimestamp",
    };
    let script = format!(
        "since=$(TZ=UTC LC_ALL=C systemctl show --value --property={property} -- {unit}) && [ -n \"$since\" ] || \
         exit 1; since=$(date -d \"$since\" +%s) && now=$(date +%s) || exit 1; \
         for t in $(stat -c %Y -- {files} 2>/dev/null); do \
         [ \"$t\" -gt \"$since\" ] && [ \"$t\" -le \"$now\" ] && exit 0; \
         done; exit 1",
        unit = quote(unit),
        files = files.join(" "),
    );
    Some(Probe::Guard { script })
}

/// The file, as a shell word or pattern, whose time of writing is when the resource last changed.
fn witness(id: &ResourceId) -> Option<String> {
    let name = id.name.as_str();
    match id.kind.footprint() {
        Footprint::File | Footprint::Artefact => Some(quote(name)),
        Footprint::Archive => Some(quote(&format!("{name}/{}", archive::MARKER))),
        Footprint::UnitFile => Some(quote(&format!("/etc/systemd/system/{name}"))),
        // dpkg writes the list when it unpacks; the name has a suffix for a foreign architecture.
        Footprint::Package => {
            let list = quote(&format!("/var/lib/dpkg/info/{name}"));
            Some(format!("{list}.list {list}:*.list"))
        }
        Footprint::None | Footprint::Unknown | Footprint::Link | Footprint::Directory => None,
    }
}
