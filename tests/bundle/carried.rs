//! A bundle as one file: packed, carried, unpacked; and what is not taken for one.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use metalform::bundle::component_build::SourceMode;
use metalform::bundle::digest::Sha256;
use metalform::bundle::pack::pack;
use metalform::bundle::signature;
use metalform::bundle::unpack::unpack;
use metalform::bundle::verify::verify;
use metalform::model::bundle_key::BundleKey;
use metalform::model::error_chain::error_chain;
use metalform::pki::bundle_signature::BundleSigningKey;

use super::files_below::files_below;
use super::{TOOL, TestRun};

type Entries = Vec<(String, Vec<u8>)>;

/// Path → content of every file below a directory.
fn files(root: &Path) -> BTreeMap<String, Vec<u8>> {
    files_below(root).into_iter().map(|(name, path)| (name, fs::read(path).unwrap())).collect()
}

fn entries(archive: &Path) -> Entries {
    let mut tar = tar::Archive::new(fs::File::open(archive).unwrap());
    let entry = |entry: std::io::Result<tar::Entry<'_, fs::File>>| {
        let mut entry = entry.unwrap();
        let path = entry.path().unwrap().display().to_string();
        let mut content = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut content).unwrap();
        (path, content)
    };
    tar.entries().unwrap().map(entry).collect()
}

/// Names are written as they are, also such as tar programs refuse.
fn write(archive: &Path, entries: &[(String, Vec<u8>)]) {
    let mut tar = tar::Builder::new(fs::File::create(archive).unwrap());
    for (path, content) in entries {
        let mut header = tar::Header::new_old();
        header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(content.len() as u64);
        header.set_mode(0o644);
        header.set_cksum();
        tar.append(&header, content.as_slice()).unwrap();
    }
    tar.finish().unwrap();
}

struct Carried {
    run: TestRun,
    key: BundleKey,
    archive: PathBuf,
    there: PathBuf,
}

impl Carried {
    async fn new() -> Self {
        let run = TestRun::new().await;
        run.build(TOOL, SourceMode::Release).await;
        let own = BundleSigningKey::generate().unwrap();
        signature::sign(&run.output().join("bundle.yaml"), &own, "").unwrap();
        let key = own.public_text().unwrap().parse().unwrap();
        let archive = run.directory.path().join("bundle.tar");
        pack(&run.output(), &archive).unwrap();
        let there = run.directory.path().join("there");
        Self { run, key, archive, there }
    }

    /// The error of an archive, and its causes.
    fn unpack(&self) -> String {
        let outcome = unpack(&self.archive, &self.there, Some(&self.key));
        let text = outcome.err().map(|error| error_chain(&error)).unwrap_or_default();
        text.replace(&self.run.directory.path().display().to_string(), "TMP")
    }
}

#[tokio::test]
async fn a_bundle_arrives_as_it_was_and_its_archive_is_always_the_same() {
    let carried = Carried::new().await;
    assert_eq!(carried.unpack(), "");
    assert_eq!(files(&carried.there), files(&carried.run.output()));
    // In place of one that is there already.
    assert_eq!(carried.unpack(), "");
    assert_eq!(files(&carried.there), files(&carried.run.output()));
    let first = fs::read(&carried.archive).unwrap();
    pack(&carried.there, &carried.archive).unwrap();
    assert!(first == fs::read(&carried.archive).unwrap(), "two archives of one bundle differ");
}

#[tokio::test]
async fn a_damaged_bundle_is_not_packed() {
    let carried = Carried::new().await;
    let before = fs::read(&carried.archive).unwrap();
    fs::write(carried.run.output().join("apt/pool/all/tool_1.0.0_amd64.deb"), "evil").unwrap();
    let error = pack(&carried.run.output(), &carried.archive).unwrap_err();
    assert_eq!(error.to_string(), "the bundle is damaged");
    assert!(before == fs::read(&carried.archive).unwrap(), "the archive before is gone");
}

#[tokio::test]
async fn each_fault_of_an_archive_is_named_and_what_was_there_stays() {
    let carried = Carried::new().await;
    assert_eq!(carried.unpack(), "");
    let (good, before) = (entries(&carried.archive), files(&carried.there));
    let package = "apt/pool/all/tool_1.0.0_amd64.deb";
    let at = good.iter().position(|(path, _)| path == package).unwrap();
    let with = |change: &dyn Fn(&mut Entries)| {
        let mut entries = good.clone();
        change(&mut entries);
        entries
    };
    let outside = ("../outside".to_owned(), b"x".to_vec());
    let cases = [
        (with(&|e| drop(e.remove(at))), format!("{package} is missing")),
        (with(&|e| e[at].1[100] ^= 1), format!("{package} has SHA-256 ")),
        (with(&|e| e[at].1.push(0)), format!("{package} has SHA-256 ")),
        (with(&|e| e.push(e[at].clone())), format!("\"{package}\" is not in bundle.yaml, or comes twice")),
        (with(&|e| e.push(outside.clone())), "\"../outside\" is not in bundle.yaml".to_owned()),
        (
            with(&|e| e.insert(2, ("/etc/x".to_owned(), Vec::new()))),
            "\"/etc/x\" is not in bundle.yaml".to_owned(),
        ),
        (
            with(&|e| drop(e.remove(0))),
            "bundle.yaml.minisig does not exist: the bundle is not signed".to_owned(),
        ),
        (with(&|e| drop(e.remove(1))), "does not begin with bundle.yaml".to_owned()),
        (with(&|e| e[1].1.push(b'\n')), "the signature is of another content".to_owned()),
        (Vec::new(), "does not begin with bundle.yaml".to_owned()),
    ];
    for (entries, expected) in cases {
        write(&carried.archive, &entries);
        let error = carried.unpack();
        assert!(error.contains(&expected), "expected {expected:?}, found {error:?}");
        assert!(files(&carried.there) == before, "the bundle before is gone: {expected}");
    }
    assert!(!carried.run.directory.path().join("outside").exists());
}

#[tokio::test]
async fn an_archive_that_ends_too_early_is_refused_wherever_it_does() {
    let carried = Carried::new().await;
    let whole = fs::read(&carried.archive).unwrap();
    // The last two blocks are the end of any archive.
    for length in (0..whole.len() - 1024).step_by(whole.len() / 40) {
        fs::write(&carried.archive, &whole[..length]).unwrap();
        let error = carried.unpack();
        assert!(error.contains("TMP/bundle.tar"), "{length} of {} bytes: {error:?}", whole.len());
        assert!(!carried.there.exists(), "{length} of {} bytes", whole.len());
    }
    assert_eq!(
        fs::read_dir(carried.run.directory.path()).unwrap().count(),
        3,
        "the archive, the cache, the bundle"
    );
}

#[tokio::test]
async fn each_file_that_is_gone_or_another_is_named_and_nothing_else() {
    let run = TestRun::new().await;
    run.put("/gadget", "gadget of version one");
    run.put("/gadget.sha256", Sha256::of(b"gadget of version one").to_string());
    let both = format!("{TOOL}{}", TOOL.replace("tool", "gadget"));
    run.build(&both, SourceMode::Release).await;
    let mut changes = 0;
    for (path, content) in files(&run.output()).into_iter().filter(|(path, _)| path != "bundle.yaml") {
        let file = run.output().join(&path);
        let mut other = content.clone();
        other[0] ^= 1;
        let longer = [content.as_slice(), b"\n"].concat();
        let spoilt: [&dyn Fn(); 5] = [
            &|| fs::remove_file(&file).unwrap(),
            &|| fs::write(&file, &other).unwrap(),
            &|| fs::write(&file, &content[1..]).unwrap(),
            &|| fs::write(&file, &longer).unwrap(),
            &|| fs::write(&file, "").unwrap(),
        ];
        for (number, spoil) in spoilt.iter().enumerate() {
            // A link to the cache, whose file stays as it is.
            if file.exists() {
                fs::remove_file(&file).unwrap();
            }
            fs::write(&file, &content).unwrap();
            spoil();
            let found: Vec<String> = verify(&run.output(), None, &BTreeMap::new(), None)
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect();
            changes += 1;
            assert!(found.len() == 1 && found[0].starts_with(&path), "{path}, change {number}: {found:?}");
        }
        fs::write(&file, &content).unwrap();
        assert_eq!(verify(&run.output(), None, &BTreeMap::new(), None).unwrap(), [].into());
    }
    assert!(changes >= 60, "{changes}");
}

#[tokio::test]
async fn the_bill_of_materials_lists_components_images_and_packages() {
    let run = TestRun::new().await;
    run.build(TOOL, SourceMode::Release).await;
    let text = fs::read(run.output().join("sbom.cdx.json")).unwrap();
    let read = cyclonedx_bom::prelude::Bom::parse_from_json_v1_5(text.as_slice()).unwrap();
    let checked = cyclonedx_bom::prelude::Validate::validate(&read);
    assert!(checked.passed(), "{checked:?}");
    let components = read.components.unwrap().0;
    let urls: Vec<String> =
        components.iter().filter_map(|one| Some(one.purl.as_ref()?.to_string())).collect();
    let bundle = metalform::bundle::manifest::Bundle::read(&run.output()).unwrap();
    let digest = &bundle.images["example.org/a/tool:v1.0.0"];
    let expected = [
        "pkg:generic/tool@1.0.0".to_owned(),
        format!("pkg:oci/tool@sha256:{digest}?repository_url=example.org/a/tool&tag=v1.0.0"),
        "pkg:deb/debian/tool@1.0.0?arch=amd64&distro=debian-13".to_owned(),
    ];
    assert_eq!(urls, expected);
}
