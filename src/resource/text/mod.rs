//! Files whose text several kinds manage or edit.

pub(in crate::resource) mod apt_source;
pub(in crate::resource) mod contents;
pub(in crate::resource) mod dnf_source;
pub(in crate::resource) mod edited;
pub(crate) mod fstab;
pub(in crate::resource) mod lines;
pub(in crate::resource) mod package_source;
pub(in crate::resource) mod persisted;
