//! A cluster that exists only here, for tests of expansions.

pub mod attempt;
pub mod cluster;
pub mod decision;
pub mod defect;
pub mod dice;
pub mod effect;
pub mod etcd;
pub mod fault;
pub mod foreseen;
pub mod given;
pub mod host;
pub mod lease;
pub mod luck;
pub mod membership;
pub mod readings;
pub mod recovery;
pub mod side_by_side;
pub mod site;
pub mod values;
