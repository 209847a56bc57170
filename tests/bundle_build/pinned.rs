//! Component lists with the digest of everything that a bundle was made of.

use std::fs;
use std::path::Path;

use metalform::bundle::digest::Sha256;
use tokio::process::Command;

use crate::command::{run, run_all};
use crate::source_server::Artefact;
use crate::workshop::{Workshop, content, digests};

/// A program of a module that a proxy has.
const GO_LIST: &str = r#"
apiVersion: metalform.dev/v1alpha1
kind: ComponentList
architectures: [amd64]
operating_systems: [{ distribution: debian, release: '13', suite: trixie, packages: [] }]
components:
  - name: tool
    version: 1.0.0
    sources:
      go:
        requires: { example.org/module: v1.0.0 }
        mains:
          tool: "package main\n\nimport \"example.org/module\"\n\nfunc main() { println(module.Text) }\n"
    packages: [{ name: tool, description: A tool, files: { /usr/bin/tool: tool } }]
"#;

/// Writes a module in the layout of a proxy: DIRECTORY TEXT.
const PUBLISH: &str = r#"package main

import (
	"archive/zip"
	"os"
	"path/filepath"
)

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	versions := filepath.Join(os.Args[1], "example.org", "module", "@v")
	check(os.MkdirAll(versions, 0o755))
	mod := "module example.org/module\n\ngo 1.21\n"
	write := func(name, text string) { check(os.WriteFile(filepath.Join(versions, name), []byte(text), 0o644)) }
	write("list", "v1.0.0\n")
	write("v1.0.0.info", `{"Version":"v1.0.0","Time":"2026-01-01T00:00:00Z"}`)
	write("v1.0.0.mod", mod)
	file, err := os.Create(filepath.Join(versions, "v1.0.0.zip"))
	check(err)
	archive := zip.NewWriter(file)
	for name, text := range map[string]string{"go.mod": mod, "module.go": "package module\n\nconst Text = \"" + os.Args[2] + "\"\n"} {
		entry, err := archive.Create("example.org/module@v1.0.0/" + name)
		check(err)
		_, err = entry.Write([]byte(text))
		check(err)
	}
	check(archive.Close())
	check(file.Close())
}
"#;

async fn publish(workshop: &Workshop, text: &str) {
    fs::write(workshop.at("publish.go"), PUBLISH).unwrap();
    let mut command = Command::new("go");
    command.args(["run", "publish.go", "proxy", text]).current_dir(workshop.directory.path());
    assert!(command.status().await.unwrap().success());
}

/// A build from Go modules that trusts no module before.
async fn build_from_go(
    workshop: &Workshop,
    list: &Path,
    (cache, output): (&str, &str),
    more: &[&str],
) -> (Option<i32>, String) {
    let mut command = workshop.metalform("");
    command
        .args(["bundle", "build", "--source", "go", "--cache", cache, "--output", output, "--file"])
        .arg(list)
        .args(more)
        .env("GOPROXY", format!("file://{}", workshop.at("proxy").display()))
        .env("GOMODCACHE", workshop.at(&format!("modules-{output}")))
        .env("GOFLAGS", "-modcacherw");
    if more.is_empty() {
        command.env("GONOSUMDB", "example.org");
    } else {
        // The checksum database is not asked.
        command.env_remove("GONOSUMDB").env("GOSUMDB", "sum.golang.org http://127.0.0.1:9");
    }
    let (code, lines) = run(command).await;
    (code, workshop.anonymous(&lines))
}

#[tokio::test]
async fn a_module_of_another_content_is_refused() {
    let workshop = Workshop::new().await;
    publish(&workshop, "true").await;
    let list = workshop.at("list.yaml");
    fs::write(&list, GO_LIST).unwrap();
    let (code, lines) = build_from_go(&workshop, &list, ("cache", "refused"), &["--pinned"]).await;
    assert_eq!(code, Some(1), "{lines}");
    let expected = "error: component tool: the component list has no digest of its Go source\nhint: ";
    assert!(lines.starts_with(expected), "{lines}");

    let (code, lines) = build_from_go(&workshop, &list, ("cache", "out"), &[]).await;
    assert_eq!(code, Some(0), "{lines}");
    let pinned = workshop.at("out/components.yaml");
    assert_eq!(fs::read_to_string(&pinned).unwrap().matches("sum: ").count(), 1);
    let (code, lines) = build_from_go(&workshop, &pinned, ("other", "again"), &["--pinned"]).await;
    assert_eq!(code, Some(0), "{lines}");
    let (first, again) = (digests(&workshop.at("out/apt")), digests(&workshop.at("again/apt")));
    assert_eq!(first, again);

    publish(&workshop, "false").await;
    let (code, lines) = build_from_go(&workshop, &pinned, ("empty", "altered"), &["--pinned"]).await;
    assert_eq!(code, Some(1), "{lines}");
    assert!(
        lines.contains("the modules differ from those of the component list: go.sum has SHA-256 "),
        "{lines}"
    );
    assert!(!workshop.at("altered").exists());
    let (code, lines) = build_from_go(&workshop, &pinned, ("cache", "cached"), &["--pinned"]).await;
    assert_eq!((code, lines.lines().next()), (Some(0), Some("tool: unchanged")), "{lines}");
}

#[tokio::test]
async fn the_list_in_a_bundle_has_the_digests_that_were_published() {
    let workshop = Workshop::new().await;
    let tool = workshop.offer("tool", "1.0.0");
    let publish = |content: &[u8]| {
        let digest = Sha256::of(content).to_string();
        workshop.server.put(&format!("{}.sha256", tool.path()), Artefact::new(digest.into_bytes()));
    };
    publish(&content("tool 1.0.0"));
    let (known, published) =
        (format!("sha256: {{ amd64: {} }}", tool.digest), "sha256_url: \"{url}.sha256\"");
    let list = workshop.list(&[&tool]).replace(&known, published);
    fs::write(workshop.at("list.yaml"), &list).unwrap();
    let build = async |cache: &str, list: &str, pinned: bool| {
        let mut command = workshop.command_of("", (cache, "out"), &workshop.at(list));
        command.args(pinned.then_some("--pinned"));
        let (code, _, lines) = run_all(command).await;
        (code, workshop.anonymous(&lines))
    };
    let (code, lines) = build("cache", "list.yaml", true).await;
    assert_eq!(code, Some(1), "{lines}");
    assert!(lines.contains("no digest of http://SERVER/{version}/tool\n"), "{lines}");
    assert_eq!(build("cache", "list.yaml", false).await.0, Some(0));
    fs::copy(workshop.at("out/components.yaml"), workshop.at("pinned.yaml")).unwrap();
    workshop.server.requests();
    let (code, lines) = build("cache", "pinned.yaml", true).await;
    assert_eq!(code, Some(0), "{lines}");
    assert!(lines.starts_with("tool: unchanged\n"), "a digest compiles and downloads nothing again: {lines}");
    assert_eq!(workshop.server.requests(), [""; 0]);

    // Artefact and published digest are replaced together.
    let other = content("another tool");
    publish(&other);
    workshop.server.put(&tool.path(), Artefact::new(other));
    assert_eq!(build("new", "list.yaml", false).await.0, Some(0));
    let (code, lines) = build("new", "pinned.yaml", true).await;
    assert_eq!(code, Some(4), "{lines}");
    assert!(lines.contains(&format!("expected {}", tool.digest)), "{lines}");
}
