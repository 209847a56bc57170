//! The period in which a certificate or signature is valid.

use jiff::{SignedDuration, Timestamp};

/// Tolerated difference between the clocks of two hosts: validity starts this much in the past.
pub const CLOCK_SKEW: SignedDuration = SignedDuration::from_mins(5);

/// This many days of 24 hours.
pub const fn days(days: u32) -> SignedDuration {
    SignedDuration::from_hours(24 * days as i64)
}

/// A period of whole seconds, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Validity {
    pub not_before: Timestamp,
    pub not_after: Timestamp,
}

impl Validity {
    /// From [`CLOCK_SKEW`] before `now` until `length` after it; saturates in the year 9999.
    pub fn starting(now: Timestamp, length: SignedDuration) -> Self {
        Self {
            not_before: now.saturating_sub(CLOCK_SKEW).unwrap_or(Timestamp::MIN),
            not_after: now.saturating_add(length).unwrap_or(Timestamp::MAX),
        }
    }

    /// Sets both ends in the parameters of a certificate.
    pub(super) fn put(self, parameters: &mut rcgen::CertificateParams) {
        // rcgen builds a moment from a date only; seconds are added to the epoch.
        let moment = |timestamp: Timestamp| {
            let since_epoch = u64::try_from(timestamp.as_second()).unwrap_or_default();
            rcgen::date_time_ymd(1970, 1, 1) + std::time::Duration::from_secs(since_epoch)
        };
        parameters.not_before = moment(self.not_before);
        parameters.not_after = moment(self.not_after);
    }
}

/// The last second of an X.509 certificate (DER); `None` where it cannot be read.
pub fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (_, certificate) = x509_parser::parse_x509_certificate(certificate).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}
