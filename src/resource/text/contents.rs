//! A regular file with exactly this content, which several kinds manage.

use sha2::{Digest, Sha256};

use crate::resource::contract::change::{Change, Difference};
use crate::resource::contract::pending::Pending;
use crate::resource::contract::probe::{Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, Step};

/// Larger contents are neither returned by a probe nor shown.
const LARGEST_SHOWN: u64 = 1 << 20;

/// The desired file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    pub path: String,
    pub text: String,
    pub access: Access,
    /// Neither shown in a difference nor returned by a probe.
    pub sensitive: bool,
}

impl Contents {
    /// A configuration file: owned by root, readable by all.
    pub fn public(path: String, text: String) -> Self {
        let access = Access::root(0o644);
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
                change.access(None, &self.access);
                true
            }
            PathState::Symlink { target } => {
                change.field("type", Some(&format!("link to {target}")), Some("file"));
                change.differences.push(self.text_difference(0, Some(b"")));
                change.access(None, &self.access);
                true
            }
            PathState::File { mode, owner, group, sha256, size, content } => {
                let differs = *sha256 != self.sha256();
                if differs {
                    change.differences.push(self.text_difference(*size, content.as_deref()));
                }
                let access = Access { owner: owner.clone(), group: group.clone(), mode: *mode };
                change.access(Some(&access), &self.access);
                differs
            }
            other => return Err(Refusal::occupied(&self.path, other, "a file")),
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

/// Removes a file or a link; anything else is refused.
pub fn removal(path: &str, observed: &Observed, pending: &Pending) -> Result<Change, Refusal> {
    let mut change = Change::default();
    match observed.path(Probe::path(path), pending)? {
        PathState::Absent => {}
        PathState::File { .. } | PathState::Symlink { .. } => {
            change.field("path", Some(path), None);
            change.steps.push(Step::Remove { path: path.to_owned(), recursive: false });
        }
        other => return Err(Refusal::occupied(path, other, "a file")),
    }
    Ok(change)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_never_requests_sensitive_content() {
        let open = Contents::public("/a".to_owned(), "text".to_owned());
        assert!(matches!(open.probe(), Probe::Path { unless_sha256: Some(_), .. }));
        let secret = Contents { sensitive: true, ..open };
        assert!(matches!(secret.probe(), Probe::Path { unless_sha256: None, .. }));
    }
}
