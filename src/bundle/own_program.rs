//! metalform as a component of its bundles: the program that builds them, and builds of it for other architectures.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use object::LittleEndian;
use object::elf::{EM_AARCH64, EM_X86_64, FileHeader64};
use object::read::elf::FileHeader as _;

use super::component::ComponentList;
use super::digest::Sha256;
use crate::model::platform::Architecture;

/// The executable that runs, even after its file was replaced (proc(5)).
pub const RUNNING: &str = "/proc/self/exe";

/// What a component of metalform itself is made of. The default has no executable: such a component is left out.
#[derive(Debug, Clone, Default)]
pub struct OwnProgram {
    version: String,
    executables: BTreeMap<Architecture, Executable>,
    documents: BTreeMap<String, String>,
}

/// A build of metalform.
#[derive(Debug, Clone)]
struct Executable {
    path: PathBuf,
    sha256: Sha256,
}

/// Why a file is no build of metalform.
#[derive(Debug, thiserror::Error)]
pub enum OwnProgramError {
    /// The file.
    #[error("cannot read {path}")]
    Read {
        /// As given.
        path: String,
        /// From the operating system.
        source: io::Error,
    },
    /// Not an ELF file of an architecture that hosts may have.
    #[error("{path} is not a program for amd64 or arm64")]
    Foreign {
        /// As given.
        path: String,
    },
    /// Two files for one architecture.
    #[error("{path} is a second program for {architecture}")]
    Duplicate {
        /// As given.
        path: String,
        /// Of both.
        architecture: Architecture,
    },
}

impl OwnProgram {
    /// The executable at `running`, of this version of metalform, and others of the same version: one for each
    /// architecture, which takes the place of `running` if it is for the same. `documents` (absolute path → text) are
    /// packaged with each.
    ///
    /// # Errors
    /// The first file that cannot be read, or is not such a program.
    pub fn read(
        running: &Path,
        others: &[PathBuf],
        documents: BTreeMap<String, String>,
    ) -> Result<Self, OwnProgramError> {
        let mut executables = BTreeMap::new();
        for path in others {
            let (architecture, executable) = executable(path)?;
            if executables.insert(architecture, executable).is_some() {
                return Err(OwnProgramError::Duplicate { path: path.display().to_string(), architecture });
            }
        }
        let (architecture, executable) = executable(running)?;
        executables.entry(architecture).or_insert(executable);
        Ok(Self { version: env!("CARGO_PKG_VERSION").to_owned(), executables, documents })
    }

    /// The list with the version and the digests of these programs, and without a component that would have none.
    #[must_use]
    pub(super) fn described_in(&self, list: &ComponentList) -> ComponentList {
        let mut list = list.clone();
        let architectures = list.architectures.clone();
        for component in &mut list.components {
            let Some(program) = &mut component.sources.program else { continue };
            component.version.clone_from(&self.version);
            let ours = self.executables.iter().filter(|(of, _)| architectures.contains(of));
            program.sha256 = ours.map(|(of, one)| (*of, one.sha256.clone())).collect();
        }
        list.components.retain(|one| one.sources.program.as_ref().is_none_or(|own| !own.sha256.is_empty()));
        list
    }

    /// The file of an architecture.
    pub(super) fn path(&self, architecture: Architecture) -> Option<&Path> {
        self.executables.get(&architecture).map(|one| one.path.as_path())
    }

    /// Absolute path → text.
    pub(super) fn documents(&self) -> &BTreeMap<String, String> {
        &self.documents
    }
}

fn executable(path: &Path) -> Result<(Architecture, Executable), OwnProgramError> {
    let name = || path.display().to_string();
    let failed = |source| OwnProgramError::Read { path: name(), source };
    let mut header = Vec::new();
    File::open(path).and_then(|file| file.take(64).read_to_end(&mut header)).map_err(failed)?;
    let machine = FileHeader64::<LittleEndian>::parse(header.as_slice());
    let architecture = match machine.map(|header| header.e_machine(LittleEndian)) {
        Ok(EM_X86_64) => Architecture::Amd64,
        Ok(EM_AARCH64) => Architecture::Arm64,
        _ => return Err(OwnProgramError::Foreign { path: name() }),
    };
    let (sha256, _) = Sha256::of_file(path).map_err(failed)?;
    Ok((architecture, Executable { path: path.to_owned(), sha256 }))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::bundle::component_list::{SHIPPED, parse};

    /// The first bytes of a program.
    fn header(machine: u16) -> Vec<u8> {
        let mut bytes = vec![0; 64];
        bytes[..8].copy_from_slice(b"\x7fELF\x02\x01\x01\0");
        bytes[18..20].copy_from_slice(&machine.to_le_bytes());
        bytes
    }

    #[test]
    fn each_architecture_has_one_program() {
        let directory = tempfile::tempdir().unwrap();
        let put = |name: &str, content: Vec<u8>| {
            let path = directory.path().join(name);
            fs::write(&path, content).unwrap();
            path
        };
        let (running, same) = (put("running", header(EM_X86_64.0)), put("same", header(EM_X86_64.0)));
        let (other, again) = (put("arm", header(EM_AARCH64.0)), put("arm-too", header(EM_AARCH64.0)));
        let (script, short) =
            (put("script", b"#!/bin/sh\n".to_vec()), put("short", header(62)[..20].to_vec()));
        let read = |others: &[&PathBuf]| {
            let others: Vec<_> = others.iter().map(|path| (*path).clone()).collect();
            OwnProgram::read(&running, &others, BTreeMap::new())
        };
        let found = |program: &OwnProgram| {
            let name =
                |of| program.path(of).map(|path| path.file_name().unwrap().to_str().unwrap().to_owned());
            Architecture::ALL.map(name)
        };
        assert_eq!(found(&read(&[]).unwrap()), [Some("running".to_owned()), None]);
        assert_eq!(
            found(&read(&[&same, &other]).unwrap()),
            [Some("same".to_owned()), Some("arm".to_owned())]
        );
        let refused = [
            (vec![&other, &again], "arm-too is a second program for arm64"),
            (vec![&script], "script is not a program for amd64 or arm64"),
            (vec![&short], "short is not a program for amd64 or arm64"),
        ];
        for (others, expected) in refused {
            let error = read(&others).unwrap_err().to_string();
            assert!(error.ends_with(expected), "{error}");
        }
        let absent = OwnProgram::read(Path::new("/nonexistent"), &[], BTreeMap::new()).unwrap_err();
        assert_eq!(absent.to_string(), "cannot read /nonexistent");
    }

    #[test]
    fn a_list_names_the_programs_that_are_packaged() {
        let shipped = parse("list", SHIPPED).unwrap();
        let own = |list: &ComponentList| list.components.iter().find(|one| one.name == "metalform").cloned();
        assert_eq!(own(&shipped).unwrap().version, env!("CARGO_PKG_VERSION"));

        let program = OwnProgram::read(Path::new(RUNNING), &[], BTreeMap::new()).unwrap();
        let described = own(&program.described_in(&shipped)).unwrap();
        let digest = Sha256::of_file(Path::new(RUNNING)).unwrap().0;
        let sha256 = described.sources.program.unwrap().sha256;
        assert_eq!(sha256.into_values().collect::<Vec<_>>(), [digest]);
        assert_eq!(own(&OwnProgram::default().described_in(&shipped)), None);
    }
}
