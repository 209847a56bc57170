//! Whether what a service was to be restarted for is newer than the service's last start.
//!
//! A run may be killed between the change of a file and the restart that it calls for. The next run finds
//! the file right, so only the times on the host still tell that the restart is owed.

use crate::resource::contract::probe::Probe;
use crate::resource::fields::shell;
use crate::resource::kinds::archive;

/// Which moment of a service counts.
#[derive(Debug, Clone, Copy)]
pub(in crate::resource) enum Moment {
    /// Its last start.
    Start,
    /// Its last start or reload.
    Reload,
}

/// A guard that succeeds when a file behind one of the resources was written after the moment. `None` when
/// no file tells of any of them.
///
/// A time in the future says that the clock was set back since, and counts for nothing: else the restart
/// would be owed for ever. A service that never started owes nothing either.
pub(in crate::resource) fn owed(unit: &str, moment: Moment, ids: &[String]) -> Option<Probe> {
    let files: Vec<String> = ids.iter().filter_map(|id| witness(id)).collect();
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
        unit = shell::word(unit),
        files = files.join(" "),
    );
    Some(Probe::Guard { script })
}

/// The file, as a word or pattern of the shell, whose time of writing is when the resource last changed.
fn witness(id: &str) -> Option<String> {
    let (kind, name) = id.split_once(':')?;
    Some(match kind {
        "file" | "template" | "certificate" | "binary" | "kubeconfig" => shell::word(name),
        "archive" => shell::word(&format!("{name}/{}", archive::MARKER)),
        "unit" => shell::word(&format!("/etc/systemd/system/{name}")),
        // dpkg writes the list when it unpacks; with a foreign architecture its name has a suffix.
        "package" => {
            let list = shell::word(&format!("/var/lib/dpkg/info/{name}"));
            format!("{list}.list {list}:*.list")
        }
        _ => return None,
    })
}
