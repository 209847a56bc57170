//! `mount`: a file system at its mount point, now and after a reboot (`/etc/fstab`).

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{MountState, Observed, PathState, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::contract::step::{Access, MountVerb, Step};
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::contents::occupied;
use crate::resource::text::edited::Edited;
use crate::resource::text::fstab::{self, Entry};
use crate::resource::text::lines::Lines;

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "device",
        sort: FieldSort::Text,
        required: true,
        about: "What is mounted: UUID=…, LABEL=…, a path, server:/export, or a word such as tmpfs.",
    },
    FieldSpec {
        name: "type",
        sort: FieldSort::Text,
        required: true,
        about: "File system type: ext4, xfs, nfs, tmpfs; none for a bind mount.",
    },
    FieldSpec {
        name: "options",
        sort: FieldSort::TextList,
        required: false,
        about: "Mount options, [defaults] by default.",
    },
    FieldSpec {
        name: "dump",
        sort: FieldSort::Integer,
        required: false,
        about: "As in fstab(5), 0 by default.",
    },
    FieldSpec {
        name: "pass",
        sort: FieldSort::Integer,
        required: false,
        about: "As in fstab(5), 0 by default.",
    },
    FieldSpec {
        name: "mounted",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether it is mounted now too, true by default, false with the option noauto; false leaves alone \
                what is mounted.",
    },
];

/// Options that say how any file system is mounted (mount(8)), and that the kernel shows as they are written.
const SHOWN: [&str; 9] =
    ["ro", "rw", "nosuid", "nodev", "noexec", "noatime", "nodiratime", "sync", "dirsync"];

/// A file system and where it is mounted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    point: String,
    fstab: Edited,
    mounted: bool,
    /// `None` when it should be absent.
    entry: Option<Entry>,
}

impl Mount {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let point = path::named("mount", name)?;
        let mut options = given.list("options");
        if options.is_empty() {
            options.push("defaults".to_owned());
        }
        if options.iter().any(|option| option.is_empty() || option.contains(',')) {
            return Err(given.invalid("options", "each must be one option"));
        }
        let entry = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Entry {
                source: given.need_line("device")?,
                point: point.clone(),
                sort: given.need_line("type")?,
                options: options.clone(),
                dump: given.number("dump", 0..=1, 0)?,
                pass: given.number("pass", 0..=99, 0)?,
            }),
        };
        if let Some(entry) = &entry {
            if entry.sort.contains(|c: char| !c.is_ascii_alphanumeric() && !"._-".contains(c)) {
                return Err(given.invalid("type", "it is not the name of a file system type"));
            }
            if entry.source.starts_with('-') {
                return Err(given.invalid("device", "it must not begin with '-'"));
            }
        }
        let mounted = given.boolean("mounted", !options.iter().any(|option| option == "noauto"));
        Ok(Self { point, fstab: fstab::file(true, given.sensitive), mounted, entry })
    }

    pub(in crate::resource) fn file(&self) -> &Edited {
        &self.fstab
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        let mut probes = vec![self.fstab.probe(), self.mount_probe()];
        probes.extend(self.entry.as_ref().map(|_| self.point_probe()));
        probes
    }

    fn mount_probe(&self) -> Probe {
        let source = self.entry.as_ref().map(|entry| entry.source.clone());
        Probe::Mount { point: self.point.clone(), source }
    }

    fn point_probe(&self) -> Probe {
        Probe::Path { path: self.point.clone(), unless_sha256: None }
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let present = self.fstab.text(observed, context)?;
        let live = observed.mount(self.mount_probe())?;
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        let is_ours = |body: &str| Entry::of(body).is_some_and(|entry| entry.point == self.point);
        let standing = lines.bodies().rfind(|body| is_ours(body)).map(str::to_owned);
        let before = standing.as_deref().and_then(Entry::of);
        match &self.entry {
            Some(entry) => {
                // Its columns may be set as their owner likes.
                let same = standing.filter(|_| before.as_ref() == Some(entry));
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
                self.make_point(live, observed, context, &mut change)?;
            }
            _ => {}
        }
        change.append(fstab);
        if written {
            // systemd makes units of the file, and acts upon those that it has read.
            change.steps.push(Step::ReloadUnitFiles);
        }
        change.steps.append(&mut after);
        Ok(change.or(match (&self.entry, self.mounted) {
            (None, _) => "is absent",
            (Some(_), true) => "is mounted, now and after a reboot",
            (Some(_), false) => "is in /etc/fstab",
        }))
    }

    /// What is mounted against what should be; the steps are for after the file is written, which mount(8)
    /// reads.
    fn compare(
        &self,
        entry: &Entry,
        before: Option<&Entry>,
        live: Option<&MountState>,
        change: &mut Change,
    ) -> Vec<Step> {
        let Some(live) = live else {
            change.field("mounted", None, Some(&entry.source));
            return vec![self.step(MountVerb::Mount)];
        };
        if !is_source(entry, live) || !is_sort(entry, live) {
            let before = format!("{} ({})", live.source, live.sort);
            change.field("mounted", Some(&before), Some(&format!("{} ({})", entry.source, entry.sort)));
            change.steps.push(self.step(MountVerb::Unmount));
            return vec![self.step(MountVerb::Mount)];
        }
        let missing = |option: &&String| SHOWN.contains(&option.as_str()) && !live.options.contains(*option);
        let rewritten = before.is_some_and(|before| before.options != entry.options);
        if rewritten || entry.options.iter().any(|option| missing(&option)) {
            let options: Vec<&str> = live.options.iter().map(String::as_str).collect();
            change.field("options", Some(&options.join(",")), Some(&entry.options.join(",")));
            return vec![self.step(MountVerb::Remount)];
        }
        Vec::new()
    }

    fn make_point(
        &self,
        live: Option<&MountState>,
        observed: &Observed,
        context: &Context<'_>,
        change: &mut Change,
    ) -> Result<(), Refusal> {
        match observed.path(self.point_probe(), context.pending)? {
            PathState::Absent if live.is_none() && !context.pending.comes("directory", &self.point) => {
                let access = Access { owner: "root".to_owned(), group: "root".to_owned(), mode: 0o755 };
                change.steps.push(Step::MakeDirectory { path: self.point.clone(), access });
            }
            PathState::Symlink { target } => {
                return Err(Refusal::Link { path: self.point.clone(), target: target.clone() });
            }
            other @ PathState::Other => return Err(occupied(&self.point, other, "a directory")),
            _ => {}
        }
        Ok(())
    }

    fn step(&self, verb: MountVerb) -> Step {
        Step::Mount { point: self.point.clone(), verb }
    }
}

/// Where it can be told: a device by where its names lead, a network file system by its name. A bind mount
/// shows the device below it, an image a loop device.
fn is_source(entry: &Entry, live: &MountState) -> bool {
    let wanted = live.wanted_device.as_deref().unwrap_or(&entry.source);
    if wanted.starts_with("/dev/") {
        wanted == live.device
    } else if entry.source.contains(":/") {
        entry.source.trim_end_matches('/') == live.source.trim_end_matches('/')
    } else {
        true
    }
}

/// The kernel has other names for some: nfs4 for nfs, fuse.sshfs for sshfs.
fn is_sort(entry: &Entry, live: &MountState) -> bool {
    let bind = entry.options.iter().any(|option| option == "bind" || option == "rbind");
    bind || matches!(entry.sort.as_str(), "auto" | "none")
        || live.sort == entry.sort
        || live.sort.starts_with(&entry.sort)
        || live.sort.starts_with("fuse")
}
