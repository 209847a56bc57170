//! The shared libraries that programs are linked to, as their ELF files name them (gabi, "Dynamic Section"; LSB, "Symbol
//! Versioning"). A package of such a program depends on them. A library whose symbols have no versions is not among them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io;
use std::path::Path;

use object::LittleEndian;
use object::elf::{ELFMAG, FileHeader64};
use object::read::elf::FileHeader as _;
use object::read::{ReadCache, ReadRef};

/// The file name of each library (`libc.so.6`) → the versions of symbols that are taken from it (`GLIBC_2.34`).
pub(super) type Libraries = BTreeMap<String, BTreeSet<String>>;

/// The libraries of a program. A static one has none, and neither has a script.
///
/// # Errors
/// When the file cannot be read, or is a damaged ELF file.
pub(super) fn of_file(path: &Path) -> io::Result<Libraries> {
    let cache = ReadCache::new(File::open(path)?);
    let magic = cache.read_bytes_at(0, ELFMAG.len() as u64);
    if magic.ok() != Some(&ELFMAG) {
        return Ok(Libraries::new());
    }
    of_elf(&cache).map_err(io::Error::other)
}

fn of_elf<'data>(elf: impl ReadRef<'data>) -> Result<Libraries, object::Error> {
    let endian = LittleEndian;
    let sections = FileHeader64::<LittleEndian>::parse(elf)?.sections(endian, elf)?;
    let mut libraries = Libraries::new();
    let Some((mut needs, strings)) = sections.gnu_verneed(endian, elf)? else { return Ok(libraries) };
    let strings = sections.strings(endian, elf, strings)?;
    while let Some((library, mut versions)) = needs.next()? {
        let library = text(library.file(endian, strings)?);
        let found = libraries.entry(library).or_default();
        while let Some(version) = versions.next()? {
            found.insert(text(version.name(endian, strings)?));
        }
    }
    Ok(libraries)
}

fn text(name: &[u8]) -> String {
    String::from_utf8_lossy(name).into_owned()
}

/// The latest of the versions with this prefix, as numbers: `GLIBC_2.34` and `GLIBC_2.4` is `2.34`.
pub(super) fn latest(versions: &BTreeSet<String>, prefix: &str) -> Option<String> {
    let numbers =
        |version: &str| version.split('.').map(str::parse::<u32>).collect::<Result<Vec<_>, _>>().ok();
    let of_prefix = versions.iter().filter_map(|version| version.strip_prefix(prefix));
    of_prefix
        .filter_map(|version| Some((numbers(version)?, version)))
        .max()
        .map(|(_, version)| version.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn this_very_program_is_linked_to_the_c_library() {
        let libraries = of_file(Path::new("/proc/self/exe")).unwrap();
        let c = &libraries["libc.so.6"];
        assert!(c.iter().any(|version| version.starts_with("GLIBC_2.")), "{c:?}");
    }

    #[test]
    fn what_is_no_elf_file_has_none_and_a_damaged_one_is_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for text in ["", "#!/bin/true\n"] {
            fs::write(&path, text).unwrap();
            assert_eq!(of_file(&path).unwrap(), Libraries::new());
        }
        fs::write(&path, b"\x7fELF and no more").unwrap();
        of_file(&path).unwrap_err();
    }

    #[test]
    fn versions_are_compared_by_their_numbers() {
        let cases = [
            ("GLIBC_2.4 GLIBC_2.34 GLIBC_2.5 GLIBC_PRIVATE", Some("2.34")),
            ("GLIBC_2.2.5", Some("2.2.5")),
            ("GCC_3.0 GCC_4.2.0", None),
            ("", None),
        ];
        for (versions, expected) in cases {
            let versions = versions.split_whitespace().map(str::to_owned).collect();
            assert_eq!(latest(&versions, "GLIBC_").as_deref(), expected, "{versions:?}");
        }
    }
}
