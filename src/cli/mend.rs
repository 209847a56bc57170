//! What would mend a step that failed, as far as what it printed tells.

/// What is printed (errno(3) and the package managers' own words), and what to do then.
const ADVICE: [(&str, &str); 5] = [
    (
        "No space left on device",
        "make room there (df -h and df -i say where); then the same command goes on from here",
    ),
    ("Disk quota exceeded", "raise the quota or make room there; then the same command goes on from here"),
    (
        "Read-only file system",
        "mount it writable there, and look why it was not (dmesg); then the same command goes on from here",
    ),
    ("held by process", LOCKED),
    ("was locked by", LOCKED),
];

const LOCKED: &str = "let that process end, or end it; then the same command goes on from here";

/// Where nothing better is known.
const OTHERWISE: &str = "when that is mended, the same command goes on from here";

/// For a step that printed this. The last words count most, as they do for what is shown.
pub fn advice(output: &str) -> &'static str {
    let of_line =
        |line: &str| ADVICE.iter().find(|(words, _)| line.contains(words)).map(|(_, advice)| *advice);
    output.lines().rev().take(10).find_map(of_line).unwrap_or(OTHERWISE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_the_system_lead_to_what_to_do() {
        for (output, advice_begins) in [
            ("head: error writing 'standard output': No space left on device\n", "make room"),
            ("sh: 38: cannot create /a: Read-only file system", "mount it writable"),
            (
                "E: Could not get lock /a. It is held by process 7 (perl); waited for 120 s\n",
                "let that process end",
            ),
            ("no such thing\n", "when that is mended"),
            ("", "when that is mended"),
        ] {
            assert!(advice(output).starts_with(advice_begins), "{output}");
        }
    }
}
