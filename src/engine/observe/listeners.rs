//! Listeners: one list of all TCP sockets that listen.

use std::collections::BTreeSet;

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::resource::contract::probe::{Answer, Probe};

pub(super) fn ask(_: &Questions<'_>) -> Vec<Section> {
    vec![("listeners", "ss -Hltn 2>&1 || echo \"exit status $?\"\n".to_owned())]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("listeners")?;
    let failed = text.trim_end().lines().last().filter(|line| line.starts_with("exit status "));
    let ports: BTreeSet<u16> = text.lines().filter_map(port).collect();
    for &port in &questions.listeners {
        let answer = match failed {
            Some(_) => Answer::Failed(text.trim().replace('\n', ", ")),
            None => Answer::Listener(ports.contains(&port)),
        };
        answers.insert(Probe::Listener { port }, answer);
    }
    Ok(())
}

/// Of a line such as `LISTEN 0 4096 [::1]:10248 [::]:*`.
fn port(line: &str) -> Option<u16> {
    let (_, port) = line.split_ascii_whitespace().nth(3)?.rsplit_once(':')?;
    port.parse().ok()
}

#[cfg(test)]
mod tests {
    use std::net::TcpListener;

    use super::*;
    use crate::engine::nonce::Nonce;
    use crate::engine::observe::{parse, program, tests::answered};
    use crate::engine::shells::{run, shells};

    #[test]
    fn a_port_of_any_address_is_found() {
        let list = "LISTEN 0 4096 127.0.0.1:10248 0.0.0.0:*\nLISTEN 0 4096 [::ffff:10.0.0.1]:2380 *:*\n\
                    LISTEN 0 128 *:22 *:*\nLISTEN 0 128 192.0.2.1%eth0:7443 0.0.0.0:*\n";
        let asked = [10248, 2380, 22, 7443, 4096].map(|port| Probe::Listener { port });
        let found = answered(&asked, &[("listeners", list)]);
        assert_eq!(found, [true, true, true, true, false].map(Answer::Listener));
    }

    #[test]
    fn a_host_that_cannot_list_them_says_so() {
        let asked = [Probe::Listener { port: 22 }];
        let found = answered(&asked, &[("listeners", "sh: ss: not found\nexit status 127\n")]);
        assert_eq!(found, [Answer::Failed("sh: ss: not found, exit status 127".to_owned())]);
    }

    #[test]
    fn a_listener_of_this_machine_is_found() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let probes = BTreeSet::from([Probe::Listener { port }]);
        for shell in shells() {
            let observed =
                parse(&probes, &Nonce::new(3), &run(shell, &program(&probes, &Nonce::new(3)))).unwrap();
            assert_eq!(observed.get(&Probe::Listener { port }), Some(&Answer::Listener(true)), "{shell}");
        }
    }
}
