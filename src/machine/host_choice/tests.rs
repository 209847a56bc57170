use super::super::api::label_selector::tests::{expressions, labels};
use super::*;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

/// `h1 rack=a domain=x failed=7 os=ubuntu arch=arm64 claim=uid/group busy`: names, labels and marks.
fn host(text: &str) -> PoolHost {
    let words: Vec<&str> = text.split_whitespace().collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let state = match (words.contains(&"busy"), words.contains(&"quarantined")) {
        (true, _) => PoolState::Busy,
        (_, true) => PoolState::Quarantined,
        _ => PoolState::Available,
    };
    PoolHost {
        name: words[0].parse().unwrap(),
        state,
        claim: value("claim").map(|claim| claim.split_once('/').unwrap().0.to_owned()),
        labels: labels(
            &words.iter().filter(|word| word.starts_with("rack=")).copied().collect::<Vec<_>>().join(" "),
        ),
        distribution: value("os").map(|os| os.parse().unwrap()),
        architecture: value("arch").map(architecture),
        failure_domain: value("domain").map(str::to_owned),
        last_failure: value("failed").map(|second| at(second.parse().unwrap())),
    }
}

/// The group of the Machine with this UID, in texts of hosts.
fn group<'a>(hosts: &'a str, uid: &str) -> &'a str {
    let mut claims = hosts.split([' ', ',']).filter_map(|word| word.strip_prefix("claim=")?.split_once('/'));
    claims.find(|(machine, _)| *machine == uid).unwrap().1
}

fn architecture(text: &str) -> Architecture {
    if text == "arm64" { Architecture::Arm64 } else { Architecture::Amd64 }
}

/// `m1 rack=a in=x os=ubuntu arch=arm64 group=md noted=h1 created=5`.
fn machine(text: &str) -> WaitingMachine {
    let words: Vec<&str> = text.split_whitespace().collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key)?.strip_prefix('='));
    let selector: Vec<&str> = words.iter().filter(|word| word.contains("rack")).copied().collect();
    WaitingMachine {
        uid: words[0].to_owned(),
        name: words[0].to_owned(),
        created: at(value("created").unwrap_or("0").parse().unwrap()),
        group: value("group").unwrap_or("md").to_owned(),
        noted: value("noted").map(|name| name.parse().unwrap()),
        requirement: HostRequirement {
            selector: expressions(&selector.join(" ")),
            failure_domain: value("in").map(str::to_owned),
            distribution: value("os").map(|os| os.parse().unwrap()),
            architecture: value("arch").map(architecture),
        },
    }
}

fn all<T>(text: &str, one: impl Fn(&str) -> T) -> Vec<T> {
    text.split(',').filter(|text| !text.trim().is_empty()).map(one).collect()
}

fn shown(choices: &BTreeMap<String, HostChoice>) -> String {
    let choice = |choice: &HostChoice| match choice {
        HostChoice::Host(name) => name.to_string(),
        HostChoice::None(_) => "-".to_owned(),
        HostChoice::NotedUnavailable(name) => format!("!{name}"),
    };
    choices.iter().map(|(uid, one)| format!("{uid}:{}", choice(one))).collect::<Vec<_>>().join(" ")
}

#[test]
fn hosts_are_chosen_deterministically() {
    for (machines, hosts, expected) in [
        ("", "h1", ""),
        ("m1", "", "m1:-"),
        ("m1", "h1", "m1:h1"),
        ("m1", "h2, h1", "m1:h1"),
        ("m1, m2", "h1", "m1:h1 m2:-"),
        ("m1, m2", "h1, h2", "m1:h1 m2:h2"),
        // State and claim.
        ("m1", "h1 busy, h2 quarantined, h3", "m1:h3"),
        ("m1", "h1 busy", "m1:-"),
        ("m1", "h1 quarantined", "m1:-"),
        ("m1", "h1 claim=u9/md, h2", "m1:h2"),
        // Selector, distribution, architecture.
        ("m1 rack=a", "h1 rack=b, h2 rack=a", "m1:h2"),
        ("m1 rack=a", "h1, h2 rack=b", "m1:-"),
        ("m1 rack!=a", "h1 rack=a, h2 rack=b", "m1:h2"),
        ("m1 os=ubuntu", "h1, h2 os=debian, h3 os=ubuntu", "m1:h3"),
        ("m1", "h1 os=debian", "m1:h1"),
        ("m1 arch=arm64", "h1 arch=amd64, h2, h3 arch=arm64", "m1:h3"),
        ("m1 os=ubuntu arch=arm64", "h1 os=ubuntu arch=amd64, h2 os=debian arch=arm64", "m1:-"),
        // The oldest first, then by name.
        ("m1 created=9, m2 created=3", "h1", "m1:- m2:h1"),
        ("m2, m1", "h1", "m1:h1 m2:-"),
        // The oldest gets what suits it, the others what suits them.
        ("m1 created=1 rack=a, m2 created=2", "h1 rack=b, h2 rack=a", "m1:h2 m2:h1"),
        // An old one that nothing suits holds up no other.
        ("m1 created=1 rack=z, m2 created=2", "h1 rack=a", "m1:- m2:h1"),
        // The least recent failure, then the name.
        ("m1", "h1 failed=50, h2", "m1:h2"),
        ("m1", "h1 failed=50, h2 failed=20, h3 failed=20", "m1:h2"),
        ("m1, m2, m3", "h1 failed=50, h2 failed=20, h3", "m1:h3 m2:h2 m3:h1"),
        // Spread over failure domains.
        ("m1, m2", "h1 domain=x, h2 domain=x, h3 domain=y", "m1:h1 m2:h3"),
        ("m1, m2, m3", "h1 domain=x, h2 domain=x, h3 domain=y", "m1:h1 m2:h3 m3:h2"),
        ("m1", "h1 domain=x claim=u9/md busy, h2 domain=x, h3 domain=y", "m1:h3"),
        // Only what belongs to the same deployment.
        ("m1", "h1 domain=x claim=u9/other busy, h2 domain=x, h3 domain=y", "m1:h2"),
        ("m1 group=a, m2 group=b", "h1 domain=x, h2 domain=x, h3 domain=y", "m1:h1 m2:h2"),
        // Spreading goes before failures.
        ("m1", "h1 domain=x claim=u9/md busy, h2 domain=x, h3 domain=y failed=9", "m1:h3"),
        // Hosts without a domain are one.
        ("m1", "h0 claim=u9/md busy, h1, h2 domain=y", "m1:h2"),
        // A noted host, or none.
        ("m1 noted=h2", "h1, h2", "m1:h2"),
        ("m1 noted=h2", "h1, h2 busy", "m1:!h2"),
        ("m1 noted=h2", "h1", "m1:!h2"),
        ("m1 noted=h2", "h1, h2 quarantined", "m1:!h2"),
        ("m1 noted=h2", "h1, h2 claim=u9/md", "m1:!h2"),
        // Its own claim, whatever the state, and whether it has noted it.
        ("m1 noted=h2", "h1, h2 claim=m1/md busy", "m1:h2"),
        ("m1", "h1, h2 claim=m1/md", "m1:h2"),
        ("m1 noted=h1", "h1, h2 claim=m1/md", "m1:h2"),
        ("m1", "h1, h2 claim=m1/md busy, h3 claim=m1/md busy", "m1:h2"),
        // What is noted is taken, also for those that have waited longer.
        ("m1 created=1, m2 created=2 noted=h1", "h1", "m1:- m2:h1"),
        ("m1 created=1, m2 created=2 noted=h1", "h1, h2", "m1:h2 m2:h1"),
        // Two have noted one host: the first gets it.
        ("m1 created=2 noted=h1, m2 created=1 noted=h1", "h1, h2", "m1:!h1 m2:h1"),
        // What is noted keeps its host though the template's selector no longer matches.
        ("m1 rack=a noted=h1", "h1 rack=b, h2 rack=a", "m1:h1"),
        // Two requirements share hosts.
        ("m1 created=1, m2 created=2 rack=a, m3 created=3", "h1 rack=a, h2 rack=a", "m1:h1 m2:h2 m3:-"),
        // What was noted counts for the spread.
        ("m1 noted=h1, m2", "h1 domain=x, h2 domain=x, h3 domain=y", "m1:h1 m2:h3"),
    ] {
        let (text, mut machines, mut hosts) = (hosts, all(machines, machine), all(hosts, host));
        for _ in 0..2 {
            let got = choose(&machines, &hosts.iter().collect::<Vec<_>>(), |uid| group(text, uid));
            assert_eq!(shown(&got), expected, "{machines:?} {hosts:?}");
            let given: Vec<_> = got.values().filter(|choice| matches!(choice, HostChoice::Host(_))).collect();
            let distinct: BTreeSet<String> = given.iter().map(|choice| format!("{choice:?}")).collect();
            assert_eq!(given.len(), distinct.len(), "a host twice");
            machines.reverse();
            // Two claims of one Machine are a defect: the first in the list is kept.
            if !hosts.iter().any(|host| host.name.as_str() == "h3" && host.claim.is_some()) {
                hosts.reverse();
            }
        }
    }
}

#[test]
fn a_shortage_names_every_reason() {
    for (requirement, hosts, expected) in [
        ("m0", "", "the pool has no hosts"),
        ("m0", "h1", "no host is free: all in use"),
        (
            "m0 rack=a os=ubuntu arch=arm64",
            "h1 rack=b, h2 rack=a os=debian, h3 rack=a os=ubuntu arch=amd64, h4 rack=a os=ubuntu arch=arm64 busy, \
             h5 rack=a os=ubuntu arch=arm64 quarantined, h6",
            "no host is free: some in use, some quarantined, some with labels that the selector does not match, some with \
             another distribution, some with another architecture",
        ),
    ] {
        let hosts = all(hosts, host);
        // The first takes what is free, if anything is.
        let first = machine(requirement);
        let second = WaitingMachine { uid: "z".to_owned(), name: "z".to_owned(), ..first.clone() };
        let choices = choose(&[first, second], &hosts.iter().collect::<Vec<_>>(), |_| "");
        let HostChoice::None(shortage) = &choices["z"] else { panic!("{choices:?}") };
        assert_eq!(shortage.to_string(), expected);
    }
}

#[test]
fn free_hosts_are_those_that_a_new_machine_could_have() {
    for (requirement, machines, hosts, expected) in [
        ("m0", "", "h1, h2 busy, h3 quarantined, h4 claim=u9/md, h5", 2),
        ("m0 rack=a", "", "h1 rack=a, h2 rack=b", 1),
        ("m0", "m1 noted=h1", "h1, h2", 1),
        ("m0", "m1", "h1, h2", 2),
        ("m0", "", "", 0),
    ] {
        let requirement = machine(requirement).requirement;
        let free = all(hosts, host);
        let free = free_hosts(&requirement, &all(machines, machine), &free.iter().collect::<Vec<_>>());
        assert_eq!(free, expected, "{hosts}");
    }
}
