//! Verifying unit files: one `systemd-analyze` for all of a program, and a verdict on each.

use super::Task;
use super::payload::payload_of;
use crate::model::shell_word::{quote, quote_all};
use crate::resource::contract::step::{Step, UnitFile};

/// Moves all unit files to the first verification, since one costs as much as many. The verdict on a unit depends on its
/// own file alone, so no step in between can change it.
pub(super) fn ask_once(tasks: &mut [Task]) {
    let mut all: Vec<UnitFile> = Vec::new();
    let mut first = None;
    for step in tasks.iter_mut().flat_map(|task| &mut task.steps) {
        if let Step::VerifyUnit { files, .. } = step {
            all.append(files);
            first.get_or_insert(files);
        }
    }
    if let Some(first) = first {
        *first = all;
    }
}

/// The command of a [`Step::VerifyUnit`].
pub(super) fn verify(name: &str, files: &[UnitFile], sensitive: bool, payload: &mut Vec<u8>) -> String {
    let mut command = String::new();
    for file in files {
        let bytes = payload_of(file.text.as_bytes(), payload);
        command.push_str(&format!("stage_unit {bytes} {} &&\n", quote(&file.name)));
    }
    if !files.is_empty() {
        let names = quote_all(files.iter().map(|file| file.name.as_str()));
        command.push_str(&format!("verify_units {names} &&\n"));
    }
    let secret = if sensitive { "secret" } else { "" };
    command + &format!("judge_unit {} {} {}", quote(name), quote(&instances(name)), quote(secret))
}

/// A pattern of the shell for the names that systemd gives the instances of a template when it looks at it;
/// empty where the unit is no template.
fn instances(name: &str) -> String {
    match name.split_once("@.") {
        Some((prefix, suffix)) => format!("{}@*.{suffix}", prefix.replace('\\', r"\\")),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::apply::progress::ProgressSummary;
    use crate::engine::apply::{PackageManager, Segment, program};
    use crate::engine::nonce::Nonce;
    use crate::engine::shells::{run, shells};

    fn task(name: &str, text: &str, sensitive: bool) -> Task {
        let files = vec![UnitFile { name: name.to_owned(), text: text.to_owned() }];
        let step = Step::VerifyUnit { name: name.to_owned(), files, sensitive };
        Task { ids: vec![format!("unit:{name}")], begins: true, ends: true, steps: vec![step] }
    }

    /// The message for the first unit with an error; `None` when there is none.
    fn verdict(shell: &str, units: &[(&str, &str)], sensitive: bool) -> Option<(usize, String)> {
        let mut tasks: Vec<Task> = units.iter().map(|(name, text)| task(name, text, sensitive)).collect();
        ask_once(&mut tasks);
        let nonce = Nonce::new(9);
        let output =
            run(shell, &program(&Segment { tasks, ..Segment::default() }, PackageManager::Apt, "", &nonce));
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
        let summary = ProgressSummary::of(&nonce, &output.stdout);
        assert!(summary.ended || summary.failed.is_some(), "{shell}: {output:?}");
        summary.failed.map(|(number, _, output)| (number, output))
    }

    const GOOD: &str = "[Unit]\nAfter=no-such.service\nRequires=no-such.service\n\
                        [Service]\nExecStart=/no/such/program\nStandardOutput=syslog\n";

    #[test]
    fn all_units_are_verified_at_once() {
        let mut tasks = [task("a.service", "A", false), task("b.timer", "B", false)];
        ask_once(&mut tasks);
        let counts: Vec<usize> = tasks
            .iter()
            .flat_map(|task| &task.steps)
            .map(|step| if let Step::VerifyUnit { files, .. } = step { files.len() } else { 0 })
            .collect();
        assert_eq!(counts, [2, 0]);
    }

    #[test]
    fn what_systemd_would_ignore_or_refuse_is_reported_for_its_own_unit() {
        let cases: [(&str, &str, &str); 6] = [
            (
                "typo.service",
                "[Service]\nExecStart=/bin/true\nRestrat=always\n",
                "typo.service:3: Unknown key",
            ),
            (
                "value.service",
                "[Service]\nExecStart=/bin/true\nMemoryMax=12parsecs\n",
                "value.service:3: Invalid memory limit",
            ),
            ("none.service", "[Service]\nType=simple\n", "none.service: Service has no ExecStart="),
            (
                "calendar.timer",
                "[Timer]\nOnCalendar=sometimes\n",
                "calendar.timer:2: Failed to parse calendar",
            ),
            ("text.service", "this is no unit file\n", "text.service:1: Assignment outside of section"),
            ("template@.service", "[Service]\nType=simple\n", "template@"),
        ];
        for shell in shells() {
            assert_eq!(
                verdict(shell, &[("good.service", GOOD), ("x@.service", GOOD)], false),
                None,
                "{shell}"
            );
            for (name, text, start) in cases {
                let (number, output) =
                    verdict(shell, &[("good.service", GOOD), (name, text)], false).unwrap();
                assert_eq!(number, 1, "{shell} {name}: {output}");
                assert!(output.starts_with(start), "{shell} {name}: {output}");
            }
        }
    }

    #[test]
    fn errors_in_a_sensitive_unit_are_not_shown() {
        let text = "[Service]\nExecStart=/bin/true\nEnvironment=\"PASSWORD=hunter2\nMemoryMax=hunter2\n";
        let (_, output) = verdict("sh", &[("secret.service", text)], true).unwrap();
        assert_eq!(
            output,
            "systemd would ignore or refuse something in secret.service, which is not shown\n"
        );
    }
}
