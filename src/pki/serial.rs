//! Serial numbers of certificates.

use rand::CryptoRng;

/// A certificate's serial number: positive, of 16 octets, 126 bits of it random (RFC 5280 section 4.1.2.2
/// allows up to 20 octets and requires it to be unique for each CA).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Serial([u8; 16]);

impl Serial {
    /// From a cryptographic generator.
    pub fn random(rng: &mut impl CryptoRng) -> Self {
        let mut bytes = [0; 16];
        rng.fill_bytes(&mut bytes);
        // The top bit is the sign in DER; the next one keeps the length constant and the number above zero.
        bytes[0] = bytes[0] & 0x7f | 0x40;
        Self(bytes)
    }
}

impl From<Serial> for rcgen::SerialNumber {
    fn from(serial: Serial) -> Self {
        Self::from_slice(&serial.0)
    }
}
