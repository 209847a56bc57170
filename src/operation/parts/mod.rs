//! The parts of a world. Operations compose theirs of them; each part takes in, forgets and predicts what is its own.

pub mod bootstrap;
pub mod cluster;
pub mod etcd;
pub mod host;
pub mod node;
