//! etcd for the tests of the real site: real processes where there is a binary, and a server in this process that
//! speaks etcd's gRPC protocol over the rules of `tests/support/etcd.rs`.

pub mod certificates;
pub mod process;
pub mod server;
pub mod writer;

#[cfg(test)]
mod faults;
#[cfg(test)]
mod tests;
