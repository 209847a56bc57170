//! The binary, as an operator runs it.

use std::path::Path;

use tokio::process::Command;

use crate::workshop::{Pinned, Workshop};

/// 2026-11-24T00:00:00Z.
const DATE: &str = "1795478400";

impl Workshop {
    /// `metalform bundle build` of these components. `wrapper` is the beginning of a shell script that runs it.
    pub fn command(
        &self,
        wrapper: &str,
        (cache, output): (&str, &str),
        components: &[&Pinned<'_>],
    ) -> Command {
        let list = self.at(&format!("{output}.yaml"));
        std::fs::write(&list, self.list(components)).unwrap();
        self.command_of(wrapper, (cache, output), &list)
    }

    pub fn command_of(&self, wrapper: &str, (cache, output): (&str, &str), list: &Path) -> Command {
        let mut command = self.metalform(wrapper);
        command
            .args(["bundle", "build", "--source", "release", "--file"])
            .arg(list)
            .arg("--cache")
            .arg(self.at(cache))
            .arg("--output")
            .arg(self.at(output));
        command
    }

    /// The binary without arguments, in the directory of the workshop.
    pub fn metalform(&self, wrapper: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args(["-euc", &format!("{wrapper}exec \"$0\" \"$@\"")])
            .arg(env!("CARGO_BIN_EXE_metalform"))
            .current_dir(self.directory.path())
            .env("SOURCE_DATE_EPOCH", DATE)
            .env("NO_PROXY", "127.0.0.1")
            .env_remove("METALFORM_ARCHIVE")
            .kill_on_drop(true);
        command
    }
}

/// The exit code and what was written to standard error.
pub async fn run(command: Command) -> (Option<i32>, String) {
    let (code, _, lines) = run_all(command).await;
    (code, lines)
}

/// The exit code and what was written to standard output and to standard error.
pub async fn run_all(mut command: Command) -> (Option<i32>, String, String) {
    let output = command.output().await.unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}
