//! Authorized keys: the homes by one `getent`, their files by one `stat`, the keys by one `head`.
//!
//! A home belongs to its user, who may create links and pipes in it: only a regular file that is reached without a link
//! is read.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::{Sections, pieces};
use crate::model::shell_word::quote_all;
use crate::resource::contract::probe::{Answer, KeysState, PathState, Probe};

/// The largest content that is returned, in bytes.
const CONTENT_LIMIT: usize = 1024 * 1024;

/// As in the topic of paths.
const SEPARATOR: &str = "/proc/sys/kernel/random/boot_id";

/// File type and mode (hexadecimal), owner, group, size, name.
const STAT: &str = r"%f\0%U\0%G\0%s\0%n\0";

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let entries = format!(
        "entries=$(getent passwd -- {} 2>/dev/null)\nprintf '%s\\n' \"$entries\"\n",
        quote_all(questions.authorized_keys.iter().copied())
    );
    // The second loop prints only files that may be read, each between separators, after a line of their users.
    let each =
        "while IFS=: read -r n p u g c h rest; do\n[ -n \"$h\" ] || continue\nk=$h/.ssh/authorized_keys\n";
    let stat = format!(
        "set --\n{each}set -- \"$@\" \"$h\" \"$h/.ssh\" \"$k\"\ndone <<END\n$entries\nEND\n\
         [ $# = 0 ] || stat --printf='{STAT}' -- \"$@\" 2>/dev/null\n"
    );
    let limit = CONTENT_LIMIT + 1;
    let keys = format!(
        "set -- {SEPARATOR}\nread_of=\n{each}\
         if [ ! -L \"$h/.ssh\" ] && [ ! -L \"$k\" ] && [ -f \"$k\" ]; then\n\
         read_of=\"$read_of $n\"; set -- \"$@\" \"$k\" {SEPARATOR}\nfi\ndone <<END\n$entries\nEND\n\
         echo $read_of\n[ $# = 1 ] || timeout 20 head -q -c {limit} -- \"$@\" 2>/dev/null\n"
    );
    vec![("homes", entries), ("homes-stat", stat), ("authorized-keys", keys)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let homes = sections.text("homes")?;
    let homes: BTreeMap<&str, &str> =
        homes.lines().filter_map(|line| Some((line.split(':').next()?, line.split(':').nth(5)?))).collect();
    let stats = stats(&sections.text("homes-stat")?)?;
    let contents = contents(sections.bytes("authorized-keys")?)?;
    for user in questions.authorized_keys.iter().copied() {
        let home = homes.get(user).filter(|home| !home.is_empty());
        let state = home.map(|home| {
            let directory = format!("{home}/.ssh");
            let file = format!("{directory}/authorized_keys");
            let at = |path: &str| stats.get(path).cloned().unwrap_or(PathState::Absent);
            KeysState {
                home: (*home).to_owned(),
                home_exists: matches!(at(home), PathState::Directory { .. } | PathState::Symlink { .. }),
                directory: at(&directory),
                file: read(at(&file), contents.get(user).copied()),
            }
        });
        answers.insert(Probe::AuthorizedKeys { user: user.to_owned() }, Answer::AuthorizedKeys(state));
    }
    Ok(())
}

/// The file with its content, where that was returned.
fn read(state: PathState, found: Option<&[u8]>) -> PathState {
    let found = found.filter(|content| content.len() <= CONTENT_LIMIT);
    match (state, found) {
        (PathState::File { mode, owner, group, size, .. }, Some(content)) => PathState::File {
            mode,
            owner,
            group,
            size,
            sha256: hex::encode(Sha256::digest(content)),
            content: Some(content.to_vec()),
        },
        (state, _) => state,
    }
}

fn stats(text: &str) -> Result<BTreeMap<String, PathState>, ObserveError> {
    let unreadable =
        |found: &str| ObserveError::Unreadable { section: "homes-stat", found: found.to_owned() };
    let fields: Vec<&str> = text.split_terminator('\0').collect();
    let state = |record: &[&str]| {
        let [mode, owner, group, size, name] = record else { return Err(unreadable(&record.join(" "))) };
        let mode = u32::from_str_radix(mode, 16).map_err(|_| unreadable(mode))?;
        let size = size.parse().map_err(|_| unreadable(size))?;
        let (bits, owner, group) = (mode & 0o7777, (*owner).to_owned(), (*group).to_owned());
        // S_IFMT and its values (inode(7)).
        let state = match mode & 0o170_000 {
            0o100_000 => {
                PathState::File { mode: bits, owner, group, size, sha256: String::new(), content: None }
            }
            0o040_000 => PathState::Directory { mode: bits, owner, group },
            // The target is not required.
            0o120_000 => PathState::Symlink { target: String::new() },
            _ => PathState::Other,
        };
        Ok(((*name).to_owned(), state))
    };
    fields.chunks(5).map(state).collect()
}

fn contents(bytes: &[u8]) -> Result<BTreeMap<String, &[u8]>, ObserveError> {
    let mut lines = bytes.splitn(3, |b| *b == b'\n');
    let users = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let users: Vec<&str> = users.split_whitespace().collect();
    if users.is_empty() {
        return Ok(BTreeMap::new());
    }
    let mut separator = lines.next().unwrap_or_default().to_vec();
    separator.push(b'\n');
    let found = pieces(lines.next().unwrap_or_default(), &separator);
    // The piece after the last separator is empty.
    if separator.len() == 1 || found.len() != users.len() + 1 {
        let found = "contents and users do not match".to_owned();
        return Err(ObserveError::Unreadable { section: "authorized-keys", found });
    }
    Ok(users.into_iter().map(str::to_owned).zip(found).collect())
}
