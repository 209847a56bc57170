//! Interrupted, slow and wrong downloads.

use std::fs;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Barrier;

use crate::source_server::{Artefact, Fault};
use crate::workshop::{SIZE, Workshop, content, digests};

/// A workshop whose bundle is of version 1, and whose server has version 2 with these faults.
async fn updated(faults: impl IntoIterator<Item = Fault>) -> Workshop {
    let workshop = Workshop::new().await;
    let old = workshop.offer("tool", "1.0.0");
    assert!(workshop.build(&[&old]).await.contains("bundle written"));
    workshop.server.requests();
    workshop.offer("tool", "2.0.0");
    workshop.server.faults("/2.0.0/tool", faults);
    workshop
}

#[tokio::test]
async fn an_interrupted_download_is_resumed() {
    // What was served, what happens, and the ranges of the requests.
    type Change = fn(&mut Artefact);
    let cases: [(&str, Change, &[Fault], &[&str]); 8] = [
        ("cut", |_| (), &[Fault::Cut(1000)], &["", " bytes=1000- \"one\""]),
        (
            "cut twice",
            |_| (),
            &[Fault::Cut(1000), Fault::Cut(500)],
            &["", " bytes=1000- \"one\"", " bytes=1500- \"one\""],
        ),
        (
            "a date as validator",
            |artefact| artefact.validator = Some(("Last-Modified", "Thu, 01 Jan 2026 00:00:00 GMT")),
            &[Fault::Cut(1000)],
            &["", " bytes=1000- Thu, 01 Jan 2026 00:00:00 GMT"],
        ),
        (
            "a weak validator",
            |artefact| artefact.validator = Some(("ETag", "W/\"one\"")),
            &[Fault::Cut(1000)],
            &["", ""],
        ),
        ("no validator", |artefact| artefact.validator = None, &[Fault::Cut(1000)], &["", ""]),
        (
            "no ranges",
            |artefact| artefact.has_ranges = false,
            &[Fault::Cut(1000)],
            &["", " bytes=1000- \"one\""],
        ),
        ("another range", |_| (), &[Fault::Cut(1000), Fault::OtherRange], &["", " bytes=1000- \"one\"", ""]),
        ("overloaded", |_| (), &[Fault::Status(503), Fault::Status(429)], &["", "", ""]),
    ];
    for (name, change, faults, expected) in cases {
        let workshop = updated(faults.iter().copied()).await;
        let new = workshop.offer("tool", "2.0.0");
        change(workshop.server.shelf.lock().unwrap().artefacts.get_mut(&new.path()).unwrap());
        let lines = workshop.build(&[&new]).await;
        assert!(lines.contains("bundle written"), "{name}: {lines}");
        assert_eq!(lines.matches("; attempt ").count(), faults.len(), "{name}: {lines}");
        assert_eq!(lines.contains("sent another range"), name == "another range", "{lines}");
        let expected: Vec<String> = expected.iter().map(|range| format!("/2.0.0/tool{range}")).collect();
        assert_eq!(workshop.server.requests(), expected, "{name}");
        assert_eq!(workshop.verify("out", &[&new]), [""; 0], "{name}");
        assert_eq!(workshop.leftovers("cache", ".partial-"), [""; 0], "{name}");
    }
}

#[tokio::test]
async fn a_download_that_is_given_up_is_resumed_by_the_next_build() {
    let workshop = updated([Fault::Cut(1000); 5]).await;
    let (new, before) = (workshop.offer("tool", "2.0.0"), digests(&workshop.at("out")));
    let lines = workshop.build(&[&new]).await;
    insta::assert_snapshot!(lines, @r"
    tool: from official artefacts
    http://SERVER/2.0.0/tool: interrupted: end of file before message length reached; attempt 2 of 5 in 0 s
    http://SERVER/2.0.0/tool: interrupted: end of file before message length reached; attempt 3 of 5 in 0 s
    http://SERVER/2.0.0/tool: interrupted: end of file before message length reached; attempt 4 of 5 in 0 s
    http://SERVER/2.0.0/tool: interrupted: end of file before message length reached; attempt 5 of 5 in 0 s
    error: component tool: http://SERVER/2.0.0/tool: interrupted: end of file before message length reached
    ");
    assert_eq!(digests(&workshop.at("out")), before);
    workshop.server.requests();
    assert!(workshop.build(&[&new]).await.contains("bundle written"));
    assert_eq!(workshop.server.requests(), ["/2.0.0/tool bytes=5000- \"one\""]);
    assert_eq!(workshop.verify("out", &[&new]), [""; 0]);
}

#[tokio::test]
async fn what_is_left_of_downloads_that_no_list_has_is_removed() {
    let workshop = updated([Fault::Cut(1000); 5]).await;
    let (given_up, next) = (workshop.offer("tool", "2.0.0"), workshop.offer("tool", "3.0.0"));
    assert!(workshop.build(&[&given_up]).await.contains("interrupted"));
    assert_eq!(workshop.leftovers("cache", ".partial-").len(), 2);
    assert!(workshop.build(&[&next]).await.contains("bundle written"));
    assert_eq!(workshop.leftovers("cache", ".partial-"), [""; 0]);
}

#[tokio::test]
async fn a_published_digest_is_requested_until_it_is_there() {
    let workshop = updated([]).await;
    let new = workshop.offer("tool", "2.0.0");
    let pinned = format!("sha256: {{ amd64: {} }}", new.digest);
    let list = workshop.list(&[&new]).replace(&pinned, "sha256_url: \"{url}.sha256\"");
    workshop.server.put("/2.0.0/tool.sha256", Artefact::new(new.digest.to_string()));
    workshop.server.faults("/2.0.0/tool.sha256", [Fault::Cut(63), Fault::Status(503)]);
    let lines = workshop.build_list("out", &list).await;
    assert!(lines.contains("bundle written"), "{lines}");
    let digest = "/2.0.0/tool.sha256";
    assert_eq!(workshop.server.requests(), [digest, digest, digest, "/2.0.0/tool"]);
}

#[tokio::test]
async fn components_that_share_an_artefact_do_not_share_a_download() {
    let workshop = Workshop::new().await;
    let (one, two) = (workshop.offer("one", "1.0.0"), workshop.offer("two", "1.0.0"));
    let list = workshop.list(&[&one, &two]).replace("/{version}/two", "/{version}/one");
    let list = list.replace(two.digest.as_str(), one.digest.as_str());
    workshop.server.shelf.lock().unwrap().together = Some(Arc::new(Barrier::new(2)));
    let lines = workshop.build_list("out", &list).await;
    assert!(lines.contains("bundle written") && !lines.contains("attempt"), "{lines}");
    assert_eq!(workshop.server.requests(), [one.path(), one.path()]);
}

/// Killed between the last byte and the check of the digest; and a file that is longer than the artefact.
#[tokio::test]
async fn a_download_that_was_received_whole_is_not_requested_again() {
    for (more, expected) in [(0, vec![]), (10, vec![" bytes=307210- \"one\"", ""])] {
        let workshop = updated([Fault::Cut(1000); 5]).await;
        let new = workshop.offer("tool", "2.0.0");
        assert!(workshop.build(&[&new]).await.contains("interrupted"));
        let partial =
            workshop.leftovers("cache", ".partial-").into_iter().find(|name| !name.ends_with(".json"));
        let mut received = content("tool 2.0.0");
        received.resize(SIZE + more, 0);
        fs::write(workshop.at("cache").join(partial.unwrap()), received).unwrap();
        workshop.server.requests();
        assert!(workshop.build(&[&new]).await.contains("bundle written"));
        let expected: Vec<String> = expected.iter().map(|range| format!("/2.0.0/tool{range}")).collect();
        assert_eq!(workshop.server.requests(), expected);
        assert_eq!(workshop.verify("out", &[&new]), [""; 0]);
    }
}

/// The content behind a URL was replaced while a part of the old one was in the cache.
#[tokio::test]
async fn parts_of_two_contents_are_never_one_artefact() {
    for tag in ["\"two\"", "\"one\""] {
        let workshop = updated([Fault::Cut(1000); 5]).await;
        let new = workshop.offer("tool", "2.0.0");
        let replaced = Artefact::new(content("replaced"));
        workshop.server.put(&new.path(), replaced);
        assert!(
            workshop
                .build(&[&new])
                .await
                .contains("error: component tool: http://SERVER/2.0.0/tool: interrupted: ")
        );
        let mut artefact = Artefact::new(content("tool 2.0.0"));
        artefact.validator = Some(("ETag", tag));
        workshop.server.put(&new.path(), artefact);
        workshop.server.requests();
        assert!(workshop.build(&[&new]).await.contains("bundle written"), "{tag}");
        assert_eq!(workshop.verify("out", &[&new]), [""; 0], "{tag}");
        // A server that has changed the content and not the tag: the digest of the whole is wrong.
        let expected = if tag == "\"one\"" { 2 } else { 1 };
        assert_eq!(workshop.server.requests().len(), expected, "{tag}");
    }
}

#[tokio::test]
async fn a_wrong_digest_is_final_and_nothing_of_it_is_kept() {
    let workshop = updated([]).await;
    let (new, before) = (workshop.offer("tool", "2.0.0"), digests(&workshop.at("out")));
    workshop.server.put(&new.path(), Artefact::new("another content"));
    let lines = workshop.build(&[&new]).await;
    let found = metalform::bundle::digest::Sha256::of(b"another content");
    let expected = format!(
        "error: component tool: http://SERVER/2.0.0/tool has SHA-256 {found}, expected {}",
        new.digest
    );
    assert!(lines.ends_with(&expected), "{lines}");
    assert_eq!(workshop.server.requests(), ["/2.0.0/tool"]);
    assert_eq!(workshop.leftovers("cache", "."), [".lock"]);
    assert_eq!(digests(&workshop.at("out")), before);
}

#[tokio::test]
async fn a_missing_artefact_and_a_refusal_are_final() {
    for status in [404, 403, 501] {
        let workshop = updated([Fault::Status(status)]).await;
        let (new, before) = (workshop.offer("tool", "2.0.0"), digests(&workshop.at("out")));
        let lines = workshop.build(&[&new]).await;
        assert!(
            lines
                .ends_with(&format!("error: component tool: http://SERVER/2.0.0/tool: HTTP status {status}")),
            "{lines}"
        );
        assert_eq!(workshop.server.requests(), ["/2.0.0/tool"]);
        assert_eq!(digests(&workshop.at("out")), before);
    }
}

#[tokio::test]
async fn a_silent_server_is_given_up_and_progress_is_reported_meanwhile() {
    let mut workshop = updated([Fault::Silent(0), Fault::Silent(SIZE / 2)]).await;
    workshop.limits.silence = Duration::from_millis(1200);
    let new = workshop.offer("tool", "2.0.0");
    let lines = workshop.build(&[&new]).await;
    assert!(lines.contains("tool: interrupted: operation timed out; attempt 2 of 5 in 0 s"), "{lines}");
    assert!(lines.contains("downloads: 0 of 1, 0.0 MiB of 0.2 MiB, 0.0 MiB/s, stalled"), "{lines}");
    assert!(lines.contains("downloads: 0 of 1, 0.1 MiB of 0.2 MiB, "), "{lines}");
    assert!(lines.contains("bundle written"), "{lines}");
}

#[tokio::test]
async fn as_many_downloads_as_allowed_are_side_by_side() {
    for limit in [1, 2, 3] {
        let mut workshop = Workshop::new().await;
        workshop.limits.side_by_side = NonZeroUsize::new(limit).unwrap();
        let names = ["a", "b", "c", "d", "e", "f"];
        let components = names.map(|name| workshop.offer(name, "1.0.0"));
        // No request is answered before so many are there.
        workshop.server.shelf.lock().unwrap().together = Some(Arc::new(Barrier::new(limit)));
        let lines = workshop.build(&components.each_ref()).await;
        assert!(lines.contains("bundle written"), "{lines}");
        assert_eq!(workshop.server.shelf.lock().unwrap().most, limit);
        assert_eq!(workshop.verify("out", &components.each_ref()), [""; 0]);
    }
}
