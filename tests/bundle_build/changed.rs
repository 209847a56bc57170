//! A bundle that learns more, and forgets it; compared with what it was, and carried.

use std::fs;

use crate::command::{run, run_all};
use crate::workshop::{Workshop, digests};

/// Exit code, standard output and standard error.
async fn metalform(workshop: &Workshop, words: &[&str]) -> (Option<i32>, String, String) {
    let mut command = workshop.metalform("");
    command.args(words);
    let (code, text, lines) = run_all(command).await;
    (code, workshop.anonymous(&text), workshop.anonymous(&lines))
}

#[tokio::test]
async fn a_bundle_learns_and_forgets_and_is_then_as_it_was() {
    let workshop = Workshop::new().await;
    let (one, old, new) =
        (workshop.offer("one", "1.0.0"), workshop.offer("two", "1.0.0"), workshop.offer("two", "2.0.0"));
    let (code, lines) = run(workshop.command("", ("cache", "out"), &[&one, &old])).await;
    assert_eq!(code, Some(0), "{lines}");
    let before = digests(&workshop.at("out"));
    fs::rename(workshop.at("out"), workshop.at("before")).unwrap();
    let (code, ..) = run(workshop.command("", ("cache", "out"), &[&one, &old])).await;
    assert_eq!(code, Some(0));

    let more =
        workshop.list(&[&new]).replace("release: '13', suite: trixie", "release: '12', suite: bookworm");
    fs::write(workshop.at("more.yaml"), more).unwrap();
    workshop.server.requests();
    let options = ["--source", "release", "--cache", "cache"];
    let (code, _, lines) =
        metalform(&workshop, &[&["bundle", "add", "out", "-f", "more.yaml"], &options[..]].concat()).await;
    assert_eq!(code, Some(0), "{lines}");

    let (code, text, _) = metalform(&workshop, &["bundle", "diff", "before", "out"]).await;
    assert_eq!(code, Some(0));
    insta::assert_snapshot!(text, @r"
    KIND        NAME                    BEFORE   AFTER
    platform    debian-12-amd64         -        yes
    component   two                     1.0.0    2.0.0
    image       example.org/two         v1.0.0   v2.0.0
    package     one (debian-12-amd64)   -        1.0.0
    package     two (debian-12-amd64)   -        2.0.0
    package     two (debian-13-amd64)   1.0.0    2.0.0
    11 new files, 1 MiB
    ");
    let (code, text, _) = metalform(&workshop, &["bundle", "diff", "out", "out"]).await;
    assert_eq!((code, text.as_str()), (Some(0), "0 new files, 0 MiB\n"));

    // The same version of the second, and the first operating system alone.
    fs::write(workshop.at("less.yaml"), workshop.list(&[&old])).unwrap();
    let (code, ..) =
        metalform(&workshop, &[&["bundle", "add", "out", "-f", "less.yaml"], &options[..]].concat()).await;
    assert_eq!(code, Some(0));
    let (code, ..) =
        metalform(&workshop, &[&["bundle", "remove", "out", "debian-12"], &options[..]].concat()).await;
    assert_eq!(code, Some(0));
    assert_eq!(digests(&workshop.at("out")), before);

    let (code, _, lines) =
        metalform(&workshop, &[&["bundle", "remove", "out", "debian-14"], &options[..]].concat()).await;
    assert_eq!(code, Some(1));
    assert!(lines.contains("error: the bundle has no debian-14; did you mean \"debian-13\"?"), "{lines}");
    assert_eq!(digests(&workshop.at("out")), before);
}

#[tokio::test]
async fn a_bundle_is_carried_as_one_file_and_lacks_what_the_states_ask_for() {
    let workshop = Workshop::new().await;
    let tool = workshop.offer("haproxy", "1.0.0");
    let (code, lines) = run(workshop.command("", ("cache", "out"), &[&tool])).await;
    assert_eq!(code, Some(0), "{lines}");
    let (code, text, _) = metalform(&workshop, &["bundle", "pack", "out", "-o", "bundle.tar"]).await;
    assert_eq!((code, text.as_str()), (Some(0), "bundle.tar: written\n"));
    let (code, text, _) = metalform(&workshop, &["bundle", "unpack", "bundle.tar", "-o", "there"]).await;
    assert_eq!((code, text.as_str()), (Some(0), "there: complete, 11 files\n"));
    assert_eq!(digests(&workshop.at("there")), digests(&workshop.at("out")));

    let archive = fs::read(workshop.at("bundle.tar")).unwrap();
    fs::write(workshop.at("bundle.tar"), &archive[..archive.len() / 2]).unwrap();
    let (code, _, lines) = metalform(&workshop, &["bundle", "unpack", "bundle.tar", "-o", "there"]).await;
    assert_eq!(code, Some(4), "{lines}");
    assert!(lines.starts_with("error: bundle.tar is not a whole archive of a bundle: "), "{lines}");
    assert_eq!(digests(&workshop.at("there")), digests(&workshop.at("out")));
    let (code, ..) = metalform(&workshop, &["bundle", "unpack", "nothing.tar", "-o", "there"]).await;
    assert_eq!(code, Some(1));

    let (code, _, lines) = metalform(&workshop, &["bundle", "verify", "there"]).await;
    assert_eq!(code, Some(4), "{lines}");
    assert!(lines.contains("error: image etcd: missing, and states/etcd.yaml:15 asks for it\n"), "{lines}");
    assert!(
        lines.contains("error: package socat for debian-13-amd64: missing, and states/node-packages.yaml:"),
        "{lines}"
    );
    assert!(!lines.contains("haproxy"), "{lines}");
}
