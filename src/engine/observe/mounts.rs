//! Mounts: the kernel's table, and the targets of device names.

use std::collections::{BTreeMap, BTreeSet};

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote_all;
use crate::resource::contract::probe::{Answer, MountState, Probe};
use crate::resource::text::fstab::unescaped;

/// The path of a source of fstab(5), where it is a device.
fn device(source: &str) -> Option<String> {
    const TAGS: [(&str, &str); 4] = [
        ("UUID=", "by-uuid"),
        ("LABEL=", "by-label"),
        ("PARTUUID=", "by-partuuid"),
        ("PARTLABEL=", "by-partlabel"),
    ];
    let tag = TAGS.iter().find_map(|(tag, directory)| Some((source.strip_prefix(tag)?, directory)));
    match tag {
        Some((value, directory)) => {
            Some(format!("/dev/disk/{directory}/{}", encoded(value.trim_matches('"'))))
        }
        None => source.starts_with("/dev/").then(|| source.to_owned()),
    }
}

/// Encoded as by udev, which replaces characters that file names should not contain.
fn encoded(value: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "#+-.:=@_".contains(c) || !c.is_ascii();
    value.chars().map(|c| if plain(c) { c.to_string() } else { format!("\\x{:02x}", u32::from(c)) }).collect()
}

fn devices(questions: &Questions<'_>) -> BTreeSet<String> {
    questions.mounts.iter().filter_map(|(_, source)| device((*source)?)).collect()
}

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let devices = devices(questions);
    let mut sections = vec![("mounts", "cat /proc/self/mountinfo\n".to_owned())];
    if !devices.is_empty() {
        let links = format!("readlink -m -z -- {}\n", quote_all(devices.iter().map(String::as_str)));
        sections.push(("devices", links));
        // The kernel's table has the name of a mapped device, not its number.
        let mapped = "set -- /dev/mapper/*\nif [ -e \"$1\" ]; then\n\
                      printf '%s\\0' \"$@\"; readlink -m -z -- \"$@\"\nfi\n";
        sections.push(("mapped-devices", mapped.to_owned()));
    }
    sections
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let table = sections.text("mounts")?;
    // The last mount at a point hides those before.
    let live: BTreeMap<String, MountState> = table.lines().filter_map(mount).collect();
    let devices = devices(questions);
    let (mut targets_of, mut mapped): (BTreeMap<String, String>, BTreeMap<String, String>) =
        Default::default();
    if !devices.is_empty() {
        let (links, names) = (sections.text("devices")?, sections.text("mapped-devices")?);
        targets_of = devices.iter().cloned().zip(links.split_terminator('\0').map(str::to_owned)).collect();
        let names: Vec<&str> = names.split_terminator('\0').collect();
        let (names, targets) = names.split_at(names.len() / 2);
        mapped = names
            .iter()
            .zip(targets)
            .map(|(name, target)| ((*name).to_owned(), (*target).to_owned()))
            .collect();
    }
    for (point, source) in questions.mounts.iter().copied() {
        let state = live.get(point).cloned().map(|mut state| {
            if let Some(target) = mapped.get(&state.device) {
                state.device.clone_from(target);
            }
            state.expected_device =
                source.and_then(device).and_then(|device| targets_of.get(&device).cloned());
            state
        });
        let probe = Probe::Mount { point: point.to_owned(), source: source.map(str::to_owned) };
        // Every host has mounts.
        let answer = match table.trim().is_empty() {
            true => Answer::Failed("/proc/self/mountinfo cannot be read".to_owned()),
            false => Answer::Mount(state),
        };
        answers.insert(probe, answer);
    }
    Ok(())
}

/// A line of proc_pid_mountinfo(5): six fields, optional ones up to a dash, then type, source and the options
/// of the file system.
fn mount(line: &str) -> Option<(String, MountState)> {
    let (of_mount, of_system) = line.split_once(" - ")?;
    let mut of_mount = of_mount.split(' ');
    let (point, options) = (of_mount.nth(4)?, of_mount.next()?);
    let mut of_system = of_system.split(' ');
    let (sort, source) = (of_system.next()?, unescaped(of_system.next()?));
    let all = options.split(',').chain(of_system.next().unwrap_or_default().split(','));
    let mut options: BTreeSet<String> = all.filter(|word| !word.is_empty()).map(str::to_owned).collect();
    // A mount may be read-only while its file system is not, and vice versa.
    if options.contains("ro") {
        options.remove("rw");
    }
    let state = MountState {
        device: source.clone(),
        source,
        expected_device: None,
        fs_type: sort.to_owned(),
        options,
    };
    Some((unescaped(point), state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mount_is_read_from_the_kernels_table() {
        let options = |line: &str| {
            let (point, state) = mount(line).unwrap();
            let options: Vec<String> = state.options.into_iter().collect();
            (point, state.source, state.fs_type, options.join(","))
        };
        let cases = [
            (
                r"36 35 98:0 / /srv/with\040space rw,noatime shared:1 - ext4 /dev/sdb1 rw,errors=continue",
                ("/srv/with space", "/dev/sdb1", "ext4", "errors=continue,noatime,rw"),
            ),
            ("36 35 98:0 / /a ro - xfs /dev/a rw", ("/a", "/dev/a", "xfs", "ro")),
            ("36 35 98:0 / /a rw - xfs /dev/a ro", ("/a", "/dev/a", "xfs", "ro")),
            ("36 35 0:5 / /n rw - nfs4 s:/e rw,vers=4.2", ("/n", "s:/e", "nfs4", "rw,vers=4.2")),
        ];
        for (line, (point, source, sort, expected)) in cases {
            assert_eq!(options(line), (point.into(), source.into(), sort.into(), expected.into()), "{line}");
        }
    }

    #[test]
    fn tags_resolve_to_the_links_that_udev_makes() {
        for (source, path) in [
            ("UUID=1f-a", Some("/dev/disk/by-uuid/1f-a")),
            ("LABEL=my disk", Some(r"/dev/disk/by-label/my\x20disk")),
            ("PARTLABEL=\"a/b\"", Some(r"/dev/disk/by-partlabel/a\x2fb")),
            ("/dev/vg/lv", Some("/dev/vg/lv")),
            ("server:/export", None),
            ("tmpfs", None),
        ] {
            assert_eq!(device(source).as_deref(), path, "{source}");
        }
    }
}
