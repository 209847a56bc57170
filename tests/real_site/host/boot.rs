//! What a reboot leaves: what is in files, and nothing else.

use super::{ScriptedHost, fstab};

impl ScriptedHost {
    /// Starts. What was only live is gone; what files persist is set again.
    pub fn boot(&mut self) {
        self.on = true;
        self.boots += 1;
        self.facts.boot_id = format!("boot-{}", self.boots);
        let boot_id = self.facts.boot_id.clone();
        self.sysctls.insert("kernel.random.boot_id".to_owned(), boot_id);
        for path in self.tree.below("/run") {
            self.tree.remove(&path);
        }
        self.routes.clear();
        for line in self.lines_below("/etc/modules-load.d") {
            self.load_module(&line);
        }
        for line in self.lines_below("/etc/sysctl.d") {
            if let Some((key, value)) = line.split_once('=') {
                let key = key.trim().trim_start_matches('-').replace('/', ".");
                self.sysctls.insert(key, value.trim().to_owned());
            }
        }
        let fstab = fstab::entries(&self.tree.text("/etc/fstab").unwrap_or_default());
        let masked = self.units.state("swap.target", &self.tree).load == "masked";
        self.swap = !masked && fstab.iter().any(|entry| entry.file_system == "swap");
        self.mounts.clear();
        for entry in fstab {
            let real = entry.point.starts_with('/') && !entry.options.contains("noauto");
            if real {
                self.mounts.insert(entry.point.clone(), entry.mounted(&self.devices));
            }
        }
        self.units.boot(self.clock);
    }

    pub(super) fn load_module(&mut self, name: &str) {
        self.modules.insert(name.to_owned());
        let brings = self.loadable.get(name).cloned().unwrap_or_default();
        for (key, value) in brings {
            self.sysctls.entry(key).or_insert(value);
        }
    }

    fn lines_below(&self, directory: &str) -> Vec<String> {
        let texts = self.tree.glob(&format!("{directory}/*.conf")).into_iter();
        let texts = texts.filter_map(|path| self.tree.text(&path)).collect::<Vec<_>>();
        texts
            .iter()
            .flat_map(|text| text.lines())
            .map(str::trim)
            .filter(|line| !line.is_empty() && !line.starts_with(['#', ';']))
            .map(str::to_owned)
            .collect()
    }
}
