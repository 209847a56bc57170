//! What a step is called in transcripts and by scripts.

use metalform::resource::contract::step::Step;

/// `write /etc/hosts`, `restart kubelet.service`: [`failing`](super::ScriptedHost::failing) names steps by its beginning.
pub fn title(step: &Step) -> String {
    match step {
        Step::WriteFile { path, .. } => format!("write {path}"),
        Step::EditFile { path, .. } => format!("edit {path}"),
        Step::WriteAuthorizedKeys { user, .. } => format!("authorize {user}"),
        Step::MakeDirectory { path, .. } => format!("mkdir {path}"),
        Step::SetAccess { path, .. } => format!("access {path}"),
        Step::Symlink { path, .. } => format!("link {path}"),
        Step::Remove { path, .. } => format!("remove {path}"),
        Step::Download { path, .. } => format!("download {path}"),
        Step::Unpack { path, .. } => format!("unpack {path}"),
        Step::Await { condition, .. } => format!("await {}", condition.wish()),
        Step::Reboot { .. } => "reboot".to_owned(),
        Step::RefreshPackageIndex => "refresh package index".to_owned(),
        Step::InstallPackages(packages) => {
            let names: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
            format!("install {}", names.join(" "))
        }
        Step::RemovePackages(names) => format!("uninstall {}", names.join(" ")),
        Step::HoldPackage { name, .. } => format!("hold {name}"),
        Step::VerifyUnit { name, .. } => format!("verify {name}"),
        Step::ReloadUnitFiles => "daemon-reload".to_owned(),
        Step::ReloadUnit(name) => format!("reload {name}"),
        Step::Unit { name, verb } => format!("{verb:?} {name}").to_lowercase(),
        Step::SetSysctl { key, .. } => format!("sysctl {key}"),
        Step::LoadModule(name) => format!("modprobe {name}"),
        Step::SwapOff => "swapoff".to_owned(),
        Step::PullImage(reference) => format!("pull {reference}"),
        Step::IssueCertificate(request) => format!("issue {}", request.certificate),
        Step::ReplaceRoute { destination, .. } => format!("route {destination}"),
        Step::Account { tool, arguments } => format!("{tool:?} {}", arguments.join(" ")),
        Step::SetPassword { user, .. } => format!("password {user}"),
        Step::Mount { point, verb } => format!("{verb:?} {point}").to_lowercase(),
        Step::Run { script } => format!("run {script}"),
    }
}
