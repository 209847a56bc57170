//! Packages of the host, and what its repositories offer.

use std::collections::BTreeMap;

use metalform::resource::contract::probe::InstalledPackage;
use metalform::resource::contract::step::PackageVersion;

/// A package of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Offer {
    /// The newest; others can be installed too.
    pub version: String,
    /// Units that it brings; a package of Debian starts and enables them.
    pub units: Vec<String>,
    /// Files that it brings.
    pub files: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Packages {
    pub installed: BTreeMap<String, InstalledPackage>,
    /// By name. A package that is not listed has version 1.0 and brings nothing, unless `closed`.
    pub offers: BTreeMap<String, Offer>,
    /// Whether only what is listed can be installed.
    pub closed: bool,
}

impl Packages {
    /// Installs one; the offer lists what comes with it.
    pub fn install(&mut self, package: &PackageVersion) -> Result<Offer, String> {
        let PackageVersion { name, version, hold } = package;
        let offer = match self.offers.get(name) {
            Some(offer) => offer.clone(),
            None if self.closed => return Err(format!("E: Unable to locate package {name}")),
            None => Offer { version: "1.0".to_owned(), ..Offer::default() },
        };
        let version = version.clone().unwrap_or_else(|| offer.version.clone());
        self.installed.insert(name.clone(), InstalledPackage { version, held: *hold, configured: true });
        Ok(offer)
    }
}

/// Where dpkg writes the list of a package's files.
pub fn list_of(name: &str) -> String {
    format!("/var/lib/dpkg/info/{name}.list")
}
