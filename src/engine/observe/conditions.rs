//! Conditions of waits: each is checked by a process of its own, all at once, so that they take no longer than one.

use std::collections::BTreeMap;

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::conditions;
use crate::engine::frame::Sections;
use crate::resource::contract::probe::{Answer, Probe};

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let mut script = conditions::FUNCTIONS.to_owned();
    for (number, condition) in questions.conditions.iter().copied().enumerate() {
        // Short lines are written atomically, so that those of several processes do not mix (pipe(7)).
        script.push_str(&format!(
            "{{ {}; printf '%s %s %s\\n' {number} $? \"$seen\"; }} &\n",
            conditions::call(condition)
        ));
    }
    script.push_str("wait\n");
    vec![("conditions", script)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("conditions")?;
    let lines: BTreeMap<usize, (&str, &str)> = text.lines().filter_map(parse).collect();
    for (number, condition) in questions.conditions.iter().copied().enumerate() {
        let answer = match lines.get(&number) {
            Some(("0", _)) => Answer::Condition(None),
            Some(("1", seen)) => Answer::Condition(Some((*seen).to_owned())),
            Some((_, why)) => Answer::Failed((*why).to_owned()),
            None => Answer::Failed("the host returned no result".to_owned()),
        };
        answers.insert(Probe::Condition(condition.clone()), answer);
    }
    Ok(())
}

fn parse(line: &str) -> Option<(usize, (&str, &str))> {
    let (number, rest) = line.split_once(' ')?;
    Some((number.parse().ok()?, rest.split_once(' ')?))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    use super::*;
    use crate::engine::nonce::Nonce;
    use crate::engine::observe::{parse as parse_all, program};
    use crate::engine::shells::{run, shells};
    use crate::resource::contract::host_condition::HostCondition;

    fn observed(shell: &str, conditions: &[HostCondition]) -> Vec<Answer> {
        let probes: BTreeSet<Probe> = conditions.iter().cloned().map(Probe::Condition).collect();
        let nonce = Nonce::new(4);
        let observed = parse_all(&probes, &nonce, &run(shell, &program(&probes, &nonce))).unwrap();
        let answer =
            |condition: &HostCondition| observed.get(&Probe::Condition(condition.clone())).unwrap().clone();
        conditions.iter().map(answer).collect()
    }

    fn port(host: &str, port: u16) -> HostCondition {
        HostCondition::Port { host: host.to_owned(), port }
    }

    /// A server that answers every request with 503, and its port.
    fn busy() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 1024]);
                let _ =
                    stream.write_all(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
            }
        });
        port
    }

    fn closed() -> u16 {
        TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
    }

    #[test]
    fn a_condition_holds_or_has_a_reason() {
        let (open, closed) = (busy(), closed());
        let url = |port: u16, status| HostCondition::Http {
            url: format!("http://127.0.0.1:{port}/it's?a=[b]&c=$(d)"),
            status,
            ca: None,
        };
        let file = |path: &str| HostCondition::File { path: path.to_owned() };
        let conditions = [
            port("127.0.0.1", open),
            port("127.0.0.1", closed),
            url(open, 503),
            url(open, 200),
            url(closed, 200),
            file("/proc/self/exe"),
            file("/no such 'file'\n-x"),
        ];
        for shell in shells() {
            let answers = observed(shell, &conditions);
            let seen = |answer: &Answer| match answer {
                Answer::Condition(seen) => seen.clone(),
                other => panic!("{shell}: {other:?}"),
            };
            assert_eq!(seen(&answers[0]), None, "{shell}");
            assert_eq!(seen(&answers[1]).as_deref(), Some("Connection refused"), "{shell}");
            assert_eq!(seen(&answers[2]), None, "{shell}");
            assert_eq!(seen(&answers[3]).as_deref(), Some("status 503"), "{shell}");
            assert!(seen(&answers[4]).unwrap().contains("onnect"), "{shell}: {:?}", answers[4]);
            assert_eq!(seen(&answers[5]), None, "{shell}");
            assert_eq!(seen(&answers[6]).as_deref(), Some("it does not exist"), "{shell}");
        }
    }

    #[test]
    fn a_host_uses_the_tools_that_it_has() {
        let (open, closed) = (busy(), closed());
        let bin = tempfile::tempdir().unwrap();
        let have = |tools: &[&str]| {
            let dir = bin.path().join(format!("with {}", tools.join(" ")));
            std::fs::create_dir(&dir).unwrap();
            for tool in [&["timeout"], tools].concat() {
                let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
                    .map(|dir| dir.join(tool))
                    .find(|path| path.exists());
                std::os::unix::fs::symlink(found.unwrap(), dir.join(tool)).unwrap();
            }
            dir
        };
        let look = |tools: &std::path::Path, condition: &HostCondition| {
            let script = format!(
                "PATH={}\n{}{}; echo \"$? $seen\"",
                crate::model::shell_word::quote(tools.to_str().unwrap()),
                conditions::FUNCTIONS,
                conditions::call(condition)
            );
            let output = run("sh", &crate::transport::Program { script, payload: Vec::new() });
            assert_eq!(String::from_utf8_lossy(&output.stderr), "");
            String::from_utf8(output.stdout).unwrap()
        };
        let url = |port: u16, status| HostCondition::Http {
            url: format!("http://127.0.0.1:{port}/"),
            status,
            ca: None,
        };
        let curl = have(&["curl"]);
        assert!(look(&curl, &port("127.0.0.1", open)).starts_with("0 "));
        let refused = look(&curl, &port("127.0.0.1", closed));
        assert!(refused.starts_with("1 ") && refused.contains("onnect"), "{refused}");
        let wget = have(&["wget"]);
        assert!(look(&wget, &url(open, 503)).starts_with("0 "));
        assert_eq!(look(&wget, &url(open, 200)), "1 status 503\n");
        assert!(look(&wget, &url(closed, 200)).starts_with("1 "));
        let nothing = have(&[]);
        assert_eq!(
            look(&nothing, &port("127.0.0.1", open)),
            "2 the host has neither bash, curl nor nc to try a port with\n"
        );
        assert_eq!(
            look(&nothing, &url(open, 200)),
            "2 the host has neither curl nor wget to ask a URL with\n"
        );
    }

    #[test]
    fn many_silent_ports_take_no_longer_than_one() {
        // 192.0.2.0/24 is for documentation (RFC 5737): no host answers, or there is no route.
        let conditions: Vec<HostCondition> = (1..=8).map(|n| port(&format!("192.0.2.{n}"), 9)).collect();
        let begun = std::time::Instant::now();
        for answer in observed("sh", &conditions) {
            assert!(matches!(answer, Answer::Condition(Some(_))), "{answer:?}");
        }
        assert!(begun.elapsed().as_secs() < 8, "{:?}", begun.elapsed());
    }
}
