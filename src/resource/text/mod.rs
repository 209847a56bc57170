//! Files whose text several kinds manage or edit.

pub(in crate::resource) mod contents;
pub(in crate::resource) mod edited;
pub(crate) mod fstab;
pub(in crate::resource) mod hosts_file;
pub(in crate::resource) mod lines;
pub(in crate::resource) mod persisted;
