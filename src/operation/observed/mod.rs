//! What looks find.

pub mod etcd_servers;
pub mod layer_plan;
pub mod lease;
pub mod node;
pub mod proxy;
pub mod report;
