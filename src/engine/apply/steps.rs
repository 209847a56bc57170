//! Each step as one shell command that calls a function of the prelude. Content is added to the payload in the order in
//! which it is read.

use super::packages::PackageManager;
use super::payload::payload_of;
use super::place::{Place, owner, place, put, within};
use super::staged::Staging;
use super::units;
use crate::engine::conditions;
use crate::engine::hidden_script::INTERPRETER;
use crate::engine::sysctl_path::sysctl_path;
use crate::model::shell_word::{quote, quote_all};
use crate::resource::contract::remote_file::RemoteFile;
use crate::resource::contract::step::{Access, AccountTool, MountVerb, Step, UnitVerb};

/// Commands, to be joined by `&&`. The files in `staging` exist already.
pub(super) fn commands(
    steps: &[Step],
    packages: PackageManager,
    staging: Option<&Staging<'_>>,
    payload: &mut Vec<u8>,
) -> Vec<String> {
    steps
        .chunk_by(|a, b| matches!((a, b), (Step::PullImage(_), Step::PullImage(_))))
        .flat_map(|run| match run {
            [Step::PullImage(_), ..] => vec![pulls(run)],
            [Step::InstallPackages(wanted)] => packages.install(wanted),
            run => run
                .iter()
                .filter_map(|step| placed(step, staging).or_else(|| command(step, payload)))
                .collect(),
        })
        .collect()
}

fn placed(step: &Step, staging: Option<&Staging<'_>>) -> Option<String> {
    match step {
        Step::WriteFile { path, .. } => staging?.placed(path),
        _ => None,
    }
}

/// `None` for steps that `commands` renders itself, and for those that `segment` removes.
fn command(step: &Step, payload: &mut Vec<u8>) -> Option<String> {
    let command = match step {
        Step::WriteFile { path, content, access, sensitive: _ } => {
            within(path, &put(path, payload_of(content, payload), access))
        }
        Step::EditFile { path, found: None, content, access, sensitive: _ } => {
            let put = put(path, payload_of(content, payload), access);
            within(path, &format!("unchanged {} '' && {put}", quote(path)))
        }
        Step::EditFile { path, found: Some(sha256), content, access: _, sensitive: _ } => {
            let bytes = payload_of(content, payload);
            within(path, &format!("edit {bytes} {} {} {sha256}", place(path).temporary, quote(path)))
        }
        Step::WriteAuthorizedKeys { user, found, content } => {
            let bytes = payload_of(content, payload);
            let script = quote(concat!(include_str!("edit.sh"), include_str!("authorized_keys.sh")));
            let found = found.as_deref().unwrap_or_default();
            format!("as_user {} sh -c {script} sh {bytes} '{found}' <&3", quote(user))
        }
        Step::MakeDirectory { path, access } => {
            within(path, &format!("make_directory {} {}", quote(path), owner_and_mode(access)))
        }
        Step::SetAccess { path, access } => {
            within(path, &format!("set_access {} {}", quote(path), owner_and_mode(access)))
        }
        Step::Symlink { path, target } => {
            let Place { directory, temporary } = place(path);
            within(path, &format!("link {directory} {temporary} {} {}", quote(path), quote(target)))
        }
        // What is mounted below is kept.
        Step::Remove { path, recursive: true } => {
            within(path, &format!("rm -rf --one-file-system -- {}", quote(path)))
        }
        Step::Remove { path, recursive: false } => within(path, &format!("rm -fd -- {}", quote(path))),
        Step::Download { from, path, access } => {
            within(path, &format!("bring {}", fetched(path, access, from)))
        }
        Step::Unpack { from, path, strip, marker, access } => {
            let unpack = format!("unpack {} {strip} {}", fetched(path, access, from), quote(marker));
            within(path, &unpack)
        }
        Step::VerifyUnit { name, files, sensitive } => units::verify(name, files, *sensitive, payload),
        Step::Await { condition, seconds } => {
            format!("await {seconds} {} {}", quote(&condition.wish()), conditions::call(condition))
        }
        Step::RefreshPackageIndex => "refresh_index".to_owned(),
        Step::RemovePackages(names) => {
            format!("remove_packages {}", quote_all(names.iter().map(String::as_str)))
        }
        Step::HoldPackage { name, hold } => PackageManager::hold(name, *hold),
        Step::ReloadUnitFiles => "systemctl daemon-reload".to_owned(),
        Step::ReloadUnit(name) => format!("reload_unit {}", quote(name)),
        Step::Unit { name, verb: UnitVerb::Enable } => format!("enable_units {}", quote(name)),
        Step::Unit { name, verb: UnitVerb::Disable } => format!("without_reload disable {}", quote(name)),
        Step::Unit { name, verb } => format!("unit {} {}", systemctl(*verb), quote(name)),
        Step::SetSysctl { key, value } => {
            format!("printf '%s\\n' {} >{}", quote(value), quote(&sysctl_path(key)))
        }
        Step::LoadModule(name) => format!("modprobe -- {}", quote(name)),
        Step::SwapOff => "swapoff --all".to_owned(),
        Step::ReplaceRoute { destination, via } => {
            let family = if destination.contains(':') { "-6" } else { "-4" };
            format!("ip {family} route replace {} {}", quote(destination), quote_all(via.split_whitespace()))
        }
        Step::Account { tool, arguments } => account(*tool, arguments),
        Step::SetPassword { user, hash } => {
            let line = format!("{user}:{hash}");
            format!("password {}", payload_of(line.as_bytes(), payload))
        }
        Step::Mount { point, verb: MountVerb::Mount } => format!("mount -- {} 3<&-", quote(point)),
        Step::Mount { point, verb: MountVerb::Remount } => {
            format!("mount -o remount -- {} 3<&-", quote(point))
        }
        Step::Mount { point, verb: MountVerb::Unmount } => format!("unmount {}", quote(point)),
        Step::Run { script } => {
            format!("printf %s {} | {INTERPRETER} 9<&0 </dev/null 3<&-", quote(script))
        }
        Step::InstallPackages(_) | Step::PullImage(_) | Step::IssueCertificate(_) | Step::Reboot { .. } => {
            return None;
        }
    };
    Some(command)
}

fn account(tool: AccountTool, arguments: &[String]) -> String {
    let words = quote_all(arguments.iter().map(String::as_str));
    match tool {
        AccountTool::AddUser => format!("useradd {words} 3<&-"),
        AccountTool::ChangeUser => format!("usermod {words} 3<&-"),
        AccountTool::DeleteUser => format!("userdel {words} 3<&-"),
        AccountTool::AddGroup => format!("groupadd {words} 3<&-"),
        AccountTool::DeleteGroup => format!("{{ ! getent group -- {words} || groupdel {words} 3<&-; }}"),
    }
}

/// Pulls all images side by side; fails when one of them fails.
fn pulls(steps: &[Step]) -> String {
    let mut command = "( pids=\n".to_owned();
    for step in steps {
        if let Step::PullImage(reference) = step {
            command.push_str(&format!(
                "ctr -n k8s.io images pull --hosts-dir /etc/containerd/certs.d {} 3<&- & pids=\"$pids $!\"\n",
                quote(reference)
            ));
        }
    }
    command.push_str("status=0; for pid in $pids; do wait \"$pid\" || status=$?; done; exit \"$status\" )");
    command
}

fn fetched(path: &str, access: &Access, from: &RemoteFile) -> String {
    let Place { directory, temporary } = place(path);
    let from = quote_all([from.url.as_str(), &from.sha256, from.ca.as_deref().unwrap_or_default()]);
    format!("{directory} {temporary} {} {} {from}", quote(path), owner_and_mode(access))
}

fn owner_and_mode(access: &Access) -> String {
    // chmod(1) of GNU keeps the set-user-ID and set-group-ID bits of a directory unless the mode has five digits.
    format!("{} {:05o}", owner(access), access.mode)
}

/// The verb as systemctl(1) has it.
pub(super) fn systemctl(verb: UnitVerb) -> &'static str {
    match verb {
        UnitVerb::Enable => "enable",
        UnitVerb::Disable => "disable",
        UnitVerb::Start => "start",
        UnitVerb::Stop => "stop",
        UnitVerb::Restart => "restart",
        UnitVerb::ReloadOrRestart => "reload-or-restart",
        UnitVerb::Mask => "mask",
        UnitVerb::Unmask => "unmask",
    }
}
