//! A temporary directory with a tree and a target, and runs of the binary that see nothing else.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// What a run left.
#[derive(Debug, PartialEq, Eq)]
#[must_use]
pub struct Ran {
    pub code: i32,
    /// With the temporary directory as `$DIR`, and times as `TIME`.
    pub stdout: String,
    /// With the temporary directory as `$DIR`.
    pub stderr: String,
}

impl Ran {
    /// Its standard output, of a run that must have ended so.
    pub fn ended(self, code: i32) -> String {
        assert_eq!(self.code, code, "{}{}", self.stdout, self.stderr);
        self.stdout
    }
}

/// Text with `TIME` for every `1.23 s`.
fn timeless(text: &str) -> String {
    let mut pieces = text.split(" s").peekable();
    let mut timeless = String::new();
    while let Some(piece) = pieces.next() {
        let number = piece.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.').len();
        let is_time = piece[number..].split_once('.').is_some_and(|(_, cents)| cents.len() == 2);
        let (before, after) = if is_time { (&piece[..number], "TIME") } else { (piece, " s") };
        timeless.push_str(before);
        if pieces.peek().is_some() {
            timeless.push_str(after);
        } else if is_time {
            timeless.push_str(&piece[number..]);
        }
    }
    timeless
}

pub struct Sandbox {
    directory: tempfile::TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        let sandbox = Self { directory: tempfile::tempdir().unwrap() };
        sandbox.write("tree/states/top.yaml", "node: {states: [files]}\n");
        sandbox
    }

    pub fn path(&self, relative: &str) -> PathBuf {
        self.directory.path().join(relative)
    }

    /// Writes a file; `$DIR` in its text becomes the directory.
    pub fn write(&self, relative: &str, text: &str) {
        let path = self.path(relative);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text.replace("$DIR", self.root())).unwrap();
    }

    fn root(&self) -> &str {
        self.directory.path().to_str().unwrap()
    }

    /// The binary here, with an environment of PATH alone. `$DIR` in an argument is the directory.
    pub fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.command_of(env!("CARGO_BIN_EXE_metalform"));
        command.args(arguments.iter().map(|argument| argument.replace("$DIR", self.root())));
        command
    }

    /// A program here, with an environment of PATH alone.
    pub fn command_of(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        command
            .current_dir(self.directory.path())
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command
    }

    /// Runs it to its end.
    pub fn run(&self, arguments: &[&str]) -> Ran {
        self.ran(self.command(arguments).output().unwrap())
    }

    /// What a run that has ended left.
    pub fn ran(&self, output: Output) -> Ran {
        let text = |bytes: Vec<u8>| timeless(&String::from_utf8(bytes).unwrap().replace(self.root(), "$DIR"));
        Ran { code: output.status.code().unwrap(), stdout: text(output.stdout), stderr: text(output.stderr) }
    }

    /// A command of the state engine with the tree and on this machine, as the host `node-1` of a roster.
    pub fn engine(&self, verb: &str, arguments: &[&str]) -> Ran {
        let mut all = vec![verb, "--tree", "$DIR/tree"];
        if self.path("roster.yaml").exists() {
            all.extend(["--roster", "$DIR/roster.yaml", "--on", "node-1"]);
        }
        all.push("--local");
        all.extend(arguments);
        self.run(&all)
    }

    /// Every path below a folder, with what it is: the whole of what a run could have changed.
    pub fn listing(&self, folder: &str) -> Vec<String> {
        fn walk(root: &Path, path: &Path, lines: &mut Vec<String>) {
            let mut entries: Vec<PathBuf> =
                std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()).collect();
            entries.sort();
            for path in entries {
                let kind = path.symlink_metadata().unwrap().file_type();
                let name = path.strip_prefix(root).unwrap().display().to_string();
                if kind.is_symlink() {
                    lines.push(format!("{name} -> {}", std::fs::read_link(&path).unwrap().display()));
                } else if kind.is_dir() {
                    lines.push(format!("{name}/"));
                    walk(root, &path, lines);
                } else {
                    lines.push(format!("{name}: {:?}", std::fs::read_to_string(&path).unwrap()));
                }
            }
        }
        let mut lines = Vec::new();
        let root = self.path(folder);
        if root.exists() {
            walk(&root, &root, &mut lines);
        }
        lines.into_iter().map(|line| line.replace(self.root(), "$DIR")).collect()
    }
}
