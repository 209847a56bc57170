//! One file a kind.

pub mod archive;
pub mod authorized_key;
pub mod binary;
pub mod certificate;
pub mod command;
pub mod directory;
pub mod file;
pub mod group;
pub mod host_entry;
pub mod image;
pub mod kmod;
pub mod kubeconfig;
pub mod line;
pub mod mount;
pub mod package;
pub mod package_repository;
pub mod reboot;
pub mod route;
pub mod service;
pub mod static_pod;
pub mod swap;
pub mod symlink;
pub mod sysctl;
pub mod unit;
pub mod user;
pub mod wait;
