//! The points at which the work on a host must pause: certificates are signed here, from the host's requests, and the end
//! of a reboot is seen from here.

use super::{CertificateWork, RebootWork, Segment, Task};
use crate::resource::contract::step::Step;

/// Tasks as segments. Each ends with certificate requests or with a reboot, except the last.
pub(super) fn segments(tasks: Vec<Task>) -> Vec<Segment> {
    let mut segments = vec![Segment::default()];
    for task in tasks {
        for part in parts(task) {
            let [asking, rebooting] = segments.last().map_or([false, false], pauses);
            if rebooting || asking && !matches!(part, Part::Request(_)) {
                segments.push(Segment::default());
            }
            if let Some(segment) = segments.last_mut() {
                match part {
                    Part::Steps(task) => segment.tasks.push(task),
                    Part::Request(request) => segment.requests.push(*request),
                    Part::Reboot(reboot) => segment.reboot = Some(reboot),
                }
            }
        }
    }
    if segments.last().is_some_and(|segment| pauses(segment) != [false, false]) {
        segments.push(Segment::default());
    }
    segments
}

/// Whether a segment ends with requests, and whether with a reboot.
fn pauses(segment: &Segment) -> [bool; 2] {
    [!segment.requests.is_empty(), segment.reboot.is_some()]
}

enum Part {
    Steps(Task),
    Request(Box<CertificateWork>),
    Reboot(RebootWork),
}

/// A task split at its certificates and reboots; the first part begins it, the last one ends it.
fn parts(task: Task) -> Vec<Part> {
    let pauses = |step: &Step| matches!(step, Step::IssueCertificate(_) | Step::Reboot { .. });
    let pieces: Vec<&[Step]> = task.steps.chunk_by(|a, b| !pauses(a) && !pauses(b)).collect();
    let count = pieces.len();
    if count <= 1 && !task.steps.iter().any(pauses) {
        return vec![Part::Steps(task)];
    }
    pieces
        .into_iter()
        .enumerate()
        .map(|(at, piece)| {
            let (begins, ends) = (task.begins && at == 0, task.ends && at + 1 == count);
            match piece {
                [Step::IssueCertificate(request)] => {
                    let (ids, request) = (task.ids.clone(), request.clone());
                    Part::Request(Box::new(CertificateWork { ids, begins, ends, request }))
                }
                [Step::Reboot { boot_id, seconds }] => Part::Reboot(RebootWork {
                    ids: task.ids.clone(),
                    begins,
                    ends,
                    boot_id: boot_id.clone(),
                    seconds: *seconds,
                }),
                steps => Part::Steps(Task { ids: task.ids.clone(), begins, ends, steps: steps.to_vec() }),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::contract::step::{Access, CertificateRequest};

    fn issue(name: &str) -> Step {
        Step::IssueCertificate(CertificateRequest {
            certificate: format!("/{name}.crt"),
            key: format!("/{name}.key"),
            authority: "etcd".into(),
            common_name: name.into(),
            organizations: Vec::new(),
            names: Vec::new(),
            usages: Vec::new(),
            access: Access { owner: "root".into(), group: "root".into(), mode: 0o644 },
            days: 1,
        })
    }

    /// `id` with `^` where it begins and `$` where it ends; certificates in brackets, reboots in parentheses, segments between bars.
    fn outline(tasks: &[(&str, Vec<Step>)]) -> String {
        let marked = |ids: &[String], begins: bool, ends: bool| {
            format!("{}{}{}", if begins { "^" } else { "" }, ids.join("+"), if ends { "$" } else { "" })
        };
        let tasks = tasks.iter().map(|(id, steps)| Task {
            ids: vec![(*id).to_owned()],
            begins: true,
            ends: true,
            steps: steps.clone(),
        });
        let outlines = segments(tasks.collect()).into_iter().map(|segment| {
            let tasks = segment.tasks.iter().map(|task| marked(&task.ids, task.begins, task.ends));
            let requests = segment
                .requests
                .iter()
                .map(|work| format!("[{}]", marked(&work.ids, work.begins, work.ends)));
            let reboot =
                segment.reboot.iter().map(|work| format!("({})", marked(&work.ids, work.begins, work.ends)));
            tasks.chain(requests).chain(reboot).collect::<Vec<_>>().join(" ")
        });
        outlines.collect::<Vec<_>>().join(" | ")
    }

    #[test]
    fn work_pauses_once_for_certificates_that_follow_each_other() {
        let run = || Step::SwapOff;
        let reboot = || Step::Reboot { boot_id: "1".into(), seconds: 1 };
        let cases = [
            (vec![], ""),
            (vec![("a", vec![run()]), ("b", vec![])], "^a$ ^b$"),
            (
                vec![("a", vec![run()]), ("c", vec![issue("c")]), ("d", vec![issue("d")])],
                "^a$ [^c$] [^d$] | ",
            ),
            (vec![("c", vec![issue("c")]), ("a", vec![run()])], "[^c$] | ^a$"),
            (vec![("a", vec![run()]), ("r", vec![reboot()]), ("b", vec![run()])], "^a$ (^r$) | ^b$"),
            (vec![("r", vec![reboot()])], "(^r$) | "),
            (vec![("r", vec![reboot()]), ("s", vec![reboot()])], "(^r$) | (^s$) | "),
            (
                vec![("c", vec![issue("c")]), ("r", vec![reboot()]), ("d", vec![issue("d")])],
                "[^c$] | (^r$) | [^d$] | ",
            ),
            (vec![("c", vec![run(), issue("c"), run()]), ("d", vec![issue("d")])], "^c [c] | c$ [^d$] | "),
        ];
        for (tasks, expected) in cases {
            assert_eq!(outline(&tasks), expected);
        }
    }
}
