//! Tables of plans. Expected numbers are those of Kubernetes' deployment controller and of Cluster API's rollout planner
//! where these have a case; a comment names it.

mod conditions;
mod deletion;
mod history;
mod notation;
mod rolling;
mod sequences;
mod sizes;
