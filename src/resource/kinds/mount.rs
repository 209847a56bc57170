//! `mount`: a file system at a mount point, mounted now and at boot (`/etc/fstab`).

use crate::resource::contract::change::{Change, Difference, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::probe::{MountState, Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, MountVerb, Step};
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::text::edited::Edited;
use crate::resource::text::fstab::{self, FstabEntry};
use crate::resource::text::lines::Lines;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required(
        "device",
        FieldType::String,
        "The source: UUID=…, LABEL=…, a path, server:/export, or a word such as tmpfs.",
    ),
    FieldSpec::required(
        "type",
        FieldType::String,
        "File system type: ext4, xfs, nfs, tmpfs; none for a bind mount.",
    ),
    FieldSpec::optional("options", FieldType::StringList, "Mount options, [defaults] by default."),
    FieldSpec::optional("dump", FieldType::Integer, "As in fstab(5), 0 by default."),
    FieldSpec::optional("pass", FieldType::Integer, "As in fstab(5), 0 by default."),
    FieldSpec::optional(
        "mounted",
        FieldType::Boolean,
        "Whether it is mounted now too, true by default, false with the option noauto; with false the \
                current mount stays.",
    ),
];

/// Options of any file system (mount(8)) that the kernel shows as they are written.
const SHOWN: [&str; 9] =
    ["ro", "rw", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "sync", "dirsync"];

/// A file system and its mount point.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    point: String,
    fstab: Edited,
    mounted: bool,
    /// `None` when it should be absent.
    entry: Option<FstabEntry>,
}

impl Mount {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let point = path::named(fields, name)?;
        let mut options = fields.list("options");
        if options.is_empty() {
            options.push("defaults".to_owned());
        }
        if options.iter().any(|option| option.is_empty() || option.contains(',')) {
            return Err(fields.invalid("options", "must be a list of single options"));
        }
        let entry = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(FstabEntry {
                source: fields.need_line("device")?,
                point: point.clone(),
                fs_type: fields.need_line("type")?,
                options: options.clone(),
                dump: fields.integer("dump", 0..=1, 0)?,
                pass: fields.integer("pass", 0..=99, 0)?,
            }),
        };
        if let Some(entry) = &entry {
            if entry.fs_type.contains(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)) {
                return Err(fields.invalid("type", "must be the name of a file system type"));
            }
            if entry.source.starts_with('-') {
                return Err(fields.invalid("device", "must not begin with '-'"));
            }
        }
        let mounted = fields.boolean("mounted", !options.iter().any(|option| option == "noauto"));
        Ok(Self { point, fstab: fstab::file(true, fields.sensitive), mounted, entry })
    }

    pub fn file(&self) -> &Edited {
        &self.fstab
    }

    pub fn probes(&self) -> Vec<Probe> {
        let mut probes = vec![self.fstab.probe(), self.mount_probe()];
        probes.extend(self.entry.as_ref().map(|_| self.point_probe()));
        probes
    }

    fn mount_probe(&self) -> Probe {
        let source = self.entry.as_ref().map(|entry| entry.source.clone());
        Probe::Mount { point: self.point.clone(), source }
    }

    fn point_probe(&self) -> Probe {
        Probe::path(&self.point)
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let present = self.fstab.text(observed, context)?;
        let live = observed.mount(self.mount_probe())?;
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        let is_ours = |body: &str| FstabEntry::of(body).is_some_and(|entry| entry.point == self.point);
        let current = lines.bodies().rfind(|body| is_ours(body)).map(str::to_owned);
        let before = current.as_deref().and_then(FstabEntry::of);
        match &self.entry {
            Some(entry) => {
                // The white space between columns stays.
                let same = current.filter(|_| before.as_ref() == Some(entry));
                lines.set(is_ours, &same.unwrap_or_else(|| entry.line()));
            }
            None => lines.remove(is_ours),
        }
        let mut change = Change::default();
        let fstab = self.fstab.change(present, lines.into_text(), context);
        let written = !fstab.steps.is_empty();
        let mut after = Vec::new();
        match (&self.entry, live) {
            (None, Some(live)) => {
                change.field("mounted", Some(&live.source), None);
                change.steps.push(self.step(MountVerb::Unmount));
            }
            (Some(entry), live) if self.mounted => {
                after = self.compare(entry, before.as_ref(), live, &mut change);
                self.create_point(live, observed, context, &mut change)?;
            }
            _ => {}
        }
        change.append(fstab);
        if written {
            // systemd generates units from the file when it is reloaded.
            change.steps.push(Step::ReloadUnitFiles);
        }
        change.steps.append(&mut after);
        Ok(change.into_verdict(match (&self.entry, self.mounted) {
            (None, _) => "is absent",
            (Some(_), true) => "is mounted, now and at boot",
            (Some(_), false) => "is in /etc/fstab",
        }))
    }

    /// Compares the current mount. The steps run after /etc/fstab is written, which mount(8) reads.
    fn compare(
        &self,
        entry: &FstabEntry,
        before: Option<&FstabEntry>,
        live: Option<&MountState>,
        change: &mut Change,
    ) -> Vec<Step> {
        let Some(live) = live else {
            change.field("mounted", None, Some(&entry.source));
            return vec![self.step(MountVerb::Mount)];
        };
        if !is_source(entry, live) || !is_type(entry, live) {
            let before = format!("{} ({})", live.source, live.fs_type);
            change.field("mounted", Some(&before), Some(&format!("{} ({})", entry.source, entry.fs_type)));
            change.steps.push(self.step(MountVerb::Unmount));
            return vec![self.step(MountVerb::Mount)];
        }
        let missing = |option: &&String| SHOWN.contains(&option.as_str()) && !live.options.contains(*option);
        let rewritten = before.is_some_and(|before| before.options != entry.options);
        if rewritten || entry.options.iter().any(|option| missing(&option)) {
            let options: Vec<&str> = live.options.iter().map(String::as_str).collect();
            if self.fstab.sensitive {
                change.differences.push(Difference::Hidden { what: "options (sensitive)".to_owned() });
            } else {
                change.field("options", Some(&options.join(",")), Some(&entry.options.join(",")));
            }
            return vec![self.step(MountVerb::Remount)];
        }
        Vec::new()
    }

    fn create_point(
        &self,
        live: Option<&MountState>,
        observed: &Observed,
        context: &Context<'_>,
        change: &mut Change,
    ) -> Result<(), Refusal> {
        match observed.path(self.point_probe(), context.pending)? {
            PathState::Absent if live.is_none() && !context.pending.adds(Kind::Directory, &self.point) => {
                let access = Access::root(0o755);
                change.steps.push(Step::MakeDirectory { path: self.point.clone(), access });
            }
            PathState::Symlink { target } => {
                return Err(Refusal::Link { path: self.point.clone(), target: target.clone() });
            }
            other @ PathState::Other => return Err(Refusal::occupied(&self.point, other, "a directory")),
            _ => {}
        }
        Ok(())
    }

    fn step(&self, verb: MountVerb) -> Step {
        Step::Mount { point: self.point.clone(), verb }
    }
}

/// Whether the source is mounted, as far as the kernel shows it: a device is compared by what it resolves to, a
/// network file system by its name. A bind mount shows the device below it, an image a loop device.
fn is_source(entry: &FstabEntry, live: &MountState) -> bool {
    let desired = live.expected_device.as_deref().unwrap_or(&entry.source);
    if desired.starts_with("/dev/") {
        desired == live.device
    } else if entry.source.contains(":/") {
        entry.source.trim_end_matches('/') == live.source.trim_end_matches('/')
    } else {
        true
    }
}

/// The kernel shows some types by other names: nfs4 for nfs, fuse.sshfs for sshfs.
fn is_type(entry: &FstabEntry, live: &MountState) -> bool {
    let bind = entry.options.iter().any(|option| option == "bind" || option == "rbind");
    bind || matches!(entry.fs_type.as_str(), "auto" | "none")
        || live.fs_type == entry.fs_type
        || live.fs_type.starts_with(&entry.fs_type)
        || live.fs_type.starts_with("fuse")
}
