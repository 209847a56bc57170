//! The file of a saved plan: `plan --out FILE`, `apply --plan FILE`.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Parser;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

use super::failure::{Exit, Failure};
use super::{Cli, Command, Global, plan};
use crate::engine::saved_plan::SavedHost;
use crate::engine::saved_plan::key::{Key, SALT};
use crate::model::name::HostName;

use crate::model::api_contract::API_VERSION;
const KIND: &str = "SavedPlan";

/// What is written. It has the names of hosts and resources, and no content: see [`SavedHost`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct PlanFile {
    api_version: String,
    kind: String,
    /// The build that made it; digests of another one cannot be compared.
    metalform: String,
    made: Timestamp,
    /// The command line that made it, after the program's name, and where it was given: states, rosters and
    /// the way to the hosts are found again by it.
    command: Vec<String>,
    directory: PathBuf,
    /// Of the digests' key, hexadecimal.
    salt: String,
    /// Every host selected, also those of which there is no plan: what a host should be may depend on the others.
    selected: Vec<HostName>,
    /// What is done where.
    pub hosts: BTreeMap<HostName, SavedHost>,
}

/// A new plan's salt.
pub fn salt() -> [u8; SALT] {
    rand::random()
}

impl PlanFile {
    /// What this process has planned.
    ///
    /// # Errors
    /// When the command line is not text, or there is no current directory.
    pub fn new(
        salt: [u8; SALT],
        made: Timestamp,
        selected: Vec<HostName>,
        hosts: BTreeMap<HostName, SavedHost>,
    ) -> Result<Self, Failure> {
        let not_text =
            |_| Failure::new(Exit::Configuration, "the command line of a saved plan must be UTF-8");
        Ok(Self {
            api_version: API_VERSION.to_owned(),
            kind: KIND.to_owned(),
            metalform: env!("CARGO_PKG_VERSION").to_owned(),
            made,
            command: std::env::args_os()
                .skip(1)
                .map(|argument| argument.into_string().map_err(not_text))
                .collect::<Result<_, _>>()?,
            directory: std::env::current_dir()
                .map_err(|error| Failure::new(Exit::Configuration, format!("current directory: {error}")))?,
            salt: hex::encode(salt),
            selected,
            hosts,
        })
    }

    /// Writes it beside, syncs and renames; nobody but its owner can read it.
    ///
    /// # Errors
    /// What the system said.
    pub fn write(&self, path: &Path) -> Result<(), Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Configuration, format!("{}: {error}", path.display()))
        };
        let directory = match path.parent() {
            Some(directory) if directory != Path::new("") => directory,
            _ => Path::new("."),
        };
        let text = serde_json::to_string_pretty(self).map_err(|error| failed(&error))? + "\n";
        // Mode 0600 from the beginning.
        let mut file = tempfile::NamedTempFile::new_in(directory).map_err(|error| failed(&error))?;
        file.write_all(text.as_bytes())
            .and_then(|()| file.as_file().sync_all())
            .map_err(|error| failed(&error))?;
        file.persist(path).map_err(|error| failed(&error.error))?;
        File::open(directory).and_then(|directory| directory.sync_all()).map_err(|error| failed(&error))
    }

    /// Reads one.
    ///
    /// # Errors
    /// When it cannot be read, or is not one of this build.
    pub fn read(path: &Path) -> Result<Self, Failure> {
        let failed = |error: &dyn std::fmt::Display| {
            Failure::new(Exit::Configuration, format!("{}: {error}", path.display()))
                .hint("metalform plan --out FILE makes a plan")
        };
        let text = fs::read_to_string(path).map_err(|error| failed(&error))?;
        let file: Self = serde_json::from_str(&text).map_err(|error| failed(&error))?;
        if (file.api_version.as_str(), file.kind.as_str()) != (API_VERSION, KIND) {
            return Err(failed(&format!(
                "it is a {} {}, not a {API_VERSION} {KIND}",
                file.api_version, file.kind
            )));
        }
        if file.metalform != env!("CARGO_PKG_VERSION") {
            let (theirs, ours) = (&file.metalform, env!("CARGO_PKG_VERSION"));
            let error = format!("{}: made by metalform {theirs}, and this is {ours}", path.display());
            return Err(Failure::new(Exit::Refused, error).hint("plan again"));
        }
        Ok(file)
    }

    /// The key of its digests.
    ///
    /// # Errors
    /// When the salt is not one.
    pub fn key(&self) -> Result<Key, Failure> {
        let salt = hex::decode(&self.salt).ok().and_then(|salt| <[u8; SALT]>::try_from(salt).ok());
        let salt = salt.ok_or_else(|| Failure::new(Exit::Configuration, "the plan's salt is damaged"))?;
        Ok(Key::new(&salt))
    }

    /// The command that made it, and its global options; paths in it count from this process's new current
    /// directory, which is the one that the command was given in.
    ///
    /// # Errors
    /// When the directory is gone, or the command is not one that plans.
    pub fn command(&self) -> Result<(plan::Plan, Global), Failure> {
        std::env::set_current_dir(&self.directory).map_err(|error| {
            let directory = self.directory.display();
            Failure::new(Exit::Refused, format!("{directory}, where the plan was made: {error}"))
        })?;
        let words = std::iter::once("metalform").chain(self.command.iter().map(String::as_str));
        match Cli::try_parse_from(words) {
            Ok(Cli { command: Command::Plan(plan), global }) => Ok((plan, global)),
            _ => Err(Failure::new(Exit::Configuration, "the plan's own command line is damaged")),
        }
    }

    /// The hosts selected now that were not, and the other way round: what a host should be may depend on them.
    pub fn other_hosts(&self, selected: &[HostName]) -> Vec<String> {
        let new = selected.iter().filter(|host| !self.selected.contains(host));
        let gone = self.selected.iter().filter(|host| !selected.contains(host));
        new.map(|host| format!("{host}: it is selected now, and was not when the plan was made"))
            .chain(gone.map(|host| format!("{host}: it is in the plan, and is not selected any more")))
            .collect()
    }
}
