//! The package sources of a host besides its exclusive one.

use super::{apt_source, dnf_source};
use crate::model::platform::PackageFormat;

/// A script that prints the files of the package sources that are enabled besides that of the `package_repository` with this
/// name, one a line; nothing on a host without it.
pub fn other_package_sources(format: PackageFormat, name: &str) -> String {
    let layout = match format {
        PackageFormat::Deb => apt_source::layout(name),
        PackageFormat::Rpm => dnf_source::layout(name),
    };
    let print = layout.each_other("printf '%s\\n' \"$f\"");
    format!("if [ -e {own} ]; then {print}fi", own = layout.source)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;
    use std::process::Command;

    use super::*;

    /// What the script prints in a root with these files, without the root.
    fn printed(format: PackageFormat, files: &[(&str, &str)]) -> Vec<String> {
        let root = tempfile::tempdir().unwrap();
        for (path, text) in files {
            let path = root.path().join(path);
            fs::create_dir_all(path.parent().unwrap_or(Path::new("/"))).unwrap();
            fs::write(path, text).unwrap();
        }
        let prefix = root.path().display().to_string();
        let script = other_package_sources(format, "metalform").replace("/etc/", &format!("{prefix}/etc/"));
        let output = Command::new("sh").args(["-c", &script]).output().unwrap();
        assert!(output.status.success() && output.stderr.is_empty(), "{output:?}");
        let lines = String::from_utf8(output.stdout).unwrap();
        lines.lines().map(|line| line.replace(&prefix, "")).collect()
    }

    #[test]
    fn each_enabled_source_of_another_name_is_printed() {
        let deb = "deb http://example.org trixie main\n";
        let apt = [
            ("etc/apt/sources.list", "# none\n"),
            ("etc/apt/sources.list.d/metalform.sources", "Types: deb\n"),
            ("etc/apt/sources.list.d/vendor.list", deb),
            ("etc/apt/sources.list.d/other.sources", "Types: deb\n"),
            ("etc/apt/sources.list.d/old.list.metalform-disabled", deb),
            ("etc/apt/sources.list.d/README", deb),
        ];
        let others = ["/etc/apt/sources.list.d/vendor.list", "/etc/apt/sources.list.d/other.sources"];
        assert_eq!(printed(PackageFormat::Deb, &apt), others);
        assert_eq!(printed(PackageFormat::Deb, &apt[..2]), [""; 0]);
        let dnf =
            [("etc/yum.repos.d/metalform.repo", "[metalform]\n"), ("etc/yum.repos.d/epel.repo", "[epel]\n")];
        assert_eq!(printed(PackageFormat::Rpm, &dnf), ["/etc/yum.repos.d/epel.repo"]);
    }

    #[test]
    fn a_host_that_is_not_deployed_has_its_own_sources() {
        assert_eq!(printed(PackageFormat::Deb, &[("etc/apt/sources.list", "deb http://a b c\n")]), [""; 0]);
        assert_eq!(printed(PackageFormat::Rpm, &[]), [""; 0]);
    }
}
