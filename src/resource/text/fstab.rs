//! Lines of `/etc/fstab` (fstab(5)).

use crate::resource::text::edited::Edited;

/// One file system; its fields are unescaped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FstabEntry {
    pub source: String,
    pub point: String,
    pub fs_type: String,
    pub options: Vec<String>,
    pub dump: u32,
    pub pass: u32,
}

impl FstabEntry {
    /// `None` for comments and malformed lines.
    pub fn of(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let [source, point, fs_type, rest @ ..] = fields.as_slice() else { return None };
        let number = |at: usize| rest.get(at).map_or(Some(0), |text| text.parse().ok());
        let options = rest.first().copied().unwrap_or("defaults");
        (!source.starts_with('#')).then_some(())?;
        Some(Self {
            source: unescaped(source),
            point: without_slash(&unescaped(point)),
            fs_type: (*fs_type).to_owned(),
            options: options.split(',').map(unescaped).collect(),
            dump: number(1)?,
            pass: number(2)?,
        })
    }

    pub fn line(&self) -> String {
        let options: Vec<String> = self.options.iter().map(|option| escaped(option)).collect();
        let [source, point] = [escaped(&self.source), escaped(&self.point)];
        format!("{source}\t{point}\t{}\t{}\t{} {}", self.fs_type, options.join(","), self.dump, self.pass)
    }
}

/// mount(8) and systemd ignore a slash at the end of a mount point.
fn without_slash(point: &str) -> String {
    let trimmed = point.trim_end_matches('/');
    if trimmed.is_empty() { "/".to_owned() } else { trimmed.to_owned() }
}

/// The file itself.
pub fn file(create: bool, sensitive: bool) -> Edited {
    Edited { path: "/etc/fstab".to_owned(), create, sensitive }
}

/// Writes the characters that separate fields, begin a comment or begin an escape as three octal digits.
fn escaped(text: &str) -> String {
    let escape = |c: char| match c {
        ' ' | '\t' | '\n' | '\\' | '#' => format!("\\{:03o}", u32::from(c)),
        c => c.to_string(),
    };
    text.chars().map(escape).collect()
}

/// Reads the escapes of fstab(5), which are those of `/proc/self/mountinfo` (proc_pid_mountinfo(5)) too.
pub(crate) fn unescaped(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..3).filter(|digits| digits.iter().all(|digit| (b'0'..=b'7').contains(digit)));
        let value = digits.map(|digits| digits.iter().fold(0u32, |value, c| value * 8 + u32::from(c - b'0')));
        match value.and_then(|value| u8::try_from(value).ok()) {
            Some(byte) if *first == b'\\' => {
                bytes.push(byte);
                rest = &after[3..];
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_name_survives_the_file() {
        for name in ["/a", "/with space", "/it's\t\"x\"\n", "/back\\slash\\040", "/ä", "#x"] {
            assert_eq!(unescaped(&escaped(name)), name);
            assert!(!escaped(name).contains(char::is_whitespace));
        }
    }

    #[test]
    fn a_mount_point_may_end_with_a_slash() {
        for (written, point) in
            [("/srv/", "/srv"), ("/srv//", "/srv"), ("/", "/"), ("//", "/"), ("none", "none")]
        {
            let entry = FstabEntry::of(&format!("/dev/a {written} ext4")).unwrap();
            assert_eq!(entry.point, point, "{written}");
        }
    }

    #[test]
    fn an_entry_may_leave_its_last_fields_out() {
        let entry = FstabEntry::of("UUID=a\t/srv/with\\040space  ext4").unwrap();
        assert_eq!(entry.line(), "UUID=a\t/srv/with\\040space\text4\tdefaults\t0 0");
        assert_eq!(FstabEntry::of(&entry.line()), Some(entry));
        for line in ["", "# /dev/a /b ext4", "/dev/a /b", "/dev/a /b ext4 defaults x 0"] {
            assert_eq!(FstabEntry::of(line), None, "{line}");
        }
    }
}
