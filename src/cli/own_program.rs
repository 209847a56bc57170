//! The program that runs, as a component of bundles.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::CommandFactory;
use clap_complete::Shell;
use clap_mangen::Man;

use super::failure::{Exit, Failure};
use super::{Cli, completion};
use crate::bundle::own_program::{OwnProgram, RUNNING};

/// The program that runs, and others of its version (`--program`).
pub(super) fn own_program(others: &[PathBuf]) -> Result<OwnProgram, Failure> {
    OwnProgram::read(Path::new(RUNNING), others, documents())
        .map_err(|error| Failure::from_error(Exit::Configuration, &error))
}

/// A manual page for each command, as `metalform-bundle-build(1)`, and the completion script of the shell that every
/// distribution has: absolute path → text.
fn documents() -> BTreeMap<String, String> {
    let mut command = Cli::command().disable_help_subcommand(true);
    command.build();
    let mut documents = BTreeMap::new();
    add_pages(command, &mut documents);
    let path = "/usr/share/bash-completion/completions/metalform";
    documents.insert(path.to_owned(), completion::script(Shell::Bash));
    documents
}

fn add_pages(command: clap::Command, pages: &mut BTreeMap<String, String>) {
    for command in command.get_subcommands().filter(|command| !command.is_hide_set()).cloned() {
        add_pages(command, pages);
    }
    let page = Man::new(command);
    let mut text = Vec::new();
    page.render(&mut text).expect("a page can be written to memory");
    let path = format!("/usr/share/man/man1/{}", page.get_filename());
    pages.insert(path, String::from_utf8_lossy(&text).into_owned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_a_manual_page() {
        let documents = documents();
        let page = |name: &str| documents.get(&format!("/usr/share/man/man1/{name}.1")).unwrap();
        for name in
            ["metalform", "metalform-deploy-node", "metalform-bundle-build", "metalform-etcd-snapshot"]
        {
            assert!(page(name).contains(".SH SYNOPSIS"), "{name}");
        }

        assert!(documents["/usr/share/bash-completion/completions/metalform"].contains("deploy-node"));
    }

    #[test]
    fn pages_do_not_depend_on_the_environment() {
        let page = &documents()["/usr/share/man/man1/metalform-bundle-build.1"];
        assert!(page.contains("METALFORM_CACHE") && !page.contains("METALFORM_CACHE="), "{page}");
    }
}
