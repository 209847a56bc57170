//! `authorized_key`: a public key that authorizes SSH logins of a user, a line of `~/.ssh/authorized_keys` (sshd(8)).
//!
//! A key is identified by its type and base64; options and comment are attributes. Root reads no key file through a
//! link, and writes none: the file is written with the permissions of the user, so that links in a home cannot
//! redirect a write of root.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;

use crate::resource::contract::change::{Change, Difference, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::pending::keys_path;
use crate::resource::contract::probe::{KeysState, Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::Step;
use crate::resource::fields::account_name;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::text::lines::{Edit, Lines};

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required("user", FieldType::String, "The user that may log in with the key."),
    FieldSpec::required(
        "key",
        FieldType::String,
        "A line of authorized_keys: options if any, type, base64, comment. Without options, those that the \
                key has on the host stay.",
    ),
];

/// Key types of sshd(8).
const TYPES: [&str; 7] = [
    "ssh-ed25519",
    "ssh-rsa",
    "ecdsa-sha2-nistp256",
    "ecdsa-sha2-nistp384",
    "ecdsa-sha2-nistp521",
    "sk-ssh-ed25519@openssh.com",
    "sk-ecdsa-sha2-nistp256@openssh.com",
];

/// A key of a user.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuthorizedKey {
    user: String,
    line: String,
    ensure: Ensure,
    sensitive: bool,
}

impl AuthorizedKey {
    pub fn parse(fields: &FieldValues) -> Result<Self, FieldError> {
        let user = fields.need("user")?;
        account_name::check(fields, "user", [&user])?;
        let line = fields.need_line("key")?.trim().to_owned();
        if !KeyLine::of(&line).is_some_and(|key| key.is_whole()) {
            let reason = "must be a public key in OpenSSH format: ssh-ed25519 AAAA… comment";
            return Err(fields.invalid("key", reason));
        }
        Ok(Self { user, line, ensure: fields.ensure, sensitive: fields.sensitive })
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![self.probe()]
    }

    fn probe(&self) -> Probe {
        Probe::AuthorizedKeys { user: self.user.clone() }
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let pending = context.pending;
        let state = observed.keys(self.probe())?.filter(|_| !pending.drops(Kind::User, &self.user));
        let mut change = Change::default();
        let found = match (state, self.ensure) {
            (None, Ensure::Absent) => return Ok(change.into_verdict("the user does not exist")),
            // The home is created with the user.
            (None, Ensure::Present) if pending.adds(Kind::User, &self.user) => None,
            (None, Ensure::Present) => return Err(Refusal::NoUser { user: self.user.clone() }),
            (Some(state), Ensure::Present) => self.found(state, &mut change, context)?,
            (Some(state), Ensure::Absent) => self.found(state, &mut Change::default(), context)?,
        };
        let found = match pending.at(&keys_path(&self.user)) {
            Some(PathState::File { content: Some(content), sha256, .. }) => {
                change.differences.clear();
                Some((content.as_slice(), sha256.as_str()))
            }
            _ => found,
        };
        let before = match found.map(|(content, _)| std::str::from_utf8(content)) {
            None => "",
            Some(Ok(text)) => text,
            Some(Err(_)) => return Err(Refusal::NotText { path: keys_path(&self.user) }),
        };
        let after = self.edited(before);
        if before != after {
            change.differences.push(match self.sensitive {
                true => Difference::Hidden { what: "content (sensitive)".to_owned() },
                false => Difference::Text {
                    path: keys_path(&self.user),
                    before: before.to_owned(),
                    after: after.clone(),
                },
            });
        }
        if !change.differences.is_empty() {
            change.steps.push(Step::WriteAuthorizedKeys {
                user: self.user.clone(),
                found: found.map(|(_, sha256)| sha256.to_owned()),
                content: after.into_bytes(),
            });
        }
        Ok(change.into_verdict(match self.ensure {
            Ensure::Present => format!("is authorized for {}", self.user),
            Ensure::Absent => "is absent".to_owned(),
        }))
    }

    /// The present keys; notes what `StrictModes` of sshd refuses of the directory and the file.
    fn found<'a>(
        &self,
        state: &'a KeysState,
        change: &mut Change,
        context: &Context<'_>,
    ) -> Result<Option<(&'a [u8], &'a str)>, Refusal> {
        let directory = format!("{}/.ssh", state.home);
        let file = format!("{directory}/authorized_keys");
        let foreign = |path: &str, owner: &String| match *owner == self.user {
            true => Ok(()),
            false => Err(Refusal::ForeignKeys {
                path: path.to_owned(),
                owner: owner.clone(),
                user: self.user.clone(),
            }),
        };
        if !state.home_exists && !context.pending.adds(Kind::Directory, &state.home) {
            if self.ensure == Ensure::Absent {
                return Ok(None);
            }
            return Err(Refusal::NoHome { home: state.home.clone(), user: self.user.clone() });
        }
        match &state.directory {
            PathState::Absent => {}
            PathState::Directory { mode, owner, .. } => {
                foreign(&directory, owner)?;
                if *mode != 0o700 {
                    change.field("mode of .ssh", Some(&format!("{mode:04o}")), Some("0700"));
                }
            }
            PathState::Symlink { .. } => return Err(Refusal::LinkedKeys { path: directory }),
            other => return Err(Refusal::occupied(&directory, other, "a directory")),
        }
        match &state.file {
            PathState::Absent => Ok(None),
            PathState::File { content: None, .. } => Err(Refusal::TooLarge { path: file }),
            PathState::File { mode, owner, sha256, content: Some(content), .. } => {
                foreign(&file, owner)?;
                if *mode != 0o600 {
                    change.field("mode", Some(&format!("{mode:04o}")), Some("0600"));
                }
                Ok(Some((content, sha256)))
            }
            PathState::Symlink { .. } => Err(Refusal::LinkedKeys { path: file }),
            other => Err(Refusal::occupied(&file, other, "a file")),
        }
    }

    /// Leaves one line of this key, in place of the first: the options of another line could undo its own.
    fn edited(&self, text: &str) -> String {
        let Some(ours) = KeyLine::of(&self.line) else { return text.to_owned() };
        let mut lines = Lines::of(text);
        let mut first = true;
        lines.edit(|body| {
            let key = KeyLine::of(body).filter(|key| key.is_same(&ours))?;
            if self.ensure == Ensure::Absent || !std::mem::replace(&mut first, false) {
                return Some(Edit::Remove);
            }
            let right = ours.options.is_empty() || ours.options == key.options;
            (!right).then(|| Edit::Replace(self.line.clone()))
        });
        if self.ensure == Ensure::Present && first {
            lines.insert(usize::MAX, &self.line);
        }
        lines.into_text()
    }
}

/// The parts of a line with a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct KeyLine<'a> {
    options: &'a str,
    key_type: &'a str,
    base64: &'a str,
}

impl<'a> KeyLine<'a> {
    /// `None` for comments, and for lines that sshd(8) does not read as a key.
    fn of(line: &'a str) -> Option<Self> {
        let line = line.trim();
        let options = if TYPES.contains(&line.split_whitespace().next()?) { "" } else { options(line) };
        let mut words = line[options.len()..].split_whitespace();
        let (key_type, base64) = (words.next()?, words.next()?);
        (!line.starts_with('#') && TYPES.contains(&key_type)).then_some(Self { options, key_type, base64 })
    }

    fn is_same(&self, other: &Self) -> bool {
        (self.key_type, self.base64) == (other.key_type, other.base64)
    }

    /// Whether it decodes, and begins with its type (RFC 4253 section 6.6).
    fn is_whole(&self) -> bool {
        let length = u32::try_from(self.key_type.len()).unwrap_or(u32::MAX).to_be_bytes();
        let start = [&length, self.key_type.as_bytes()].concat();
        BASE64_STANDARD
            .decode(self.base64)
            .is_ok_and(|blob| blob.starts_with(&start) && blob.len() >= start.len() + 32)
    }
}

/// The part before the first white space outside quotes.
fn options(line: &str) -> &str {
    let (mut quoted, mut escaped) = (false, false);
    let end = line.find(|c: char| {
        let ends = c.is_whitespace() && !quoted;
        quoted ^= c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    &line[..end.unwrap_or(line.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";

    #[test]
    fn a_line_is_options_a_type_a_key_and_a_comment() {
        let quoted = format!(r#"command="echo \"a b\" ssh-rsa x",no-pty {KEY} a comment"#);
        let key = KeyLine::of(&quoted).unwrap();
        assert_eq!(key.options, r#"command="echo \"a b\" ssh-rsa x",no-pty"#);
        assert!(key.is_whole() && key.is_same(&KeyLine::of(KEY).unwrap()));
        for line in
            ["", "# a", &format!("# {KEY}"), "ssh-ed25519", "ssh-dss AAAA", "restrict", "\"unclosed a b"]
        {
            assert_eq!(KeyLine::of(line), None, "{line}");
        }
        for line in ["ssh-ed25519 AAAA", "ssh-ed25519 x", &KEY.replace("ssh-ed25519", "ssh-rsa")] {
            assert!(!KeyLine::of(line).unwrap().is_whole(), "{line}");
        }
    }
}
