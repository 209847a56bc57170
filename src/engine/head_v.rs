//! Many small files of /proc and /etc through one process.
//!
//! `head -v` prints the name of each file before its content. Used for files whose content cannot look like such a
//! heading: kernel parameters and system identification. The shell's own `read` is no substitute: dash reads byte by
//! byte, and files below /proc/sys return data only for the first read.

use std::collections::BTreeMap;

use crate::model::shell_word::quote_all;

/// More than the size of any of these files, in bytes.
const LIMIT: usize = 256 * 1024;

/// The command; its output lacks files that are missing or cannot be read.
pub(super) fn head<'a>(paths: impl IntoIterator<Item = &'a str>) -> String {
    format!("head -v -c {LIMIT} -- {} 2>/dev/null\n", quote_all(paths))
}

/// Content by path, of those `paths` that exist.
pub(super) fn split<'a>(text: &str, paths: impl IntoIterator<Item = &'a str>) -> BTreeMap<&'a str, String> {
    let headings: BTreeMap<String, &str> =
        paths.into_iter().map(|path| (format!("==> {path} <=="), path)).collect();
    let mut contents: BTreeMap<&str, String> = BTreeMap::new();
    let mut current = None;
    for line in text.split_inclusive('\n') {
        if let Some(path) = headings.get(line.trim_end_matches('\n')) {
            contents.insert(path, String::new());
            current = Some(*path);
        } else if let Some(content) = current.and_then(|path| contents.get_mut(path)) {
            content.push_str(line);
        }
    }
    contents
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headings_separate_files() {
        let text = "==> /a <==\n1\n\n==> /b <==\n\n==> /c <==\nx\ty\n";
        let split = split(text, ["/a", "/b", "/c", "/d"]);
        assert_eq!(split["/a"].trim(), "1");
        assert_eq!(split["/b"].trim(), "");
        assert_eq!(split["/c"].trim(), "x\ty");
        assert_eq!(split.get("/d"), None);
    }
}
