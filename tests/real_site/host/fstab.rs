//! What mount(8) reads of `/etc/fstab`.

use std::collections::{BTreeMap, BTreeSet};

use metalform::resource::contract::probe::MountState;

/// Options of fstab(5) that the kernel does not know.
const FOR_USER_SPACE: [&str; 6] = ["defaults", "auto", "noauto", "nofail", "_netdev", "user"];

pub struct FstabEntry {
    pub source: String,
    pub point: String,
    pub file_system: String,
    pub options: BTreeSet<String>,
}

pub fn entries(text: &str) -> Vec<FstabEntry> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .filter_map(|line| {
            let mut fields = line.split_whitespace().map(unescaped);
            let (source, point, file_system) = (fields.next()?, fields.next()?, fields.next()?);
            let options = fields.next().unwrap_or_else(|| "defaults".to_owned());
            Some(FstabEntry {
                source,
                point,
                file_system,
                options: options.split(',').map(str::to_owned).collect(),
            })
        })
        .collect()
}

/// White space and backslashes are octal numbers (fstab(5)).
fn unescaped(field: &str) -> String {
    [("\\040", " "), ("\\011", "\t"), ("\\012", "\n"), ("\\134", "\\")]
        .iter()
        .fold(field.to_owned(), |text, (code, character)| text.replace(code, character))
}

impl FstabEntry {
    /// What is seen once it is mounted.
    pub fn mounted(&self, devices: &BTreeMap<String, String>) -> MountState {
        let device = devices.get(&self.source).cloned();
        let known = |option: &&String| !FOR_USER_SPACE.contains(&option.as_str());
        let mut options: BTreeSet<String> = self.options.iter().filter(known).cloned().collect();
        if !options.contains("ro") {
            options.insert("rw".to_owned());
        }
        MountState {
            source: device.clone().unwrap_or_else(|| self.source.clone()),
            device: device.clone().unwrap_or_else(|| self.source.clone()),
            expected_device: device,
            fs_type: self.file_system.clone(),
            options,
        }
    }
}
