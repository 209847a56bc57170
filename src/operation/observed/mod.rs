//! What looks find.

pub mod layer_plan;
pub mod lease;
pub mod node;
pub mod proxy;
pub mod report;
