//! Packages: one query of dpkg's or rpm's database.

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote_all;
use crate::resource::contract::probe::{Answer, InstalledPackage, Probe};

/// A line: name, architecture, hold, status, version.
const DPKG: &str = r"${Package}\t${Architecture}\t${db:Status-Want}\t${db:Status-Status}\t${Version}\n";

/// The same fields; rpm lists only installed packages. The epoch is printed only where there is one, in the form that
/// dnf accepts.
const RPM: &str = r"%{NAME}\t%{ARCH}\tinstall\tinstalled\t%|EPOCH?{%{EPOCH}:}:{}|%{VERSION}-%{RELEASE}\n";

/// Names of packages whose files may be empty, whatever dpkg's database has (`install_packages` in apt.sh).
const UNSYNCED: &str = "[ ! -f /var/lib/metalform/transaction ] || cat /var/lib/metalform/transaction\n";

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let words = quote_all(questions.packages.iter().copied());
    let query = format!(
        "if command -v dpkg-query >/dev/null; then dpkg-query -W -f='{DPKG}' -- {words} 2>/dev/null\n\
         elif command -v rpm >/dev/null; then rpm -q --qf '{RPM}' -- {words} 2>/dev/null\n\
         else echo none; fi\n"
    );
    // dnf 4 and dnf 5.
    let locks = "for f in /etc/dnf/plugins/versionlock.list /etc/dnf/versionlock.toml; do\n\
                 [ ! -f \"$f\" ] || cat \"$f\"\ndone\n";
    vec![("packages", query), ("version-locks", locks.to_owned()), ("unsynced-packages", UNSYNCED.to_owned())]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let (text, locks) = (sections.text("packages")?, sections.text("version-locks")?);
    let unsynced = sections.text("unsynced-packages")?;
    for name in questions.packages.iter().copied() {
        let answer = if text.trim() == "none" {
            Answer::Failed("the host has neither dpkg nor rpm".to_owned())
        } else {
            let mut package = text.lines().find_map(|line| installed(line, name, &locks));
            if let Some(package) = &mut package {
                package.configured &= !is_unsynced(name, &unsynced);
            }
            Answer::Package(package)
        };
        answers.insert(Probe::Package { name: name.to_owned() }, answer);
    }
    Ok(())
}

fn is_unsynced(name: &str, unsynced: &str) -> bool {
    unsynced.lines().any(|line| name.split(':').next() == Some(line))
}

/// dpkg keeps the names of packages that it has removed, too.
fn installed(line: &str, name: &str, locks: &str) -> Option<InstalledPackage> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [package, architecture, want, status, version] = fields.as_slice() else { return None };
    let same = match name.split_once(':') {
        Some((wanted, of)) => wanted == *package && of == *architecture,
        None => name == *package,
    };
    let there = same && !matches!(*status, "not-installed" | "config-files");
    there.then(|| InstalledPackage {
        configured: *status == "installed",
        version: (*version).to_owned(),
        held: *want == "hold" || locks.lines().any(|line| locked(line, package)),
    })
}

/// A line of versionlock.list is `NAME-EPOCH:VERSION-RELEASE.*`, or a pattern of names; one of versionlock.toml
/// is `name = "NAME"`.
fn locked(line: &str, package: &str) -> bool {
    let line = line.trim();
    let named = || {
        line.strip_prefix("name")?.trim_start().strip_prefix('=')?.trim().strip_prefix('"')?.strip_suffix('"')
    };
    line == package
        || named() == Some(package)
        || line
            .strip_prefix(package)
            .and_then(|rest| rest.strip_prefix('-'))
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()) || rest == "*")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    use super::*;
    use crate::engine::nonce::Nonce;
    use crate::engine::observe::{parse, program};
    use crate::engine::shells::{run, shells};
    use crate::transport::Program;

    /// dpkg's own part is played by a script.
    #[test]
    fn a_package_that_was_not_synced_is_there_and_not_configured() {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name).display().to_string();
        let line = |name: &str| format!("'{name}\tamd64\tinstall\tinstalled\t1.1'");
        let stub = format!("#!/bin/sh\nprintf '%s\\n' {} {}\n", line("runc"), line("socat"));
        fs::write(at("dpkg-query"), stub).unwrap();
        fs::set_permissions(at("dpkg-query"), fs::Permissions::from_mode(0o755)).unwrap();
        let (nonce, probe) = (Nonce::new(5), |name: &str| Probe::Package { name: name.to_owned() });
        let probes = BTreeSet::from([probe("runc"), probe("socat:amd64")]);
        let script = program(&probes, &nonce).script.replace("/var/lib/metalform/transaction", &at("noted"));
        for shell in shells() {
            for (noted, expected) in
                [("", [true, true]), ("libc6\nrunc\n", [false, true]), ("socat\n", [true, false])]
            {
                fs::write(at("noted"), noted).unwrap();
                let script = format!("PATH={}:$PATH\n{script}", at(""));
                let output = run(shell, &Program { script, payload: Vec::new() });
                let observed = parse(&probes, &nonce, &output).unwrap();
                let configured = |probe: &Probe| match observed.get(probe) {
                    Some(Answer::Package(Some(package))) => package.configured,
                    other => panic!("{shell}: {other:?}"),
                };
                let found: Vec<bool> = probes.iter().map(configured).collect();
                assert_eq!(found, expected, "{shell}: {noted:?}");
            }
        }
    }

    #[test]
    fn a_line_concerns_its_own_package_only() {
        let dpkg = "containerd\tamd64\thold\tinstalled\t1.7.24~ds1-6+b4";
        let rpm = "kubelet\tx86_64\tinstall\tinstalled\t1.35.4-1";
        let lock = "# added\nkubelet-0:1.35.4-1.*\n";
        let cases = [
            (dpkg, "containerd", "", Some(("1.7.24~ds1-6+b4", true))),
            (dpkg, "containerd:amd64", "", Some(("1.7.24~ds1-6+b4", true))),
            (dpkg, "containerd:arm64", "", None),
            (dpkg, "container", "", None),
            ("runc\tamd64\tdeinstall\tconfig-files\t1.1", "runc", "", None),
            (rpm, "kubelet", "", Some(("1.35.4-1", false))),
            (rpm, "kubelet", lock, Some(("1.35.4-1", true))),
            (rpm, "kubelet", "[[packages]]\nname = \"kubelet\"\n", Some(("1.35.4-1", true))),
            (rpm, "kubelet", "[[packages]]\nname = \"kubelet-extra\"\n", Some(("1.35.4-1", false))),
            (rpm, "kubelet", "kubelet-extra-0:1-1.*", Some(("1.35.4-1", false))),
            ("package kubelet is not installed", "kubelet", "", None),
        ];
        for (line, name, locks, expected) in cases {
            let found = installed(line, name, locks);
            let package = |(version, held): (&str, bool)| InstalledPackage {
                version: version.to_owned(),
                held,
                configured: true,
            };
            assert_eq!(found, expected.map(package), "{line} {name} {locks}");
        }
    }

    #[test]
    fn a_package_that_was_only_unpacked_is_there_and_not_configured() {
        for status in ["unpacked", "half-configured", "half-installed"] {
            let line = format!("runc\tamd64\tinstall\t{status}\t1.1");
            assert!(!installed(&line, "runc", "").unwrap().configured, "{status}");
        }
    }
}
