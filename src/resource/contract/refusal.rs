//! Why a resource cannot be brought about on a host. It becomes [`Verdict::Refuse`](crate::resource::contract::change::Verdict).

use crate::resource::contract::probe::Probe;

/// One reason.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(in crate::resource) enum Refusal {
    /// The host could not answer.
    #[error("{probe} could not be observed: {said}")]
    Unobserved { probe: Probe, said: String },
    /// A fault of the caller: the answer is missing, or belongs to another sort of probe.
    #[error("{probe} was not observed")]
    NotAsked { probe: Probe },
    /// Something else lies where it should be, and replacing it could lose data.
    #[error("{path} is {found}, not {wanted}")]
    Occupied { path: String, found: &'static str, wanted: &'static str },
    /// A directory with content that no archive of ours was unpacked to.
    #[error("{path} is not empty, and no archive was unpacked there by metalform")]
    NotUnpacked { path: String },
    /// The host is where metalform itself runs, or shares its kernel.
    #[error("a reboot would end metalform, which runs on this very machine: reboot it by hand")]
    OwnMachine,
    /// The kernel does not number its boots.
    #[error("the host does not say its boot id, so that its return could not be told")]
    NoBootId,
    /// There is no such unit, and nothing will bring it.
    #[error("{unit} does not exist, and no earlier package or unit file will bring it")]
    NoUnit { unit: String },
    /// systemd cannot read the unit.
    #[error("systemd cannot load {unit}: {load}")]
    BrokenUnit { unit: String, load: String },
    /// There is no such kernel parameter, and no module to come could bring it.
    #[error("the kernel has no parameter {key}, and no earlier module will bring it")]
    NoParameter { key: String },
    /// The certificate's authority is not among those of this run.
    #[error("there is no authority {authority:?} to sign {certificate}")]
    NoAuthority { authority: String, certificate: String },
    /// The authority's own certificate cannot be read.
    #[error("the certificate of the authority {authority:?} cannot be read")]
    BrokenAuthority { authority: String },
    /// Lines are changed in a file that is there.
    #[error("{path} does not exist; say `create: true` to have it made")]
    NoFile { path: String },
    /// Following it would change a file that was not named, replacing it would cut a tie.
    #[error("{path} is a link to {target}: name what it points to")]
    Link { path: String, target: String },
    /// Its content does not travel.
    #[error("{path} is larger than 1 MiB, too large to change lines of it")]
    TooLarge { path: String },
    /// It has no lines.
    #[error("{path} is not text in UTF-8")]
    NotText { path: String },
    /// The place that a new line should have.
    #[error("{path} has no line that matches {pattern:?}, to put the new one below")]
    NoSuchLine { path: String, pattern: String },
    /// Another has the number.
    #[error("{number} belongs to {holder}")]
    NumberTaken { number: String, holder: String },
    /// Files on the host would change hands, or belong to nobody.
    #[error("{account} has {is}, not {wanted}, and files on the host may belong to it")]
    OtherNumber { account: String, is: String, wanted: u32 },
    /// The tools change only the host's own files.
    #[error("{account} is not in the files of this host, but in a directory service")]
    NotLocal { account: String },
    /// Who must stay.
    #[error("{user} {why}, and is not removed")]
    KeptUser { user: String, why: &'static str },
    /// A group that users would be left without.
    #[error("{group} is the primary group of {user}")]
    PrimaryGroup { group: String, user: String },
    /// There is no such group, and nothing will bring it.
    #[error("there is no group {group}, and no earlier resource will bring it")]
    NoGroup { group: String },
    /// There is no such user, and nothing will bring it.
    #[error("there is no user {user}, and no earlier resource will bring it")]
    NoUser { user: String },
    /// Unlocked, it would let anyone in.
    #[error("{user} has no password to unlock: give it a password_hash")]
    NothingToUnlock { user: String },
    /// There is no place for a key file.
    #[error("{home}, the home of {user}, does not exist")]
    NoHome { home: String, user: String },
    /// Whoever made the link decides where a key goes.
    #[error("{path} is a link, and could lead anywhere")]
    LinkedKeys { path: String },
    /// The user is the one who writes it.
    #[error("{path} belongs to {owner}, not to {user}")]
    ForeignKeys { path: String, owner: String, user: String },
}
