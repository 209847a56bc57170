//! Files of metalform on the bootstrap node: their paths, and the CAs among them.

pub mod atomic_file;
mod authority_files;
pub mod bundle_image_record;
pub mod change_lock;
pub mod cluster_record;
pub mod file_version;
pub mod host_lock;
pub mod image_lock;
mod issued;
pub mod layout;
pub mod node_records;
pub mod operation_log;
pub mod snapshot_directory;
pub mod trust;
pub mod trust_expiry;
pub mod trust_file;
mod trust_lock;
