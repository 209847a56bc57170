//! Quorum.

/// How many of `voters` must agree: more than half.
pub fn quorum(voters: usize) -> usize {
    voters / 2 + 1
}
