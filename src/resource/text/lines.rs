//! Text as lines, of which some are changed while all others stay byte for byte.

/// Each line has its own ending.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lines {
    lines: Vec<String>,
    /// Of new lines: that of the first line.
    ending: &'static str,
}

impl Lines {
    pub fn of(text: &str) -> Self {
        let lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
        let ending = if lines.first().is_some_and(|line| line.ends_with("\r\n")) { "\r\n" } else { "\n" };
        Self { lines, ending }
    }

    /// The lines without their endings.
    pub fn bodies(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.lines.iter().map(|line| body(line))
    }

    /// The index of the last line that matches.
    pub fn last(&self, matches: impl Fn(&str) -> bool) -> Option<usize> {
        self.lines.iter().rposition(|line| matches(body(line)))
    }

    /// Inserts a line at an index, or at the end where the index is larger.
    pub fn insert(&mut self, at: usize, line: &str) {
        let at = at.min(self.lines.len());
        if let Some(before) = at.checked_sub(1).and_then(|before| self.lines.get_mut(before))
            && !before.ends_with('\n')
        {
            before.push_str(self.ending);
        }
        self.lines.insert(at, format!("{line}{}", self.ending));
    }

    /// Visits all lines: each stays (`None`), is replaced or is removed.
    pub fn edit(&mut self, mut edit: impl FnMut(&str) -> Option<Edit>) {
        let ending = self.ending;
        self.lines = std::mem::take(&mut self.lines)
            .into_iter()
            .filter_map(|line| match edit(body(&line)) {
                None => Some(line),
                Some(Edit::Replace(new)) => Some(format!("{new}{ending}")),
                Some(Edit::Remove) => None,
            })
            .collect();
    }

    /// Leaves exactly one of the lines that match `ours`: `line`, in place of the last of them, or else at the end.
    /// In most formats the last of several lines takes effect, so it keeps its place.
    pub fn set(&mut self, ours: impl Fn(&str) -> bool, line: &str) {
        let Some(keep) = self.last(&ours) else { return self.insert(self.lines.len(), line) };
        let mut at = 0..;
        self.edit(|body| match (ours(body), at.next() == Some(keep)) {
            (true, true) if body != line => Some(Edit::Replace(line.to_owned())),
            (true, false) => Some(Edit::Remove),
            _ => None,
        });
    }

    pub fn remove(&mut self, ours: impl Fn(&str) -> bool) {
        self.edit(|body| ours(body).then_some(Edit::Remove));
    }

    pub fn into_text(self) -> String {
        self.lines.concat()
    }
}

/// The change of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Edit {
    Replace(String),
    Remove,
}

fn body(line: &str) -> &str {
    let line = line.strip_suffix('\n').unwrap_or(line);
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(text: &str, line: &str) -> String {
        let mut lines = Lines::of(text);
        lines.set(|body| body.starts_with("key"), line);
        lines.into_text()
    }

    #[test]
    fn one_matching_line_remains_and_all_others_are_unchanged() {
        for (before, after) in [
            ("", "key=1\n"),
            ("a", "a\nkey=1\n"),
            ("a\n\n", "a\n\nkey=1\n"),
            ("key=0\na\n", "key=1\na\n"),
            ("key=0\na\nkey=2", "a\nkey=1\n"),
            ("key=1\na\nkey=1\n", "a\nkey=1\n"),
            ("a\r\n", "a\r\nkey=1\r\n"),
            ("a\r\nkey=0\r\nb\r\n", "a\r\nkey=1\r\nb\r\n"),
            ("a\nb\r\nkey=1", "a\nb\r\nkey=1"),
        ] {
            assert_eq!(set(before, "key=1"), after, "{before:?}");
        }
    }

    #[test]
    fn lines_are_removed_with_their_endings() {
        let mut lines = Lines::of("key\r\na\r\nkey");
        lines.remove(|body| body == "key");
        assert_eq!(lines.into_text(), "a\r\n");
    }
}
