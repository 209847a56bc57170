//! Copies of what the bootstrap node serves, on other nodes: packages, signed indexes, images.
//!
//! [`contents`] is what a server has, and what a mirror lacks of it; [`sync`] copies that from the [`origin`], each file
//! verified by its digest, into a [`directory`] and the registry of the node.

pub mod contents;
pub mod directory;
pub mod origin;
pub mod sync;
