//! Making a host what it was before it became a node: what was recorded then, what metalform leaves on a host, and the
//! states of a node as things to be absent.

pub mod inventory;
pub mod other_roles;
pub mod removal;
pub mod section;
pub mod traces;
