//! Text files that several resources edit together.

pub(crate) mod apt_source;
pub(crate) mod contents;
pub(crate) mod dnf_source;
pub(crate) mod edited;
pub(crate) mod fstab;
pub(crate) mod lines;
pub(crate) mod package_source;
pub(crate) mod persisted;
