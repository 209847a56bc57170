//! The kernel: parameters, modules and swap.

use std::collections::BTreeSet;

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::engine::head_v;
use crate::engine::sysctl_path::sysctl_path;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let mut sections = Vec::new();
    let parameters: Vec<String> = questions.parameters.iter().copied().map(sysctl_path).collect();
    if !parameters.is_empty() {
        sections.push(("parameters", head_v::head(parameters.iter().map(String::as_str))));
    }
    if !questions.modules.is_empty() {
        // A loaded module has a directory in /sys/module; a built-in one has it only if it has parameters.
        let loaded = questions.modules.iter().copied().map(|name| {
            let directory = quote(&format!("/sys/module/{}", underscored(name)));
            match effect(name) {
                Some(effect) => format!("[ -d {directory} ] || {effect} && echo yes || echo no\n"),
                None => format!("[ -d {directory} ] && echo yes || echo no\n"),
            }
        });
        sections.push(("modules", loaded.collect()));
        sections
            .push(("built-in", "cat \"/lib/modules/$(uname -r)/modules.builtin\" 2>/dev/null\n".to_owned()));
    }
    if questions.swap {
        sections.push(("swap", "cat /proc/swaps\n".to_owned()));
    }
    sections
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let keys = &questions.parameters;
    if !keys.is_empty() {
        let text = sections.text("parameters")?;
        let paths: Vec<String> = keys.iter().copied().map(sysctl_path).collect();
        let values = head_v::split(&text, paths.iter().map(String::as_str));
        for (key, path) in keys.iter().copied().zip(&paths) {
            let value = values.get(path.as_str()).map(|value| single_spaced(value));
            answers.insert(Probe::Sysctl { key: key.to_owned() }, Answer::Sysctl(value));
        }
    }
    let names = &questions.modules;
    if !names.is_empty() {
        let (loaded, built_in) = (sections.text("modules")?, sections.text("built-in")?);
        let built_in: BTreeSet<String> = built_in.lines().filter_map(module_of).collect();
        if loaded.lines().count() < names.len() {
            return Err(ObserveError::Unreadable { section: "modules", found: loaded });
        }
        for (name, loaded) in names.iter().copied().zip(loaded.lines()) {
            let there = loaded == "yes" || built_in.contains(&underscored(name));
            answers.insert(Probe::Module { name: name.to_owned() }, Answer::Module(there));
        }
    }
    if questions.swap {
        let heading_and_devices = sections.text("swap")?.trim().lines().count();
        answers.insert(Probe::Swap, Answer::Swap(heading_and_devices > 1));
    }
    Ok(())
}

/// A sign of a built-in module on a host without the kernel's list of built-in modules: a container has no
/// `/lib/modules`.
fn effect(module: &str) -> Option<&'static str> {
    match module {
        "br_netfilter" => Some("[ -d /proc/sys/net/bridge ]"),
        "overlay" => Some("grep -qw overlay /proc/filesystems"),
        _ => None,
    }
}

/// The kernel separates the fields of a value with tabs, states with spaces.
fn single_spaced(value: &str) -> String {
    value.trim().lines().map(|line| line.replace('\t', " ")).collect::<Vec<_>>().join("\n")
}

fn underscored(module: &str) -> String {
    module.replace('-', "_")
}

/// `kernel/net/bridge/br_netfilter.ko` → `br_netfilter`.
fn module_of(line: &str) -> Option<String> {
    let file = line.rsplit('/').next()?;
    Some(underscored(file.split(".ko").next()?))
}
