//! Whether directories are empty, by patterns of the shell, without a process.

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    // A pattern without match is kept as it is, and no such file exists.
    let mut script = "is_empty() {\n\
         for e in \"$1\"/* \"$1\"/.[!.]* \"$1\"/..?*; do\n\
         if [ -e \"$e\" ] || [ -L \"$e\" ]; then echo no; return; fi\ndone\n\
         echo yes\n}\n"
        .to_owned();
    for path in questions.emptiness.iter().copied() {
        script.push_str(&format!("is_empty {}\n", quote(path)));
    }
    vec![("emptiness", script)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("emptiness")?;
    let lines: Vec<&str> = text.lines().collect();
    if lines.len() != questions.emptiness.len() {
        return Err(ObserveError::Unreadable { section: "emptiness", found: text });
    }
    for (path, line) in questions.emptiness.iter().copied().zip(lines) {
        answers.insert(Probe::Empty { path: path.to_owned() }, Answer::Empty(line == "yes"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::engine::nonce::Nonce;
    use crate::engine::observe::{parse, program};
    use crate::engine::shells::{run, shells};

    #[test]
    fn a_directory_with_any_entry_is_not_empty() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        for name in ["-n [a]*'", "full", "hidden", "dots", "dangling"] {
            std::fs::create_dir(at(name)).unwrap();
        }
        std::fs::write(at("full/*"), "").unwrap();
        std::fs::write(at("hidden/.x"), "").unwrap();
        std::fs::write(at("dots/..x"), "").unwrap();
        std::os::unix::fs::symlink("nowhere", at("dangling/link")).unwrap();
        let cases = [
            ("-n [a]*'", true),
            ("absent", true),
            ("full", false),
            ("hidden", false),
            ("dots", false),
            ("dangling", false),
        ];
        let probes: BTreeSet<Probe> = cases.iter().map(|(name, _)| Probe::Empty { path: at(name) }).collect();
        for shell in shells() {
            let nonce = Nonce::new(4);
            let observed = parse(&probes, &nonce, &run(shell, &program(&probes, &nonce))).unwrap();
            for (name, empty) in cases {
                let answer = observed.get(&Probe::Empty { path: at(name) });
                assert_eq!(answer, Some(&Answer::Empty(empty)), "{shell}: {name}");
            }
        }
    }
}
