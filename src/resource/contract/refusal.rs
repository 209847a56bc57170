//! Why a resource must not be changed on a host: the reason of
//! [`Verdict::Refuse`](crate::resource::contract::change::Verdict).

use crate::resource::contract::probe::{PathState, Probe};

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("cannot observe {probe}: {reason}")]
    Unobserved { probe: Probe, reason: String },
    /// A bug of the caller: the answer is missing, or is that of another kind of probe.
    #[error("{probe} was not observed")]
    NotAsked { probe: Probe },
    /// Replacing it could lose data.
    #[error("{path} is {found}, not {expected}")]
    Occupied { path: String, found: &'static str, expected: &'static str },
    #[error("{path} is not empty and was not unpacked by metalform")]
    NotUnpacked { path: String },
    /// The host is the machine that metalform runs on, or shares its kernel.
    #[error("refusing to reboot the machine that metalform runs on; reboot it manually")]
    OwnMachine,
    /// Without it a host that is back is not distinguished from one that is still up.
    #[error("the host has no boot id (kernel.random.boot_id), which a reboot requires")]
    NoBootId,
    #[error("{unit} does not exist, and no earlier resource provides it")]
    NoUnit { unit: String },
    #[error("systemd cannot load {unit}: {load}")]
    BrokenUnit { unit: String, load: String },
    #[error("the kernel has no parameter {key}, and no earlier kmod provides it")]
    NoParameter { key: String },
    #[error("no CA named {authority:?} to sign {certificate}")]
    NoAuthority { authority: String, certificate: String },
    #[error("cannot parse the certificate of the CA {authority:?}")]
    BrokenAuthority { authority: String },
    #[error("{path} does not exist; set `create: true` to create it")]
    NoFile { path: String },
    /// Following it would change a file that was not named; replacing it would detach it from its target.
    #[error("{path} is a symbolic link to {target}; use the path of its target")]
    Link { path: String, target: String },
    /// A probe does not return its content.
    #[error("{path} is larger than 1 MiB, too large to edit")]
    TooLarge { path: String },
    #[error("{path} is not UTF-8 text")]
    NotText { path: String },
    #[error("{path} has no line that matches {pattern:?} to insert the new line below")]
    NoSuchLine { path: String, pattern: String },
    #[error("{number} belongs to {holder}")]
    NumberTaken { number: String, holder: String },
    /// Its files would belong to another account, or to none.
    #[error("{account} has {found}, not {expected}; changing it would orphan its files")]
    OtherNumber { account: String, found: String, expected: u32 },
    /// The tools change only /etc/passwd and /etc/group.
    #[error("{account} is defined in a directory service, not in the files of this host")]
    NotLocal { account: String },
    #[error("refusing to remove {user}, which {reason}")]
    KeptUser { user: String, reason: &'static str },
    #[error("{group} is the primary group of {user}")]
    PrimaryGroup { group: String, user: String },
    #[error("group {group} does not exist, and no earlier resource provides it")]
    NoGroup { group: String },
    #[error("user {user} does not exist, and no earlier resource provides it")]
    NoUser { user: String },
    /// Unlocked without a hash, the account would accept any login.
    #[error("{user} has no password to unlock; set password_hash")]
    NothingToUnlock { user: String },
    #[error("the home directory {home} of {user} does not exist")]
    NoHome { home: String, user: String },
    /// Its owner decides where a key is written.
    #[error("{path} is a symbolic link; not following it")]
    LinkedKeys { path: String },
    #[error("{path} belongs to {owner}, not to {user}")]
    ForeignKeys { path: String, owner: String, user: String },
}

impl Refusal {
    /// Something else exists where `expected` should be.
    pub fn occupied(path: &str, state: &PathState, expected: &'static str) -> Self {
        let found = match state {
            PathState::Absent => "absent",
            PathState::File { .. } => "a regular file",
            PathState::Directory { .. } => "a directory",
            PathState::Symlink { .. } => "a symbolic link",
            PathState::Other => "a device, socket or pipe",
        };
        Self::Occupied { path: path.to_owned(), found, expected }
    }
}
