//! Downloads by the shells and tools of this machine, from a server of the test's own.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};

use super::progress::ProgressSummary;
use super::{PackageManager, Segment, Task, program};
use crate::engine::nonce::Nonce;
use crate::engine::shells::{run, shells};
use crate::model::shell_word::quote;
use crate::resource::contract::remote_file::RemoteFile;
use crate::resource::contract::step::{Access, Step};
use crate::transport::Program;

/// A server of files by name; `cut` is promised longer than it is.
struct Files {
    port: u16,
    files: Arc<Mutex<BTreeMap<String, Vec<u8>>>>,
}

impl Files {
    fn new() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let files = Arc::new(Mutex::new(BTreeMap::<String, Vec<u8>>::new()));
        let shared = Arc::clone(&files);
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let mut request = [0; 4096];
                let length = stream.read(&mut request).unwrap();
                let request = String::from_utf8_lossy(&request[..length]).into_owned();
                let name = request.split(' ').nth(1).unwrap().trim_start_matches('/').to_owned();
                let answer = match shared.lock().unwrap().get(&name) {
                    Some(body) => {
                        let promised = body.len() + if name == "cut" { 10 } else { 0 };
                        let head = format!(
                            "HTTP/1.1 200 OK\r\nContent-Length: {promised}\r\nConnection: close\r\n\r\n"
                        );
                        [head.as_bytes(), body].concat()
                    }
                    None => {
                        b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_vec()
                    }
                };
                drop(stream.write_all(&answer));
            }
        });
        Self { port, files }
    }

    /// Serves this content; where it is to be had, and its digest.
    fn serve(&self, name: &str, body: &[u8]) -> RemoteFile {
        self.files.lock().unwrap().insert(name.to_owned(), body.to_vec());
        let url = format!("http://127.0.0.1:{}/{name}", self.port);
        RemoteFile { url, sha256: hex::encode(Sha256::digest(body)), ca: None }
    }
}

struct Dir(tempfile::TempDir);

impl Dir {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn at(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn access(&self, mode: u32) -> Access {
        let owner = fs::metadata(self.0.path()).unwrap();
        Access { owner: owner.uid().to_string(), group: owner.gid().to_string(), mode }
    }

    fn names(&self) -> Vec<String> {
        names(self.0.path())
    }

    fn bring(&self, from: &RemoteFile, name: &str) -> Step {
        Step::Download { from: from.clone(), path: self.at(name), access: self.access(0o750) }
    }

    fn unpack(&self, from: &RemoteFile, name: &str, strip: u32) -> Step {
        Step::Unpack {
            from: from.clone(),
            path: self.at(name),
            strip,
            marker: format!("sha256 {}\n", from.sha256),
            access: self.access(0o751),
        }
    }
}

fn names(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn program_of(step: Step) -> Program {
    let task = Task { ids: vec!["x".to_owned()], begins: true, ends: true, steps: vec![step] };
    let segment = Segment { tasks: vec![task], ..Segment::default() };
    program(&segment, PackageManager::Apt, "", &Nonce::new(6))
}

fn outcome(shell: &str, program: &Program) -> Result<(), String> {
    let output = run(shell, program);
    assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{shell}");
    let summary = ProgressSummary::of(&Nonce::new(6), &output.stdout);
    assert!(summary.ended || summary.failed.is_some(), "{shell}");
    summary.failed.map_or(Ok(()), |(_, _, output)| Err(output))
}

fn applied(shell: &str, step: Step) -> Result<(), String> {
    outcome(shell, &program_of(step))
}

/// With nothing in PATH but these tools, so that a host without the others is played.
fn with_tools(dir: &Dir, tools: &[&str], step: Step) -> Result<(), String> {
    let bin = dir.at("bin");
    fs::create_dir_all(&bin).unwrap();
    let always = [
        "base64",
        "chmod",
        "chown",
        "gzip",
        "ls",
        "mkdir",
        "mktemp",
        "mv",
        "rm",
        "sha256sum",
        "stat",
        "sync",
        "tail",
        "tar",
    ];
    for tool in always.iter().chain(tools) {
        let found = std::env::split_paths(&std::env::var_os("PATH").unwrap())
            .map(|dir| dir.join(tool))
            .find(|path| path.exists());
        symlink(found.unwrap(), PathBuf::from(&bin).join(tool)).unwrap();
    }
    let program = program_of(step);
    let path = "PATH=\"$PATH:/usr/local/sbin:/usr/sbin:/sbin:/usr/bin:/bin\"";
    assert!(program.script.contains(path));
    let script = program.script.replace(path, &format!("PATH={}", quote(&bin)));
    let result = outcome("sh", &Program { script, ..program });
    fs::remove_dir_all(bin).unwrap();
    result
}

/// A tar archive of these members; one that ends with `/` is a directory, `a -> b` is a link.
fn tar(members: &[(&str, &str)]) -> Vec<u8> {
    let mut builder = tar::Builder::new(Vec::new());
    for (name, text) in members {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o4755);
        header.set_uid(4242);
        let (name, target) = name.split_once(" -> ").map_or((*name, None), |(name, to)| (name, Some(to)));
        if name.ends_with('/') {
            header.set_entry_type(tar::EntryType::Directory);
        }
        if let Some(target) = target {
            header.set_entry_type(tar::EntryType::Symlink);
            header.set_link_name(target).unwrap();
        }
        header.set_size(text.len() as u64);
        // The builder refuses names outside the tree, so the name is set directly.
        header.as_old_mut().name[..name.len()].copy_from_slice(name.as_bytes());
        header.set_cksum();
        builder.append(&header, text.as_bytes()).unwrap();
    }
    builder.into_inner().unwrap()
}

const NAME: &str = "-it's a\n\"tööl\" $(x)";

#[test]
fn a_download_is_there_whole_with_its_access_or_not_at_all() {
    let files = Files::new();
    let good = files.serve("tool", b"new");
    let wrong = RemoteFile { sha256: "0".repeat(64), ..good.clone() };
    let missing = RemoteFile { url: format!("{}-missing", good.url), ..good.clone() };
    let cut = files.serve("cut", b"new");
    for shell in shells() {
        let dir = Dir::new();
        assert_eq!(applied(shell, dir.bring(&good, &format!("dir/{NAME}"))), Ok(()), "{shell}");
        let path = dir.at(&format!("dir/{NAME}"));
        assert_eq!(fs::read(&path).unwrap(), b"new");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o7777, 0o750);

        fs::write(dir.at("old"), "old").unwrap();
        for (from, message) in [
            (&wrong, format!("the downloaded file has the sha256 {}, not {}", good.sha256, wrong.sha256)),
            (&missing, "404".to_owned()),
            (&cut, "curl: (18)".to_owned()),
        ] {
            let output = applied(shell, dir.bring(from, "old")).unwrap_err();
            assert!(output.contains(&message), "{shell}: {output}");
            assert_eq!(fs::read(dir.at("old")).unwrap(), b"old", "{shell}: {message}");
        }
        assert_eq!(dir.names(), ["dir", "old"], "{shell}: nothing is left beside");
        symlink("/nonexistent", dir.at("link")).unwrap();
        assert_eq!(applied(shell, dir.bring(&good, "link")), Ok(()));
        assert!(fs::symlink_metadata(dir.at("link")).unwrap().is_file(), "{shell}: a link is replaced");
    }
}

#[test]
fn a_host_downloads_with_what_it_has() {
    let (files, dir) = (Files::new(), Dir::new());
    let good = files.serve("tool", b"new");
    let missing = RemoteFile { url: format!("{}-missing", good.url), ..good.clone() };
    for tools in [&["curl"] as &[&str], &["wget"], &["apt-get", "cat"]] {
        let tool = tools[0];
        assert_eq!(with_tools(&dir, tools, dir.bring(&good, tool)), Ok(()), "{tool}");
        assert_eq!(fs::read(dir.at(tool)).unwrap(), b"new");
        let output = with_tools(&dir, tools, dir.bring(&missing, tool)).unwrap_err();
        assert!(output.contains("404"), "{tool}: {output}");
    }
    // It would be an argument of apt's.
    let secret = RemoteFile { url: good.url.replace("http://", "http://user:secret@"), ..good.clone() };
    for (tools, from) in [(&[] as &[&str], &good), (&["apt-get", "cat"], &secret)] {
        let output = with_tools(&dir, tools, dir.bring(from, "none")).unwrap_err();
        assert_eq!(output, "the host has neither curl nor wget to download with\n");
    }
    assert_eq!(dir.names(), ["apt-get", "curl", "wget"]);
}

#[test]
fn an_archive_takes_the_place_of_the_one_before_as_a_whole() {
    let files = Files::new();
    let first = files.serve("first", &tar(&[("top/", ""), ("top/old", "1"), ("top/link -> /etc", "")]));
    let second = files.serve("second", &tar(&[("top/", ""), ("top/bin/", ""), ("top/bin/new", "2")]));
    for shell in shells() {
        let dir = Dir::new();
        assert_eq!(applied(shell, dir.unpack(&first, NAME, 1)), Ok(()), "{shell}");
        let place = PathBuf::from(dir.at(NAME));
        assert_eq!(names(&place), [".metalform-archive", "link", "old"]);
        assert_eq!(fs::metadata(&place).unwrap().permissions().mode() & 0o7777, 0o751);
        let old = fs::metadata(place.join("old")).unwrap();
        assert_eq!(old.uid(), fs::metadata(dir.0.path()).unwrap().uid(), "not the archive's user");
        assert_eq!(old.mode() & 0o22, 0, "only the owner may write");

        fs::write(place.join("by hand"), "").unwrap();
        assert_eq!(applied(shell, dir.unpack(&second, NAME, 1)), Ok(()), "{shell}");
        assert_eq!(names(&place), [".metalform-archive", "bin"]);
        assert_eq!(fs::read_to_string(place.join("bin/new")).unwrap(), "2");
        let marker = fs::read_to_string(place.join(".metalform-archive")).unwrap();
        assert_eq!(marker, format!("sha256 {}\n", second.sha256));
        assert_eq!(dir.names(), [NAME], "{shell}: nothing is left beside");

        let nothing = applied(shell, dir.unpack(&second, NAME, 3)).unwrap_err();
        assert_eq!(nothing, "the archive contains nothing below 3 directories\n");
        assert_eq!(names(&place), [".metalform-archive", "bin"]);
    }
}

#[test]
fn an_archive_never_replaces_what_was_not_unpacked() {
    let files = Files::new();
    let archive = files.serve("a", &tar(&[("x", "1")]));
    let dir = Dir::new();
    for name in ["full", "empty"] {
        fs::create_dir(dir.at(name)).unwrap();
    }
    fs::write(dir.at("full/precious"), "").unwrap();
    fs::write(dir.at("file"), "").unwrap();
    let refused = applied("sh", dir.unpack(&archive, "full", 0)).unwrap_err();
    assert!(refused.ends_with("is not empty, and no archive was unpacked there by metalform\n"), "{refused}");
    assert!(applied("sh", dir.unpack(&archive, "file", 0)).is_err());
    assert_eq!(applied("sh", dir.unpack(&archive, "empty", 0)), Ok(()));
    assert_eq!(names(Path::new(&dir.at("full"))), ["precious"]);
    assert_eq!(names(Path::new(&dir.at("empty"))), [".metalform-archive", "x"]);
    assert_eq!(dir.names(), ["empty", "file", "full"]);
}

#[test]
fn no_member_gets_out_of_the_tree() {
    let files = Files::new();
    let dir = Dir::new();
    let outside = dir.at("outside");
    fs::write(&outside, "before").unwrap();
    let into_link = format!("link -> {}", dir.0.path().display());
    for (name, members) in [
        ("up", vec![("a/../../outside", "after")]),
        ("through", vec![(into_link.as_str(), ""), ("link/outside", "after")]),
        ("marker", vec![(".metalform-archive -> ../outside", "")]),
    ] {
        let archive = files.serve(name, &tar(&members));
        let result = applied("sh", dir.unpack(&archive, name, 0));
        assert_eq!(fs::read_to_string(&outside).unwrap(), "before", "{name}: {result:?}");
    }
    let absolute = files.serve("absolute", &tar(&[("/outside-of-all", "x")]));
    assert_eq!(applied("sh", dir.unpack(&absolute, "absolute", 0)), Ok(()));
    assert!(
        fs::exists(dir.at("absolute/outside-of-all")).unwrap() && !fs::exists("/outside-of-all").unwrap()
    );
}

#[test]
fn what_a_killed_run_left_goes_with_the_next() {
    let files = Files::new();
    let archive = files.serve("a", &tar(&[("x", "1")]));
    let dir = Dir::new();
    fs::create_dir_all(dir.at(".metalform.place.1.new/deep")).unwrap();
    fs::create_dir_all(dir.at(".metalform.place.1.old")).unwrap();
    fs::write(dir.at(".metalform.place.1.tar"), "half").unwrap();
    fs::write(dir.at(".metalform.tool.1"), "half").unwrap();
    assert_eq!(applied("sh", dir.unpack(&archive, "place", 0)), Ok(()));
    assert_eq!(applied("sh", dir.bring(&archive, "tool")), Ok(()));
    assert_eq!(dir.names(), ["place", "tool"]);
}

#[test]
fn a_url_with_a_password_is_no_argument_of_a_process() {
    let dir = Dir::new();
    let bin = dir.at("fake");
    fs::create_dir(&bin).unwrap();
    for tool in ["curl", "wget"] {
        let fake = format!(
            "#!/bin/sh\necho \"$@\" >>{}\ncat >>{}\n",
            quote(&dir.at("arguments")),
            quote(&dir.at("input"))
        );
        fs::write(Path::new(&bin).join(tool), fake).unwrap();
        fs::set_permissions(Path::new(&bin).join(tool), fs::Permissions::from_mode(0o755)).unwrap();
    }
    for tool in ["curl", "wget"] {
        let url = "https://user:secret@a.example/x".to_owned();
        let mut program = program_of(
            dir.bring(&RemoteFile { url, sha256: "0".repeat(64), ca: Some("/c a".to_owned()) }, "x"),
        );
        let other = if tool == "curl" { "wget" } else { "curl" };
        program.script = format!("PATH={}:$PATH\n{other}() {{ exit 9; }}\n{}", quote(&bin), program.script);
        if tool == "wget" {
            program.script = program.script.replace("if command -v curl >/dev/null", "if false");
        }
        assert!(outcome("sh", &program).is_err());
        let arguments = fs::read_to_string(dir.at("arguments")).unwrap();
        assert!(arguments.contains("/c a") && !arguments.contains("secret"), "{tool}: {arguments}");
        assert!(fs::read_to_string(dir.at("input")).unwrap().contains("user:secret@"), "{tool}");
        fs::remove_file(dir.at("arguments")).unwrap();
        fs::remove_file(dir.at("input")).unwrap();
    }
}
