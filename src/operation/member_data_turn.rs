//! Turns of scripts that work on the data of etcd on one host.

/// The beginning of each such script. A run that is killed does not end its script: without turns, that of the next run
/// would work on the same files at the same time. Waits for up to 100 s.
pub(super) const MEMBER_DATA_TURN: &str = include_str!("member_data_turn.sh");

#[cfg(test)]
mod tests {
    use std::fs::File;

    use super::*;
    use crate::engine::shells::{run, shells};
    use crate::transport::Program;

    #[test]
    fn a_script_begins_when_the_one_before_it_has_ended() {
        let root = tempfile::tempdir().unwrap();
        let turn = MEMBER_DATA_TURN
            .replace("/run/metalform", root.path().to_str().unwrap())
            .replace("flock -w 100", "flock -w 0");
        let program = Program { script: format!("{turn}echo begins\n"), payload: Vec::new() };
        for shell in shells() {
            let begins = || {
                let output = run(shell, &program);
                (output.status, String::from_utf8(output.stdout).unwrap())
            };
            assert_eq!(begins(), (0, "begins\n".to_owned()), "{shell}");
            let before = File::open(root.path().join("etcd-data.lock")).unwrap();
            before.lock().unwrap();
            assert_eq!(begins(), (1, String::new()), "{shell}");
            drop(before);
            assert_eq!(begins(), (0, "begins\n".to_owned()), "{shell}");
        }
    }
}
