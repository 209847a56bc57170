//! Paths and contents: one `stat`, one `readlink`, one `sha256sum` and one `head` for all of them.

use std::collections::{BTreeMap, BTreeSet};

use sha2::{Digest, Sha256};

use super::questions::Questions;
use super::sum_line::{parse_sum, sum_line};
use super::{Answers, ObserveError, Section};
use crate::engine::frame::{Sections, pieces};
use crate::model::shell_word::{quote, quote_all};
use crate::resource::contract::probe::{Answer, PathState, Probe};

/// The largest content that is returned, in bytes.
const CONTENT_LIMIT: usize = 1024 * 1024;

/// Separates contents in the output of one `head`: a file that every Linux host has, that differs with every boot, and
/// that no other file should contain.
const SEPARATOR: &str = "/proc/sys/kernel/random/boot_id";

/// Mode (hexadecimal, with the file type), numeric owner and group, size, owner, group, name.
const STAT: &str = r"%f\0%u\0%g\0%s\0%U\0%G\0%n\0";
const STAT_FIELDS: usize = 7;

/// Paths to `stat`; links are not followed.
fn stated<'p>(questions: &Questions<'p>) -> BTreeSet<&'p str> {
    questions
        .paths
        .iter()
        .filter_map(|probe| match probe {
            Probe::Path { path, .. } => Some(path.as_str()),
            _ => None,
        })
        .collect()
}

/// Probes that may return content, in the order of the program.
fn readings<'p>(questions: &Questions<'p>) -> Vec<&'p Probe> {
    questions
        .paths
        .iter()
        .copied()
        .filter(|probe| matches!(probe, Probe::Path { unless_sha256: Some(_), .. } | Probe::Content { .. }))
        .collect()
}

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let (stated, readings) = (stated(questions), readings(questions));
    let paths = quote_all(stated.iter().copied());
    let mut sections = Vec::new();
    if !stated.is_empty() {
        let stat =
            format!("set -- {paths}\n{{ errors=$(stat --printf='{STAT}' -- \"$@\" 2>&1 >&3); }} 3>&1\n");
        sections.push(("stat", stat));
        sections.push(("stat-errors", "printf '%s\\n' \"$errors\"\n".to_owned()));
        sections.push(("links", "readlink -z -- \"$@\" 2>/dev/null\n".to_owned()));
    }
    let followed = quote_all(readings.iter().filter_map(|probe| match probe {
        Probe::Content { path } => Some(path.as_str()),
        _ => None,
    }));
    let begin = if stated.is_empty() { "set --\n" } else { "" };
    // Only regular files: reading a pipe or a device may never end.
    let sums = format!(
        "{begin}n=$#\n\
         for p do [ -L \"$p\" ] || [ ! -f \"$p\" ] || set -- \"$@\" \"$p\"; done\n\
         for p in {followed}; do [ ! -f \"$p\" ] || set -- \"$@\" \"$p\"; done\n\
         shift $n\n\
         sums=; [ $# = 0 ] || sums=$(sha256sum -- \"$@\" 2>/dev/null)\n\
         printf '%s\\n' \"$sums\"\n"
    );
    sections.push(("sums", sums));
    if !readings.is_empty() {
        sections.push(("contents", ask_contents(&readings)));
    }
    sections
}

/// Prints the numbers of the readings that follow, then their contents between separators. Sums and readings have the
/// same order, so what precedes a sum that was found is not searched again.
fn ask_contents(readings: &[&Probe]) -> String {
    let mut script = include_str!("contents.sh").to_owned();
    for (number, probe) in readings.iter().enumerate() {
        let call = match probe {
            Probe::Path { path, unless_sha256: Some(sha256) } => {
                let line = sum_line(sha256, path);
                let escaped = if line.starts_with('\\') { quote(&line) } else { String::new() };
                format!("file {number} {} {sha256} {escaped}\n", quote(path))
            }
            Probe::Content { path } => format!("text {number} {}\n", quote(path)),
            _ => continue,
        };
        script.push_str(&call);
    }
    let limit = CONTENT_LIMIT + 1;
    script.push_str(&format!(
        "set -- {SEPARATOR}\nfor i in $n; do eval \"set -- \\\"\\$@\\\" \\\"\\$p$i\\\" {SEPARATOR}\"; done\n\
         echo $n\nhead -q -c {limit} -- \"$@\" 2>/dev/null\n"
    ));
    script
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let (stated, readings) = (stated(questions), readings(questions));
    let sums: BTreeMap<String, String> = sections.text("sums")?.lines().filter_map(parse_sum).collect();
    let contents = if readings.is_empty() { BTreeMap::new() } else { contents(sections, &readings)? };
    let stats = if stated.is_empty() { BTreeMap::new() } else { stats(sections, &stated)? };
    for probe in questions.paths.iter().copied() {
        let answer = match probe {
            Probe::Path { path, .. } => {
                let Some(stat) = stats.get(path.as_str()) else { continue };
                path_state(stat, sums.get(path), contents.get(probe).copied())
            }
            Probe::Content { path } => content(sums.get(path), contents.get(probe).copied()),
            _ => continue,
        };
        answers.insert(probe.clone(), answer);
    }
    Ok(())
}

/// The result of `stat` and `readlink` for one path.
enum Stat {
    Found { mode: u32, size: u64, owner: String, group: String, target: Option<String> },
    Absent,
    Failed(String),
}

fn stats<'a>(
    sections: &Sections,
    stated: &BTreeSet<&'a str>,
) -> Result<BTreeMap<&'a str, Stat>, ObserveError> {
    let unreadable = |found: &str| ObserveError::Unreadable { section: "stat", found: found.to_owned() };
    let (text, links, errors) =
        (sections.text("stat")?, sections.text("links")?, sections.text("stat-errors")?);
    let fields: Vec<&str> = text.split_terminator('\0').collect();
    let mut targets = links.split_terminator('\0');
    let mut stats: BTreeMap<&'a str, Stat> = BTreeMap::new();
    for record in fields.chunks(STAT_FIELDS) {
        let [mode, uid, gid, size, user, group, name] = record else {
            return Err(unreadable(&record.join(" ")));
        };
        let name: &'a str = stated.get::<str>(name).copied().ok_or_else(|| unreadable(name))?;
        let mode = u32::from_str_radix(mode, 16).map_err(|_| unreadable(mode))?;
        let size = size.parse().map_err(|_| unreadable(size))?;
        let named =
            |name: &str, number: &str| if name == "UNKNOWN" { number.to_owned() } else { name.to_owned() };
        let target = if type_of(mode) == LINK { targets.next().map(str::to_owned) } else { None };
        let stat = Stat::Found { mode, size, owner: named(user, uid), group: named(group, gid), target };
        stats.insert(name, stat);
    }
    let absences =
        |line: &&str| line.ends_with(": No such file or directory") || line.ends_with(": Not a directory");
    let others: Vec<&str> = errors.lines().filter(|line| !line.is_empty() && !absences(line)).collect();
    for path in stated.iter().copied() {
        // stat quotes paths in its own form, so an error is not assigned to one path: when there is any error but
        // absence, no path counts as absent.
        stats.entry(path).or_insert_with(|| match others.first() {
            None => Stat::Absent,
            Some(error) => Stat::Failed((*error).to_owned()),
        });
    }
    Ok(stats)
}

/// S_IFMT and two of its values (inode(7)).
fn type_of(mode: u32) -> u32 {
    mode & 0o170_000
}
const LINK: u32 = 0o120_000;
const REGULAR: u32 = 0o100_000;
const DIRECTORY: u32 = 0o040_000;

fn path_state(stat: &Stat, sha256: Option<&String>, content: Option<&[u8]>) -> Answer {
    let (mode, size, owner, group, target) = match stat {
        Stat::Absent => return Answer::Path(PathState::Absent),
        Stat::Failed(reason) => return Answer::Failed(reason.clone()),
        Stat::Found { mode, size, owner, group, target } => (*mode, *size, owner, group, target),
    };
    let (owner, group, bits) = (owner.clone(), group.clone(), mode & 0o7777);
    match (type_of(mode), sha256, target) {
        (REGULAR, None, _) => Answer::Failed("cannot be read".to_owned()),
        (REGULAR, Some(sha256), _) => {
            let content = content.filter(|content| content.len() <= CONTENT_LIMIT);
            if content.is_some_and(|content| digest(content) != *sha256) {
                return changed();
            }
            let content = content.map(<[u8]>::to_vec);
            Answer::Path(PathState::File { mode: bits, owner, group, sha256: sha256.clone(), size, content })
        }
        (DIRECTORY, _, _) => Answer::Path(PathState::Directory { mode: bits, owner, group }),
        (LINK, _, Some(target)) => Answer::Path(PathState::Symlink { target: target.clone() }),
        (LINK, _, None) => changed(),
        _ => Answer::Path(PathState::Other),
    }
}

fn content(sha256: Option<&String>, content: Option<&[u8]>) -> Answer {
    match (content, sha256) {
        (None, _) => Answer::Content(None),
        (Some(_), None) => Answer::Failed("cannot be read".to_owned()),
        (Some(content), _) if content.len() > CONTENT_LIMIT => {
            Answer::Failed(format!("larger than {CONTENT_LIMIT} bytes"))
        }
        (Some(content), Some(sha256)) if digest(content) == *sha256 => {
            Answer::Content(Some(content.to_vec()))
        }
        (Some(_), Some(_)) => changed(),
    }
}

fn contents<'a>(
    sections: &'a Sections,
    readings: &[&'a Probe],
) -> Result<BTreeMap<&'a Probe, &'a [u8]>, ObserveError> {
    let unreadable = |found: &str| ObserveError::Unreadable { section: "contents", found: found.to_owned() };
    let bytes = sections.bytes("contents")?;
    let mut lines = bytes.splitn(3, |b| *b == b'\n');
    let numbers = String::from_utf8_lossy(lines.next().unwrap_or_default()).into_owned();
    let separator = lines.next().unwrap_or_default();
    let mut separated = separator.to_vec();
    separated.push(b'\n');
    let found = pieces(lines.next().unwrap_or_default(), &separated);
    let numbers: Vec<usize> = numbers
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()
        .map_err(|_| unreadable(&numbers))?;
    // The piece after the last separator is empty.
    if separator.is_empty() || found.len() != numbers.len() + 1 {
        return Err(unreadable("contents and numbers do not match"));
    }
    Ok(numbers.iter().filter_map(|number| readings.get(*number).copied()).zip(found).collect())
}

fn digest(content: &[u8]) -> String {
    hex::encode(Sha256::digest(content))
}

fn changed() -> Answer {
    Answer::Failed("changed while it was read".to_owned())
}
