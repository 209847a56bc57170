//! Steps, performed one after the other. A step that fails leaves what was before it.

use metalform::resource::contract::host_condition::HostCondition;
use metalform::resource::contract::step::{
    Access, CertificateRequest, MountVerb, PackageVersion, Step, UnitVerb,
};
use rcgen::{CertificateParams, DnType, KeyPair};

use super::accounts::Home;
use super::packages::list_of;
use super::title::title;
use super::tree::{Content, Entry, of_root};
use super::{Failing, ScriptedHost, fstab};

/// Signs a host's certificate request (PEM) for what the certificate must contain.
pub type Sign<'a> = &'a (dyn Fn(&CertificateRequest, &str) -> Result<String, String> + Sync);

impl From<String> for Failing {
    fn from(output: String) -> Self {
        Self { status: 1, output }
    }
}

impl From<&str> for Failing {
    fn from(output: &str) -> Self {
        output.to_owned().into()
    }
}

impl ScriptedHost {
    /// Performs one step.
    pub fn perform(&mut self, step: &Step, sign: Sign<'_>) -> Result<(), Failing> {
        let title = title(step);
        let failing = self.failing.iter().find(|(beginning, _)| title.starts_with(*beginning));
        if let Some((_, failing)) = failing {
            return Err(failing.clone());
        }
        self.performed.push(title);
        self.clock += 1;
        match step {
            Step::WriteFile { path, content, access, .. } => self.write(path, content, access),
            Step::EditFile { path, found, content, access, .. } => {
                self.edit(path, found.as_deref(), content, access)
            }
            Step::WriteAuthorizedKeys { user, found, content } => {
                self.write_keys(user, found.as_deref(), content)
            }
            Step::MakeDirectory { path, access } => {
                match self.tree.get(path) {
                    None => self.tree.put(path, Entry::Directory(access.clone())),
                    Some(Entry::Directory(_)) => {
                        self.tree.set_access(path, access);
                    }
                    Some(_) => {
                        return Err(format!("mkdir: cannot create directory '{path}': File exists").into());
                    }
                }
                Ok(())
            }
            Step::SetAccess { path, access } => match self.tree.set_access(path, access) {
                true => Ok(()),
                false => Err(format!("chown: cannot access '{path}': No such file or directory").into()),
            },
            Step::Symlink { path, target } => {
                self.tree.put(path, Entry::Symlink(target.clone()));
                self.units.file_changed(path);
                Ok(())
            }
            Step::Remove { path, recursive } => self.remove(path, *recursive),
            Step::Download { from, path, access } => {
                let content = Content::Digest { sha256: from.sha256.clone(), size: 1 };
                self.tree.write(path, content, access.clone(), self.clock);
                Ok(())
            }
            Step::Unpack { path, marker, access, .. } => {
                self.tree.remove(path);
                self.tree.put(path, Entry::Directory(access.clone()));
                let owner = Access { mode: 0o644, ..access.clone() };
                let marker_path = format!("{path}/.metalform-archive");
                self.tree.write(&marker_path, Content::from(marker.as_str()), owner, self.clock);
                Ok(())
            }
            Step::Await { condition, seconds } => self.wait_for(condition, *seconds),
            Step::Reboot { boot_id, .. } if *boot_id != self.facts.boot_id => {
                Err(format!("the boot id is {}, not {boot_id}", self.facts.boot_id).into())
            }
            Step::Reboot { .. } => {
                self.boot();
                Ok(())
            }
            Step::RefreshPackageIndex => Ok(()),
            Step::InstallPackages(packages) => packages.iter().try_for_each(|package| self.install(package)),
            Step::RemovePackages(names) => {
                for name in names {
                    self.packages.installed.remove(name);
                    self.tree.remove(&list_of(name));
                }
                Ok(())
            }
            Step::HoldPackage { name, hold } => {
                let package = self.packages.installed.get_mut(name).ok_or("no such package")?;
                package.held = *hold;
                Ok(())
            }
            Step::VerifyUnit { name, .. } => match self.units.bad_files.get(name) {
                Some(complaint) => Err(complaint.as_str().into()),
                None => Ok(()),
            },
            Step::ReloadUnitFiles | Step::ReloadUnit(_) => {
                self.units.reload_files(&self.tree);
                Ok(())
            }
            Step::Unit { name, verb } => Ok(self.units.act(name, *verb, &self.tree, self.clock)?),
            Step::SetSysctl { key, value } => match self.sysctls.get_mut(key) {
                Some(live) => {
                    value.clone_into(live);
                    Ok(())
                }
                None => Err(format!("sysctl: cannot stat /proc/sys/{}", key.replace('.', "/")).into()),
            },
            Step::LoadModule(name) => match self.loadable.contains_key(name) {
                true => {
                    self.load_module(name);
                    Ok(())
                }
                false => Err(format!("modprobe: FATAL: Module {name} not found").into()),
            },
            Step::SwapOff => {
                self.swap = false;
                Ok(())
            }
            Step::PullImage(reference) => {
                if self.mirror.as_ref().is_some_and(|mirror| !mirror.contains(reference)) {
                    return Err(format!("ctr: {reference}: not found").into());
                }
                self.images.insert(reference.clone());
                Ok(())
            }
            Step::IssueCertificate(request) => self.issue(request, sign),
            Step::ReplaceRoute { destination, via } => {
                self.routes.insert(destination.clone(), via.clone());
                Ok(())
            }
            Step::Account { tool, arguments } => {
                match self.accounts.run(*tool, arguments)? {
                    Some(Home::Made { path, owner, group }) => {
                        self.tree.put(&path, Entry::Directory(Access { owner, group, mode: 0o700 }));
                    }
                    Some(Home::Gone(path)) => self.tree.remove(&path),
                    None => {}
                }
                Ok(())
            }
            Step::SetPassword { user, hash } => Ok(self.accounts.set_password(user, hash)?),
            Step::Mount { point, verb } => self.mount(point, *verb),
            Step::Run { script } => {
                if let Some(path) = self.brings.get(script).cloned() {
                    self.tree.write(&path, Content::from(""), of_root(0o644), self.clock);
                } else if !self.run_known(script) {
                    // Of a state: what it is for holds then.
                    self.guards.values_mut().for_each(|status| *status = i32::from(*status == 0));
                }
                Ok(())
            }
        }
    }

    fn write(&mut self, path: &str, content: &[u8], access: &Access) -> Result<(), Failing> {
        if self.tree.is_directory(path) {
            return Err(format!("mv: cannot overwrite directory '{path}'").into());
        }
        self.tree.write(path, Content::Bytes(content.to_vec()), access.clone(), self.clock);
        self.units.file_changed(path);
        Ok(())
    }

    fn edit(
        &mut self,
        path: &str,
        found: Option<&str>,
        content: &[u8],
        access: &Access,
    ) -> Result<(), Failing> {
        let (present, access) = match self.tree.get(path) {
            None => (None, access.clone()),
            Some(Entry::File { content, access, .. }) => (Some(content.sha256()), access.clone()),
            Some(_) => return Err(format!("{path} is not a file").into()),
        };
        if present.as_deref() != found {
            return Err(format!("{path} was changed by another process").into());
        }
        self.write(path, content, &access)
    }

    fn write_keys(&mut self, user: &str, found: Option<&str>, content: &[u8]) -> Result<(), Failing> {
        let account = &self.accounts.users.get(user).ok_or("no such user")?.account;
        let access = |mode| Access { owner: user.to_owned(), group: account.group.clone(), mode };
        let directory = format!("{}/.ssh", account.home);
        if !self.tree.is_directory(&account.home) {
            return Err(format!("{} does not exist", account.home).into());
        }
        let (private, shut) = (access(0o600), access(0o700));
        self.tree.put(&directory, Entry::Directory(shut));
        let path = format!("{directory}/authorized_keys");
        self.edit(&path, found, content, &private)?;
        self.tree.set_access(&path, &private);
        Ok(())
    }

    fn remove(&mut self, path: &str, recursive: bool) -> Result<(), Failing> {
        if self.tree.is_directory(path) && !recursive && !self.tree.below(path).is_empty() {
            return Err(format!("rmdir: failed to remove '{path}': Directory not empty").into());
        }
        self.tree.remove(path);
        self.units.file_changed(path);
        Ok(())
    }

    fn wait_for(&mut self, condition: &HostCondition, seconds: u32) -> Result<(), Failing> {
        if self.never.contains(condition) {
            let seen = self.unmet(condition).unwrap_or_default();
            return Err(format!("waited {seconds} s for {}: {seen}", condition.wish()).into());
        }
        if let HostCondition::File { path } = condition {
            let (content, path) = (Content::from(""), path.clone());
            self.tree.write(&path, content, of_root(0o644), self.clock);
        }
        self.unmet.remove(condition);
        Ok(())
    }

    fn install(&mut self, package: &PackageVersion) -> Result<(), Failing> {
        let offer = self.packages.install(package)?;
        self.tree.write(&list_of(&package.name), Content::from(""), of_root(0o644), self.clock);
        for (path, text) in &offer.files {
            self.tree.write(path, Content::from(text.as_str()), of_root(0o644), self.clock);
        }
        for unit in &offer.units {
            let path = format!("/usr/lib/systemd/system/{unit}");
            self.tree.write(&path, Content::from("[Unit]\n"), of_root(0o644), self.clock);
            for verb in [UnitVerb::Enable, UnitVerb::Start] {
                self.units.act(unit, verb, &self.tree, self.clock)?;
            }
        }
        Ok(())
    }

    /// As a host does: the key is made once and stays; the certificate is written as it was signed.
    fn issue(&mut self, request: &CertificateRequest, sign: Sign<'_>) -> Result<(), Failing> {
        let failed = |error: rcgen::Error| Failing::from(error.to_string());
        let present = self.tree.text(&request.key).and_then(|pem| KeyPair::from_pem(&pem).ok());
        let key = match present {
            Some(key) => key,
            None => KeyPair::generate().map_err(failed)?,
        };
        let mut parameters = CertificateParams::new(request.names.clone()).map_err(failed)?;
        parameters.distinguished_name.push(DnType::CommonName, request.common_name.as_str());
        let csr = parameters.serialize_request(&key).and_then(|csr| csr.pem()).map_err(failed)?;
        let certificate = sign(request, &csr)?;
        let private = Access { mode: 0o600, ..request.access.clone() };
        self.write(&request.key, key.serialize_pem().as_bytes(), &private)?;
        self.write(&request.certificate, certificate.as_bytes(), &request.access)
    }

    fn mount(&mut self, point: &str, verb: MountVerb) -> Result<(), Failing> {
        if verb == MountVerb::Unmount {
            return self
                .mounts
                .remove(point)
                .map(drop)
                .ok_or_else(|| format!("umount: {point}: not mounted.").into());
        }
        if !self.tree.is_directory(point) {
            return Err(format!("mount: {point}: mount point does not exist.").into());
        }
        let fstab = fstab::entries(&self.tree.text("/etc/fstab").unwrap_or_default());
        let entry = fstab.iter().rfind(|entry| entry.point == point);
        let entry = entry.ok_or_else(|| format!("mount: {point}: can't find in /etc/fstab."))?;
        self.mounts.insert(point.to_owned(), entry.mounted(&self.devices));
        Ok(())
    }
}
