//! The shell text of a run of tasks, by its batching.

use super::packages::PackageManager;
use super::reactions::Reactions;
use super::runs::Batching;
use super::staged::Staging;
use super::{Task, at_once, functions, steps};

/// The shell text of `tasks`, of which the first has the number `first`.
pub(super) fn of(
    batching: Batching,
    (first, tasks): (usize, &[Task]),
    packages: PackageManager,
    reactions: &Reactions,
    payload: &mut Vec<u8>,
) -> String {
    let numbered = || (first..).zip(tasks);
    let each = |text: fn(usize, &Task, &Reactions) -> String| -> String {
        numbered().map(|(number, task)| text(number, task, reactions)).collect()
    };
    let mut one_by_one = |begun: fn(usize, &Task, &Reactions) -> String| -> String {
        numbered()
            .map(|(number, task)| {
                begun(number, task, reactions)
                    + &apart(number, task, packages, payload)
                    + &done(number, task, reactions)
            })
            .collect()
    };
    let commands = match batching {
        Batching::Apart => return one_by_one(begun),
        Batching::Staged => return staged((first, tasks), packages, reactions, payload),
        Batching::Directories => at_once::directories(tasks),
        Batching::Services(verb) => at_once::services(tasks, verb),
    };
    format!(
        "{}if {{ {}; }} >\"$log\" 2>&1; then\n{}else\n{}fi\n",
        each(begun),
        commands.join(" &&\n"),
        each(done),
        one_by_one(|_, _, _| String::new()),
    )
}

fn staged(
    (first, tasks): (usize, &[Task]),
    packages: PackageManager,
    reactions: &Reactions,
    payload: &mut Vec<u8>,
) -> String {
    let staging = Staging::of(tasks);
    let mut script = staging.make(payload);
    for (number, task) in (first..).zip(tasks) {
        let commands = steps::commands(&task.steps, packages, Some(&staging), payload).join(" &&\n");
        // Without a subshell: the functions it calls leave this shell unchanged.
        let run = format!("{{\n{commands}\n}} >\"$log\" 2>&1 || fail {number} $?\n");
        script += &(begun(number, task, reactions) + &run + &done(number, task, reactions));
    }
    script + "files() { :; }\n"
}

fn apart(number: usize, task: &Task, packages: PackageManager, payload: &mut Vec<u8>) -> String {
    let commands = steps::commands(&task.steps, packages, None, payload);
    if commands.is_empty() {
        return String::new();
    }
    // Only package steps report while they run.
    let (task, output) = match task.steps.iter().any(functions::is_about_packages) {
        true => (format!("task={number}\n"), "4>&1 "),
        false => (String::new(), ""),
    };
    format!("{task}(\n{}\n) {output}>\"$log\" 2>&1 || fail {number} $?\n", commands.join(" &&\n"))
}

fn begun(number: usize, task: &Task, reactions: &Reactions) -> String {
    match task.begins {
        true => format!("say begin {number}\n{}", reactions.begun(number, &task.ids)),
        false => String::new(),
    }
}

fn done(number: usize, task: &Task, reactions: &Reactions) -> String {
    match task.ends {
        true => format!("{}say done {number}\n", reactions.done(number, &task.ids)),
        false => String::new(),
    }
}
