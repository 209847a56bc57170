//! The help of every command at once: a change of what operators read is seen in review.

use std::fmt::Write;

use clap::CommandFactory;

use crate::sandbox::Sandbox;

#[test]
fn the_help_of_every_command_is_what_it_was() {
    let mut all = String::new();
    let sandbox = Sandbox::new();
    visit(&sandbox, &metalform::cli::Cli::command(), &mut Vec::new(), &mut all);
    insta::assert_snapshot!("help", all);
}

fn visit<'a>(sandbox: &Sandbox, command: &'a clap::Command, path: &mut Vec<&'a str>, all: &mut String) {
    let ran = sandbox.run(&[path.as_slice(), &["--help"]].concat());
    let name = [&["metalform"], path.as_slice()].concat().join(" ");
    writeln!(all, "## {name}\n\n{}", ran.ended(0)).unwrap();
    for sub in command.get_subcommands() {
        path.push(sub.get_name());
        visit(sandbox, sub, path, all);
        path.pop();
    }
}
