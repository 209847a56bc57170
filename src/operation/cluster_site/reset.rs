//! What a host was before it became a node: recorded, compared, and restored.

use std::collections::BTreeSet;

use super::ClusterSite;
use crate::model::role::Role;
use crate::operation::effect::{KeepData, Observation, Returned};
use crate::operation::goal::NodeGoal;
use crate::operation::host_reset::inventory::{HostInventory, differences};
use crate::operation::host_reset::other_roles::other_roles;
use crate::operation::host_reset::removal::{brought, dependents, removal};
use crate::operation::host_reset::section::Section;
use crate::operation::host_reset::traces::{PACKAGE_USERS, Traces};
use crate::operation::inputs::NodeInputs;
use crate::operation::layer::Layer;
use crate::operation::observed::layer_plan::LayerPlan;
use crate::operation::script_turn::host_record_turn;
use crate::operation::site::EffectError;
use crate::state::Compiled;
use crate::workspace::layout::Layout;
use crate::workspace::trust;

/// Whatever roles the Node has now, it may have had others.
const ROLES: [Role; 5] = [Role::Node, Role::Etcd, Role::Master, Role::Mirror, Role::Infra];

impl ClusterSite {
    /// Nothing where it was recorded before, or metalform has changed the host without a record.
    pub(super) async fn record_host(&self) -> Result<(), EffectError> {
        let script = concat!(
            include_str!("installed_packages.sh"),
            include_str!("inventory.sh"),
            include_str!("record_host.sh")
        );
        self.output("host:record", host_record_turn() + script).await.map(drop)
    }

    /// Which packages came with those of the node.
    pub(super) async fn record_packages(&self) -> Result<(), EffectError> {
        let script = concat!(
            include_str!("recorded.sh"),
            include_str!("installed_packages.sh"),
            include_str!("record_packages.sh")
        );
        self.output("host:record", host_record_turn() + script).await.map(drop)
    }

    pub(super) async fn plan_removal(&self, inputs: &NodeInputs) -> Result<Observation, EffectError> {
        let compiled = self.every_role(inputs)?;
        let traces = self.traces(&compiled, KeepData(false));
        let packages = words("packages", &traces.packages);
        let script = concat!(
            include_str!("recorded.sh"),
            include_str!("installed_packages.sh"),
            include_str!("brought_packages.sh"),
            include_str!("plan_removal.sh")
        );
        let printed = self.output("host:plan", packages + script).await?;
        let before = recorded(&printed);
        let stays =
            |name: &str| before.as_ref().is_some_and(|before| before.get(Section::Package, name).is_some());
        let others = dependents(&printed, |name| traces.packages.contains(name) && !stays(name));
        if !others.is_empty() {
            let needs = |name: &str| (format!("package:{name}"), "it needs a package of the node".to_owned());
            let refused = LayerPlan::Refused(others.into_iter().map(needs).collect());
            return Ok(Observation::Plan(Layer::Removed, refused));
        }
        let cluster = self.cluster(&inputs.facts)?;
        let desired = self.declared(removal(compiled, before.as_ref(), &brought(&printed)), &cluster)?;
        let plan = self.ports.host.plan(desired, &inputs.facts).await?;
        Ok(Observation::Plan(Layer::Removed, LayerPlan::of(plan)))
    }

    /// What states of other roles have, and none of the node's own.
    pub(super) async fn plan_other_roles(&self, inputs: &NodeInputs) -> Result<Observation, EffectError> {
        let cluster = self.cluster(&inputs.facts)?;
        let own = self.compiled(&Layer::Removed, inputs, &self.spec, &cluster)?;
        let others = other_roles(self.every_role(inputs)?, &own, &self.trust_files());
        let desired = self.declared(removal(others, None, &[]), &cluster)?;
        let plan = self.ports.host.plan(desired, &inputs.facts).await?;
        Ok(Observation::Plan(Layer::OtherRoles, LayerPlan::of(plan)))
    }

    pub(super) async fn clear_host(
        &self,
        inputs: &NodeInputs,
        keep: KeepData,
    ) -> Result<Returned, EffectError> {
        let traces = self.traces(&self.every_role(inputs)?, keep);
        let given = [
            words("directories", traces.directories()),
            words("files", &traces.files),
            words("networks", &traces.networks),
            words("sysctls", &traces.sysctls),
            words("units", &traces.units),
            words("users", PACKAGE_USERS),
        ];
        let script = concat!(
            include_str!("recorded.sh"),
            include_str!("installed_packages.sh"),
            include_str!("pod_processes.sh"),
            include_str!("end_pods.sh"),
            include_str!("end_containers.sh"),
            include_str!("brought_packages.sh"),
            include_str!("clear_packages.sh"),
            include_str!("clear_host.sh")
        );
        self.run("host:clear", &(given.concat() + script)).await
    }

    pub(super) async fn host_differences(
        &self,
        inputs: &NodeInputs,
        keep: KeepData,
    ) -> Result<Observation, EffectError> {
        let traces = self.traces(&self.every_role(inputs)?, keep);
        let script = concat!(
            include_str!("installed_packages.sh"),
            include_str!("inventory.sh"),
            include_str!("compare_host.sh")
        );
        let printed = self.output("host:compare", script.to_owned()).await?;
        let (before, now) = printed.split_once("\n--\n").unwrap_or(("", &printed));
        let now = HostInventory::parse(now);
        Ok(Observation::HostDifferences(differences(recorded(before).as_ref(), &now, &traces)))
    }

    pub(super) async fn forget_host(&self) -> Result<Returned, EffectError> {
        self.run("host:forget", include_str!("forget_host.sh")).await
    }

    /// Paths of the cluster's keys, and of what they issued to the bootstrap node, where this is that node.
    fn trust_files(&self) -> BTreeSet<String> {
        if !self.goal.first {
            return BTreeSet::new();
        }
        let files = trust::files(&Layout::default(), &self.workspace.subject);
        files.iter().map(|file| file.path.display().to_string()).collect()
    }

    fn every_role(&self, inputs: &NodeInputs) -> Result<Vec<Compiled>, EffectError> {
        let cluster = self.cluster(&inputs.facts)?;
        let goal = NodeGoal { roles: ROLES.into(), ..inputs.goal.clone() };
        let inputs = NodeInputs { goal, ..inputs.clone() };
        self.compiled(&Layer::Removed, &inputs, &self.spec, &cluster)
    }

    fn traces(&self, compiled: &[Compiled], KeepData(keep): KeepData) -> Traces {
        let networks = &self.workspace.configuration.networks;
        let networks = [networks.pods.to_string(), networks.services.to_string()];
        Traces::of(compiled, BTreeSet::from(networks), keep)
    }
}

/// What was recorded; `None` where nothing was.
fn recorded(printed: &str) -> Option<HostInventory> {
    (!printed.starts_with("none")).then(|| HostInventory::parse(printed))
}

/// An assignment of names without spaces to a variable of a script.
fn words<T: AsRef<str>>(variable: &str, names: impl IntoIterator<Item = T>) -> String {
    let names: Vec<String> = names.into_iter().map(|name| name.as_ref().to_owned()).collect();
    format!("{variable}='{}'\n", names.join(" "))
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File, OpenOptions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};
    use std::time::{Duration, Instant};

    use super::*;
    use crate::engine::shells::{run, shells};
    use crate::operation::script_turn::tests::waits_for;
    use crate::transport::Program;

    #[test]
    fn what_a_killed_run_still_records_is_what_the_next_one_finds() {
        for shell in shells() {
            let root = tempfile::tempdir().unwrap();
            let path = |name: &str| root.path().join(name);
            fs::create_dir(path("etc")).unwrap();
            let began = path("began");
            std::process::Command::new("mkfifo").arg(&began).status().unwrap();
            let program = |inventory: &str| {
                let script = format!("inventory() {{ {inventory}; }}\n{}", include_str!("record_host.sh"));
                let script = (host_record_turn() + &script)
                    .replace("/run/metalform", path("run").to_str().unwrap())
                    .replace("/var/lib/metalform", path("lib").to_str().unwrap())
                    .replace("-C / ", &format!("-C {} ", root.path().display()));
                Program { script, payload: Vec::new() }
            };
            let killed = program(&format!("read -r line <{} || true; echo killed", began.display()));
            let next = program("echo next");
            std::thread::scope(|scope| {
                let killed = scope.spawn(|| run(shell, &killed));
                // Opened once the script reads from it.
                let release = OpenOptions::new().write(true).open(&began).unwrap();
                let next = scope.spawn(|| run(shell, &next));
                let lock = File::open(path("run/host-record.lock")).unwrap().metadata().unwrap().ino();
                let deadline = Instant::now() + Duration::from_secs(30);
                while !next.is_finished() && !waits_for(lock) {
                    assert!(Instant::now() < deadline, "{shell}: neither waits nor ends");
                    std::thread::yield_now();
                }
                drop(release);
                assert_eq!(killed.join().unwrap().status, 0, "{shell}");
                assert_eq!(next.join().unwrap().status, 0, "{shell}");
            });
            assert_eq!(fs::read_to_string(path("lib/before/inventory")).unwrap(), "killed\n", "{shell}");
        }
    }

    #[test]
    fn the_marks_of_a_host_are_removed_last() {
        const OTHERS_FAIL: &str = r#"#!/bin/sh
for path; do case $path in -* | */etcd-snapshots) ;; *) /bin/rm -rf "$path" ;; esac; done
case $* in *etcd-snapshots*) exit 1 ;; esac
"#;
        for shell in shells() {
            let root = tempfile::tempdir().unwrap();
            let path = |name: &str| root.path().join(name);
            for directory in ["lib/before", "lib/before.gone", "lib/etcd-snapshots", "bin", "run/owed"] {
                fs::create_dir_all(path(directory)).unwrap();
            }
            for file in ["before/inventory", "resetting", "fence"] {
                fs::write(path("lib").join(file), "7\n").unwrap();
            }
            let script =
                include_str!("forget_host.sh").replace("/var/lib/metalform", path("lib").to_str().unwrap());
            let script = script.replace("/run/metalform", path("run").to_str().unwrap());
            let script = format!("PATH={}:$PATH\n{script}", path("bin").display());
            let status = || run(shell, &Program { script: script.clone(), payload: Vec::new() }).status;
            fs::write(path("bin/rm"), OTHERS_FAIL).unwrap();
            fs::set_permissions(path("bin/rm"), fs::Permissions::from_mode(0o755)).unwrap();
            assert_eq!(status(), 1, "{shell}");
            assert!(path("lib/before/inventory").exists() && path("lib/resetting").exists(), "{shell}");
            fs::remove_file(path("bin/rm")).unwrap();
            assert_eq!(status(), 0, "{shell}");
            let left: Vec<_> = fs::read_dir(path("lib")).unwrap().map(|one| one.unwrap().path()).collect();
            assert_eq!(left, [path("lib/fence")], "{shell}");
            assert!(path("run/owed").exists(), "{shell}");
            fs::remove_file(path("lib/fence")).unwrap();
            assert_eq!(status(), 0, "{shell}");
            assert!(!path("lib").exists() && !path("run").exists(), "{shell}");
        }
    }
}
