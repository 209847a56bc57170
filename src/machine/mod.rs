//! Machines: nodes that are kept in number and version, over a pool of bare hosts.

pub mod api;
