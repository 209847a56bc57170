//! Programs of a cluster's components for tests that run them on this machine.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

/// Where a component's program is, or why there is none: `METALFORM_ETCD` (with the name of the component), else PATH,
/// else the tools of the cache, else an image or a package of a bundle in the cache. From there it is unpacked once, to the
/// cache, by the digest of its layer or the file name of its package.
pub fn find(component: &str) -> Result<PathBuf, String> {
    let variable = format!("METALFORM_{}", component.to_uppercase().replace('-', "_"));
    if let Some(path) = std::env::var_os(&variable) {
        return Ok(path.into());
    }
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let mut on_path = std::env::split_paths(&paths).map(|path| path.join(component));
    if let Some(found) = on_path.find(|path| path.is_file()) {
        return Ok(found);
    }
    let cache = std::env::var_os("METALFORM_CACHE").map_or_else(
        || PathBuf::from(std::env::var_os("HOME").unwrap_or_default()).join(".cache/metalform"),
        PathBuf::from,
    );
    let tool = cache.join("tools/bin").join(component);
    if tool.is_file() {
        return Ok(tool);
    }
    let (bundles, unpacked) =
        ([cache.join("bundle"), PathBuf::from("/var/cache/metalform/bundle")], cache.join("unpacked"));
    let of = |bundle: &PathBuf| {
        of_bundle(bundle, component, &unpacked).or_else(|| of_package(bundle, component, &unpacked))
    };
    bundles.iter().find_map(of).ok_or_else(|| {
        format!("no {component}: {variable} is not set, PATH has none, and no bundle is in the cache")
    })
}

/// The program of the component's image for this machine, which is that of the newest version.
fn of_bundle(bundle: &Path, component: &str, unpacked: &Path) -> Option<PathBuf> {
    let read = |path: &Path| serde_json::from_slice::<Value>(&fs::read(path).ok()?).ok();
    let mut images = Vec::new();
    for entry in fs::read_dir(bundle).ok()?.filter_map(|entry| Some(entry.ok()?.path())) {
        let found = read(&entry.join("entry.json"));
        let found = found.as_ref().and_then(|entry| entry["images"].as_object());
        for (reference, digest) in found.into_iter().flatten() {
            if reference.contains(&format!("/{component}:")) {
                images.push((reference.clone(), entry.clone(), digest.as_str()?.to_owned()));
            }
        }
    }
    let machine = if std::env::consts::ARCH == "aarch64" { "arm64" } else { "amd64" };
    let layer = |(_, entry, digest): (String, PathBuf, String)| {
        let blobs = entry.join("content/images/blobs/sha256");
        let blob = |digest: &Value| Some(blobs.join(digest.as_str()?.trim_start_matches("sha256:")));
        let manifest = read(&blobs.join(digest.trim_start_matches("sha256:")))?;
        let config = read(&blob(&manifest["config"]["digest"])?)?;
        if config["architecture"] == machine { blob(&manifest["layers"][0]["digest"]) } else { None }
    };
    images.sort();
    let layer = images.into_iter().rev().find_map(layer)?;
    let program = unpacked.join(layer.file_name()?).join(component);
    if program.is_file() { Some(program) } else { unpack(&layer, component, &program) }
}

/// The program of the component's Debian package, which is that of the newest version.
fn of_package(bundle: &Path, component: &str, unpacked: &Path) -> Option<PathBuf> {
    let is_package = |name: &str| name.starts_with(&format!("{component}_")) && name.ends_with(".deb");
    let pools =
        fs::read_dir(bundle).ok()?.filter_map(|entry| Some(entry.ok()?.path().join("content/apt/pool/all")));
    let packages = pools
        .filter_map(|pool| fs::read_dir(pool).ok())
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()));
    let package = packages
        .filter(|path| path.file_name().and_then(|name| name.to_str()).is_some_and(is_package))
        .max()?;
    let directory = unpacked.join(package.file_name()?);
    let program = directory.join("usr/bin").join(component);
    if !program.is_file() {
        fs::create_dir_all(unpacked).ok()?;
        // Another process may do the same.
        let scratch = tempfile::tempdir_in(unpacked).ok()?;
        let extracted = Command::new("dpkg-deb").arg("-x").arg(&package).arg(scratch.path()).status().ok()?;
        if !extracted.success() || (fs::rename(scratch.path(), &directory).is_err() && !program.is_file()) {
            return None;
        }
    }
    program.is_file().then_some(program)
}

fn unpack(layer: &Path, component: &str, program: &Path) -> Option<PathBuf> {
    fs::create_dir_all(program.parent()?).ok()?;
    let mut archive = tar::Archive::new(zstd::Decoder::new(File::open(layer).ok()?).ok()?);
    for file in archive.entries().ok()? {
        let mut file = file.ok()?;
        if file.path().ok()?.ends_with(format!("bin/{component}")) {
            // Another process may do the same.
            let scratch = tempfile::tempdir_in(program.parent()?).ok()?;
            let (unpacked, copied) = (scratch.path().join("unpacked"), scratch.path().join("copied"));
            file.unpack(&unpacked).ok()?;
            copy(&unpacked, &copied)?;
            fs::rename(copied, program).ok()?;
            return Some(program.to_owned());
        }
    }
    None
}

/// A copy that this process has never had open for writing. A process that another test starts meanwhile inherits what
/// is open, and until that one has called execve(2), no one can execute the file: `Text file busy`.
fn copy(from: &Path, to: &Path) -> Option<()> {
    let copied = Command::new("cp").arg("-p").arg(from).arg(to).status().ok()?;
    copied.success().then_some(())
}
