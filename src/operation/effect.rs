//! What an operation can look at and do. An effect carries everything that it needs, does one thing, and has one
//! sentence, a deadline and a class; who performs it decides nothing. But for keys, images and objects of the first node:
//! what is missing of them by then is created, as another run may have done some of it.

mod action;
mod look;
mod look_key;
mod member_id;
mod observation;
mod own_learner;
mod target;

pub use self::action::{Action, KeepData, Returned};
pub use self::look::Look;
pub use self::look_key::LookKey;
pub use self::member_id::{PREDICTED_MEMBER, member_id};
pub use self::observation::Observation;
pub use self::own_learner::OwnLearner;
pub use self::target::Target;
