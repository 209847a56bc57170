//! The bytes that a script reads besides its text.

/// Adds content to the payload; returns its length, which the program reads.
pub(super) fn payload_of(content: &[u8], payload: &mut Vec<u8>) -> usize {
    payload.extend_from_slice(content);
    content.len()
}
