//! Lines of sha256sum, which escapes special characters in names.

/// The line that sha256sum prints. Since coreutils 9.0 a carriage return is escaped too; where it is not, the line does
/// not match and the content is returned needlessly.
pub(super) fn sum_line(sha256: &str, path: &str) -> String {
    let escaped = path.replace('\\', r"\\").replace('\n', r"\n").replace('\r', r"\r");
    if escaped == path { format!("{sha256}  {path}") } else { format!("\\{sha256}  {escaped}") }
}

/// The path and the digest of such a line.
pub(super) fn parse_sum(line: &str) -> Option<(String, String)> {
    let (escaped, line) = match line.strip_prefix('\\') {
        Some(rest) => (true, rest),
        None => (false, line),
    };
    let (sha256, path) = line.split_once("  ")?;
    let path = if escaped { unescape(path) } else { path.to_owned() };
    Some((path, sha256.to_owned()))
}

fn unescape(text: &str) -> String {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        plain.push(match c {
            '\\' => match chars.next() {
                Some('n') => '\n',
                Some('r') => '\r',
                _ => '\\',
            },
            other => other,
        });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_parsed_back_for_any_name() {
        for path in ["/etc/hosts", "/a b", "/a\nb", r"/a\nb", "/a\\", "/ä\r"] {
            let read = parse_sum(&sum_line("00ff", path));
            assert_eq!(read, Some((path.to_owned(), "00ff".to_owned())), "{path:?}");
        }
    }
}
