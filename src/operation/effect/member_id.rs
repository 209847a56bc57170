//! Ids of etcd members, for people.

/// The id by which a member is known in a dry run, before etcd assigns one.
pub const PREDICTED_MEMBER: u64 = u64::MAX;

/// A member id for people.
pub fn member_id(id: u64) -> String {
    if id == PREDICTED_MEMBER { "<assigned by etcd>".to_owned() } else { format!("{id:x}") }
}
