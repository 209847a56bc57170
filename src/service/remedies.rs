//! What to do about a step that failed, judged by what it printed.

use crate::model::resumption::ResumedBy;

/// What is printed (errno(3) and the package managers' messages), and the remedy.
const REMEDIES: [(&str, &str); 5] = [
    ("No space left on device", "free space on that file system (see df -h and df -i)"),
    ("Disk quota exceeded", "raise the quota or free space"),
    ("Read-only file system", "check why the file system is read-only (dmesg), remount it writable"),
    ("held by process", LOCKED),
    ("was locked by", LOCKED),
];

const LOCKED: &str = "wait for the process that holds the lock, or end it";

/// Before the command is resumed, where nothing more specific is known.
const FIX: &str = "fix this";

/// The remedy for errors without a more specific one, of a command that is resumed so.
pub fn retry(resumed: ResumedBy) -> String {
    resumed.after(FIX)
}

/// The remedy for a step with this output, of a command that is resumed so. The last lines count most, as they do in the
/// error.
pub fn remedy(output: &str, resumed: ResumedBy) -> String {
    let of_line =
        |line: &str| REMEDIES.iter().find(|(words, _)| line.contains(words)).map(|(_, remedy)| *remedy);
    resumed.after(output.lines().rev().take(10).find_map(of_line).unwrap_or(FIX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_messages_lead_to_a_specific_remedy() {
        for (output, start) in [
            ("head: error writing 'standard output': No space left on device\n", "free space"),
            ("sh: 38: cannot create /a: Read-only file system", "check why"),
            (
                "E: Could not get lock /a. It is held by process 7 (perl); waited for 120 s\n",
                "wait for the process",
            ),
            ("no such thing\n", "fix this"),
            ("", "fix this"),
        ] {
            let remedy = remedy(output, ResumedBy::SameCommand);
            assert!(remedy.starts_with(start) && remedy.ends_with("it resumes"), "{output}");
        }
    }
}
