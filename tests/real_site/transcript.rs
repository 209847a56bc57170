//! What of a transcript is the same for the model and for the real site.

/// Commands with their lines, as far as they do not depend on time: no waits, no counts, and lines in their order of
/// names.
pub fn comparable(command: &str, lines: &[String]) -> String {
    let mut lines: Vec<String> = lines.iter().filter_map(|line| without_time(line)).collect();
    if lines.iter().any(|line| line.starts_with("fails: ")) {
        // Which other phases hold by then depends on when the one failed.
        lines.retain(|line| !line.ends_with(" holds"));
    }
    lines.sort();
    if command.contains(" and ") {
        // Who has the lease first has the lower number.
        for line in lines.iter_mut().filter(|line| line.contains("  promote etcd learner ")) {
            line.retain(|character| !character.is_ascii_digit());
        }
        // How often the lease is tried for depends on when the other run lets go of it.
        lines.dedup();
    }
    format!("> {command}\n{}\n", lines.join("\n"))
}

fn without_time(line: &str) -> Option<String> {
    let line = &without_connection(line);
    let before = |mark: &str| line.split_once(mark).map(|(before, _)| before.to_owned());
    if line.contains("  wait for ") {
        return None;
    }
    if line.contains("all hold, ") && !line.ends_with(", 0 changed") {
        return before("all hold, ").map(|who| format!("{who}all hold, some changed"));
    }
    // Why a connection is refused is worded by the connection.
    let cut =
        ["; last seen: ", " of 2 after (", "could not be promoted in 300 s: ", "on etcd membership: cannot "]
            .into_iter()
            .find_map(before);
    let abandoned = line.starts_with("lease: abandoned by ").then(|| "lease: held".to_owned());
    Some(cut.or(abandoned).unwrap_or_else(|| line.to_owned()))
}

/// Why a member does not answer is worded by its connection, and by the model as `no answer`.
fn without_connection(line: &str) -> String {
    let refused = ": election error: connection refused";
    let mut line = line.to_owned();
    while let Some(end) = line.find(refused) {
        let url = line[..end].rfind("https://").unwrap_or(end);
        line.replace_range(url..end + refused.len(), "no answer");
    }
    line
}
