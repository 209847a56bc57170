//! A regular file with exactly this text: what several kinds come down to.

use sha2::{Digest, Sha256};

use crate::resource::contract::change::{Change, Difference};
use crate::resource::contract::pending::Pending;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, Step};

/// Larger contents are neither sent back by a probe nor shown.
const LARGEST_SHOWN: u64 = 1 << 20;

/// The file as it should be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::resource) struct Contents {
    pub path: String,
    pub text: String,
    pub access: Access,
    /// Neither shown in a difference nor sent back by the host.
    pub sensitive: bool,
}

impl Contents {
    /// A file of the system's configuration: root's, readable by all.
    pub fn public(path: String, text: String) -> Self {
        let access = Access { owner: "root".to_owned(), group: "root".to_owned(), mode: 0o644 };
        Self { path, text, access, sensitive: false }
    }

    pub fn probe(&self) -> Probe {
        let unless_sha256 = (!self.sensitive).then(|| self.sha256());
        Probe::Path { path: self.path.clone(), unless_sha256 }
    }

    /// A symbolic link is replaced, not followed.
    pub fn compare(&self, observed: &Observed, pending: &Pending) -> Result<Change, Refusal> {
        let mut change = Change::default();
        let write = match observed.path(self.probe(), pending)? {
            PathState::Absent => {
                change.differences.push(self.text_difference(0, Some(b"")));
                access_differences(None, &self.access, &mut change);
                true
            }
            PathState::Symlink { target } => {
                change.field("sort", Some(&format!("link to {target}")), Some("file"));
                change.differences.push(self.text_difference(0, Some(b"")));
                access_differences(None, &self.access, &mut change);
                true
            }
            PathState::File { mode, owner, group, sha256, size, content } => {
                let differs = *sha256 != self.sha256();
                if differs {
                    change.differences.push(self.text_difference(*size, content.as_deref()));
                }
                let access = Access { owner: owner.clone(), group: group.clone(), mode: *mode };
                access_differences(Some(&access), &self.access, &mut change);
                differs
            }
            other => return Err(occupied(&self.path, other, "a file")),
        };
        if write {
            change.steps.push(self.write());
        } else if !change.differences.is_empty() {
            change.steps.push(Step::SetAccess { path: self.path.clone(), access: self.access.clone() });
        }
        Ok(change)
    }

    fn write(&self) -> Step {
        Step::WriteFile {
            path: self.path.clone(),
            content: self.text.clone().into_bytes(),
            access: self.access.clone(),
            sensitive: self.sensitive,
        }
    }

    fn sha256(&self) -> String {
        hex::encode(Sha256::digest(&self.text))
    }

    fn text_difference(&self, size: u64, before: Option<&[u8]>) -> Difference {
        let hidden = |why: String| Difference::Hidden { what: format!("content ({why})") };
        let larger = size.max(self.text.len() as u64);
        if self.sensitive {
            return hidden("sensitive".to_owned());
        }
        if larger > LARGEST_SHOWN {
            return hidden(format!("too large to show, {} KiB", larger.div_ceil(1024)));
        }
        match before.map(std::str::from_utf8) {
            Some(Ok(before)) if !before.contains('\0') => Difference::Text {
                path: self.path.clone(),
                before: before.to_owned(),
                after: self.text.clone(),
            },
            _ => hidden(format!("binary, {} KiB", size.div_ceil(1024))),
        }
    }
}

/// What is asked before a file or link is removed.
pub(in crate::resource) fn removal_probe(path: &str) -> Probe {
    Probe::Path { path: path.to_owned(), unless_sha256: None }
}

/// Removes a file or a link; what is there instead of one is left alone.
pub(in crate::resource) fn removal(
    path: &str,
    observed: &Observed,
    pending: &Pending,
) -> Result<Change, Refusal> {
    let mut change = Change::default();
    match observed.path(removal_probe(path), pending)? {
        PathState::Absent => {}
        PathState::File { .. } | PathState::Symlink { .. } => {
            change.field("path", Some(path), None);
            change.steps.push(Step::Remove { path: path.to_owned(), recursive: false });
        }
        other => return Err(occupied(path, other, "a file")),
    }
    Ok(change)
}

/// What differs between two accesses; `None` where there was nothing.
pub(in crate::resource) fn access_differences(before: Option<&Access>, after: &Access, change: &mut Change) {
    let values = |access: &Access| {
        [
            ("mode", format!("{:04o}", access.mode)),
            ("owner", access.owner.clone()),
            ("group", access.group.clone()),
        ]
    };
    let before = before.map(values);
    for (index, (name, after)) in values(after).iter().enumerate() {
        let before = before.as_ref().map(|values| values[index].1.as_str());
        if before != Some(after) {
            change.field(name, before, Some(after));
        }
    }
}

pub(in crate::resource) fn occupied(path: &str, state: &PathState, wanted: &'static str) -> Refusal {
    let found = match state {
        PathState::Absent => "absent",
        PathState::File { .. } => "a regular file",
        PathState::Directory { .. } => "a directory",
        PathState::Symlink { .. } => "a symbolic link",
        PathState::Other => "a device, socket or pipe",
    };
    Refusal::Occupied { path: path.to_owned(), found, wanted }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_never_asked_to_send_sensitive_content_back() {
        let open = Contents::public("/a".to_owned(), "text".to_owned());
        assert!(matches!(open.probe(), Probe::Path { unless_sha256: Some(_), .. }));
        let secret = Contents { sensitive: true, ..open };
        assert!(matches!(secret.probe(), Probe::Path { unless_sha256: None, .. }));
    }
}
