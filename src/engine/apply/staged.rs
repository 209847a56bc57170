//! Files of several tasks, made side by side: one `stat`, one `sync`, and one `chown` and `chmod` for all with the same
//! owner or mode. Each is moved into place by its own task.

use std::collections::BTreeMap;

use super::Task;
use super::place::{Place, owner, place, put};
use crate::model::shell_word::quote;
use crate::resource::contract::step::{Access, Step};

/// The shell functions of a staging.
pub(super) const FUNCTIONS: &str = include_str!("staged.sh");

/// Files, in the order in which they are read from the payload.
pub(super) struct Staging<'a> {
    files: Vec<(&'a str, &'a [u8], &'a Access)>,
}

impl<'a> Staging<'a> {
    /// The files that `tasks` write.
    pub(super) fn of(tasks: &'a [Task]) -> Self {
        let files = tasks.iter().flat_map(|task| &task.steps).filter_map(|step| match step {
            Step::WriteFile { path, content, access, .. } => {
                Some((path.as_str(), content.as_slice(), access))
            }
            _ => None,
        });
        Self { files: files.collect() }
    }

    /// Shell text that makes as many of them as possible; it never fails.
    pub(super) fn make(&self, payload: &mut Vec<u8>) -> String {
        if self.files.is_empty() {
            return String::new();
        }
        let mut owners: BTreeMap<String, Vec<usize>> = BTreeMap::new();
        let mut modes: BTreeMap<u32, Vec<usize>> = BTreeMap::new();
        let (mut calls, mut sizes) = (Vec::new(), Vec::new());
        for (number, (path, content, access)) in self.files.iter().enumerate() {
            payload.extend_from_slice(content);
            owners.entry(owner(access)).or_default().push(number);
            modes.entry(access.mode).or_default().push(number);
            sizes.push(content.len().to_string());
            let Place { directory, temporary } = place(path);
            calls.push(format!(
                "\"$@\" {number} {} {directory} {temporary} {} {:04o}",
                content.len(),
                owner(access),
                access.mode
            ));
        }
        let all: Vec<usize> = (0..self.files.len()).collect();
        let chown = owners.iter().map(|(owner, files)| format!("chown -h -- {owner} {}", variables(files)));
        let chmod = modes.iter().map(|(mode, files)| format!("chmod -- {mode:04o} {}", variables(files)));
        let at_once: Vec<String> = chown.chain(chmod).collect();
        format!(
            "files() {{\n{calls}\n}}\nmade=0 ready=0\n{{\n\
             files tidy; umask 077; set -C; files stage &&\n\
             {{ [ \"$(stat -c %s -- {all})\" = '{sizes}' ] &&\n{at_once} &&\nsync -- {all} && ready={count}; }} 2>/dev/null ||\n\
             files settle\nset +C; umask 022\n}} >\"$log\" 2>&1\n\
             [ \"$ready\" = {count} ] || why=$(tail -c 4096 -- \"$log\")\n",
            calls = calls.join(" &&\n"),
            all = variables(&all),
            sizes = sizes.join("\n"),
            at_once = at_once.join(" &&\n"),
            count = all.len(),
        )
    }

    /// The command that moves the file with this path into place.
    pub(super) fn placed(&self, path: &str) -> Option<String> {
        let number = self.files.iter().position(|(file, ..)| *file == path)?;
        let (_, content, access) = self.files.get(number)?;
        let put = quote(&put(path, content.len(), access));
        Some(format!("place {number} {} {} {put}", quote(path), place(path).directory))
    }
}

fn variables(files: &[usize]) -> String {
    files.iter().map(|number| format!("\"$f{number}\"")).collect::<Vec<_>>().join(" ")
}
