//! Guards, and the scripts of `Step::Run`, are shell; what metalform itself writes is known here by its shape.
//! A script of a state is answered from a table of the test, or not at all.

use metalform::operation::host_reset::traces::{DATA, DIRECTORIES};
use metalform::resource::contract::step::UnitVerb;

use super::ScriptedHost;
use super::tree::of_root;
use crate::stage::{BEGUN, MEMBER};

/// A guard that metalform writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KnownGuard {
    /// `test -d PATH`.
    Directory(String),
    /// Whether the bridge of the pods has another address than this one, with its prefix.
    OtherBridge { address: String },
    /// `command -v NAME`.
    Command(String),
    /// Whether a module is loaded or loadable.
    Module(String),
    /// Whether a certificate is of a CA (first path) and has not expired.
    Verified { ca: String, certificate: String },
    /// Whether there are other package sources than one's own.
    OtherSources { patterns: Vec<String>, own: String },
    /// Whether there are disabled package sources.
    DisabledSources { patterns: Vec<String> },
    /// Whether what metalform-pod-network.service has added is in the kernel, where it runs.
    PodNetwork,
}

impl KnownGuard {
    pub fn of(script: &str) -> Option<Self> {
        let words = words(script);
        let word = |position: usize| words.get(position).cloned();
        if words.len() == 3 && script.starts_with("test -d ") {
            return Some(Self::Directory(word(2)?));
        }
        if let Some(rest) = script.strip_prefix("ip -o -4 address show dev cni0 ") {
            let (_, address) = rest.split_once("' ")?;
            return Some(Self::OtherBridge { address: address.split(' ').next()?.to_owned() });
        }
        if script.starts_with("command -v ") {
            return Some(Self::Command(word(2)?));
        }
        if let Some(rest) = script.strip_prefix("test -e /sys/module/") {
            return Some(Self::Module(rest.split(' ').next()?.to_owned()));
        }
        if script.starts_with("openssl verify -CAfile ") {
            return Some(Self::Verified { ca: word(3)?, certificate: word(4)? });
        }
        if script.starts_with("nft list table ip metalform ") || script.starts_with("ip route show exact ") {
            return Some(Self::PodNetwork);
        }
        let patterns = |rest: &str| rest.split(' ').map(str::to_owned).collect();
        let (rest, action) = script.strip_prefix("for f in ")?.split_once("; do ")?;
        if let Some(own) = action.strip_prefix("if [ \"$f\" != ") {
            let own = own.split(' ').next()?.to_owned();
            return Some(Self::OtherSources { patterns: patterns(rest), own });
        }
        action
            .starts_with("if [ -e \"$f\" ]; then")
            .then(|| Self::DisabledSources { patterns: patterns(rest) })
    }
}

/// How a package source is taken out of use.
const DISABLED: &str = ".metalform-disabled";
/// Of the pods.
const BRIDGE: &str = "cni0";
/// Of what was on the host before.
const RECORD: &str = "/var/lib/metalform/before/inventory";
/// Of a reset that has begun.
const RESETTING: &str = "/var/lib/metalform/resetting";

impl ScriptedHost {
    /// The exit status; `None` where nothing is known of such a guard.
    pub fn guard(&self, script: &str) -> Option<i32> {
        let holds = match KnownGuard::of(script) {
            None => return self.guards.get(script).copied(),
            Some(KnownGuard::Directory(path)) => self.tree.is_directory(&path),
            Some(KnownGuard::OtherBridge { address }) => {
                let addresses = self.facts.addresses.get(BRIDGE).into_iter().flatten();
                addresses.map(|own| format!("{}/{}", own.address, own.prefix)).any(|own| own != address)
            }
            Some(KnownGuard::Command(name)) => self.commands.contains(&name),
            Some(KnownGuard::Module(name)) => {
                self.modules.contains(&name) || self.loadable.contains_key(&name)
            }
            Some(KnownGuard::Verified { ca, certificate }) => {
                let of = self.tree.text(&ca).map(|ca| kubelet_certificate(&ca));
                of.is_some() && self.tree.text(&certificate) == of
            }
            Some(KnownGuard::OtherSources { patterns, own }) => !self.others(&patterns, &own).is_empty(),
            Some(KnownGuard::DisabledSources { patterns }) => !self.matching(&patterns).is_empty(),
            Some(KnownGuard::PodNetwork) => true,
        };
        Some(i32::from(!holds))
    }

    /// Files that match any of these patterns.
    pub(super) fn matching(&self, patterns: &[String]) -> Vec<String> {
        patterns.iter().flat_map(|pattern| self.tree.glob(pattern)).collect()
    }

    /// Files with other package sources; one of comments alone is none.
    fn others(&self, patterns: &[String], own: &str) -> Vec<String> {
        let names_a_source = |path: &String| {
            let text = self.tree.text(path).unwrap_or_default();
            text.lines().map(str::trim_start).any(|line| !line.is_empty() && !line.starts_with('#'))
        };
        let mut files = self.matching(patterns);
        files.retain(|path| path != own && names_a_source(path));
        files
    }

    /// Runs a script of metalform's own; false where nothing is known of such a script.
    pub fn run_known(&mut self, script: &str) -> bool {
        if let Some(reference) = script.strip_prefix("ctr -n k8s.io images rm ") {
            return words(reference).pop().is_some_and(|reference| self.images.remove(&reference));
        }
        if let Some(destination) = script.strip_prefix("ip route del ") {
            return self.routes.remove(destination).is_some();
        }
        if script.contains("Supervisors of containers outlive containerd") {
            for directory in DATA.into_iter().chain(DIRECTORIES) {
                self.tree.remove(directory);
            }
            return true;
        }
        if script.contains("metalform-before") {
            self.tree.write(RECORD, "".into(), of_root(0o600), self.clock);
            return true;
        }
        if script.contains("Removes the record of what was there before") {
            self.tree.remove(RESETTING);
            self.tree.remove("/var/lib/metalform/before");
            return true;
        }
        if script.contains("before/brought") {
            return true;
        }
        if script.contains("pods of an earlier part of the pod network do not end") {
            return self.facts.addresses.remove(BRIDGE).is_some();
        }
        if script.contains("the control plane does not end") {
            for pod in ["kube-apiserver", "kube-controller-manager", "kube-scheduler"] {
                self.tree.remove(&format!("/etc/kubernetes/manifests/{pod}.yaml"));
            }
            return true;
        }
        if script.contains("systemctl disable --no-reload \"$@\"") {
            return self.stop_kubelet();
        }
        if script.contains("containers do not end") {
            return self.stop_containers();
        }
        if script.contains("mv -T /var/lib/etcd/member \"/var/lib/etcd/removed-") {
            self.tree.remove("/etc/kubernetes/manifests/etcd.yaml");
            if self.tree.is_directory("/var/lib/etcd/member") {
                let aside = format!("/var/lib/etcd/removed-{}", self.clock);
                self.tree.rename("/var/lib/etcd/member", &aside);
            }
            return true;
        }
        if script.contains("the member has its data") {
            self.tree.remove("/etc/kubernetes/manifests/etcd.yaml");
            return !self.tree.is_directory("/var/lib/etcd/member/wal");
        }
        if script.starts_with("set -- ") && script.contains("--initial-cluster-state=new") {
            if self.tree.get(MEMBER).is_none() {
                self.tree.write(MEMBER, BEGUN.into(), of_root(0o600), self.clock);
            }
            return true;
        }
        match KnownGuard::of(script) {
            Some(KnownGuard::OtherSources { patterns, own }) => {
                for path in self.others(&patterns, &own) {
                    self.tree.rename(&path, &format!("{path}{DISABLED}"));
                }
                true
            }
            Some(KnownGuard::DisabledSources { patterns }) => {
                for path in self.matching(&patterns) {
                    self.tree.rename(&path, path.trim_end_matches(DISABLED));
                }
                true
            }
            _ => false,
        }
    }
}

impl ScriptedHost {
    fn stop_kubelet(&mut self) -> bool {
        if self.tree.glob(RECORD).is_empty() {
            self.tree.write(RESETTING, "".into(), of_root(0o644), self.clock);
        }
        for unit in ["kubelet.service", "kube-proxy.service"] {
            let Self { units, tree, clock, .. } = self;
            for verb in [UnitVerb::Stop, UnitVerb::Disable] {
                // One that was never installed is not stopped.
                let _ = units.act(unit, verb, tree, *clock);
            }
        }
        for path in self.tree.glob("/etc/kubernetes/manifests/*.yaml") {
            self.tree.remove(&path);
        }
        self.tree.remove("/etc/kubernetes/bootstrap-kubelet.conf");
        for path in self.tree.below("/var/lib/kubelet/pki") {
            self.tree.remove(&path);
        }
        true
    }

    fn stop_containers(&mut self) -> bool {
        self.performed.push(ENDS_CONTAINERS.to_owned());
        if self.tree.is_directory("/var/lib/etcd/member") {
            let aside = format!("/var/lib/etcd/removed-{}", self.clock);
            self.tree.rename("/var/lib/etcd/member", &aside);
        }
        true
    }
}

/// What is performed by the script that ends all containers.
pub const ENDS_CONTAINERS: &str = "end all containers";

/// In place of the certificate that a CA signed for the kubelet of a scripted host.
pub fn kubelet_certificate(ca: &str) -> String {
    use sha2::{Digest, Sha256};
    format!("kubelet certificate of CA {}\n", hex::encode(Sha256::digest(ca)))
}

/// The words of a command, with their single quotes taken off.
fn words(text: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        match character {
            '\'' => quoted = !quoted,
            '\\' if !quoted => word.extend(characters.next()),
            ' ' if !quoted => words.push(std::mem::take(&mut word)),
            other => word.push(other),
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_guards_of_metalform_are_known() {
        let survey = metalform::operation::survey::probes();
        let guards = survey.iter().filter_map(|probe| match probe {
            metalform::resource::contract::probe::Probe::Guard { script } => Some(script),
            _ => None,
        });
        let unknown: Vec<&String> = guards.filter(|script| KnownGuard::of(script).is_none()).collect();
        assert!(unknown.is_empty(), "{unknown:#?}");
        assert_eq!(KnownGuard::of("grep -q x /etc/y"), None);
        assert_eq!(words("'it'\\''s' 'a b'"), ["it's", "a b"]);
    }
}
