//! Scripts of states that run in a shell of their own.
//!
//! Argument lists and, to a lesser degree, environments of processes are readable by other users (proc_pid_cmdline(5)).
//! A script of a state may contain a password, so the shell that runs it reads it from a pipe that only `printf`, a
//! builtin of the shell, writes to.

/// A command that runs the script that it reads from file descriptor 9, up to its end. The script runs as with
/// `sh -c`: without arguments, and with the standard input of this command.
pub(super) const INTERPRETER: &str = r#"sh -c 'eval "exec 9<&-
$(cat <&9)"'"#;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use crate::engine::apply::{PackageManager, Work, program, segments};
    use crate::engine::nonce::Nonce;
    use crate::engine::observe;
    use crate::engine::shells::{run, shells};
    use crate::resource::contract::probe::{Answer, Probe};
    use crate::resource::contract::step::Step;

    /// Writes every argument list of this machine to a file, and contains a secret.
    fn spy(file: &std::path::Path, secret: &str) -> String {
        format!(
            ": \"it's {secret}\"; cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' >'{}'; \
             [ \"$#\" = 0 ] && exit 3",
            file.display()
        )
    }

    #[test]
    fn a_command_and_a_guard_are_in_no_argument_list() {
        for (number, shell) in shells().into_iter().enumerate() {
            let dir = tempfile::tempdir().unwrap();
            let secret = format!("hunter2-{}-{number}", std::process::id());
            let seen = dir.path().join("seen");
            let script = spy(&seen, &secret);
            let nonce = Nonce::new(3);

            let guard = BTreeSet::from([Probe::Guard { script: script.clone() }]);
            let output = run(shell, &observe::program(&guard, &nonce));
            let observed = observe::parse(&guard, &nonce, &output).unwrap();
            assert_eq!(observed.0.values().next(), Some(&Answer::Guard(3)), "{shell}");
            let during_guard = std::fs::read_to_string(&seen).unwrap();

            let work = Work { id: "command:a".to_owned(), steps: vec![Step::Run { script }] };
            let output = run(shell, &program(&segments(&[work])[0], PackageManager::Apt, "", &nonce));
            let printed = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(printed.contains("fail 0 3"), "{shell}: {printed}");
            let during_command = std::fs::read_to_string(&seen).unwrap();
            for arguments in [during_guard, during_command] {
                assert!(arguments.contains("exec 9<&-"), "the spy saw no shell: {arguments}");
                let lines: Vec<&str> = arguments.lines().filter(|line| line.contains(&secret)).collect();
                assert!(lines.is_empty(), "{shell}: {lines:?}");
            }
        }
    }

    #[test]
    fn a_script_runs_as_it_would_by_itself() {
        for shell in shells() {
            let dir = tempfile::tempdir().unwrap();
            let file = dir.path().join("file");
            let script = format!(
                "cat <<'END' >'{0}'\n$HOME \\ `id` %s\nEND\ncat >>'{0}'; echo \"$0 $#\" >>'{0}'\n(exit 7) || echo $? >>'{0}'\n\n",
                file.display()
            );
            let work = Work { id: "command:a".to_owned(), steps: vec![Step::Run { script }] };
            let output = run(shell, &program(&segments(&[work])[0], PackageManager::Apt, "", &Nonce::new(3)));
            assert_eq!(output.status, 0, "{shell}: {output:?}");
            assert_eq!(std::fs::read_to_string(&file).unwrap(), "$HOME \\ `id` %s\nsh 0\n7\n", "{shell}");
        }
    }
}
