//! When a failed download is attempted again. Pure.

use std::time::Duration;

use super::error::DownloadError;

/// Limit of the attempts of one download in one build. The next build resumes it.
pub(super) const ATTEMPTS: u32 = 5;

/// The pause before the next attempt, which doubles with each failed one; `None` without a next attempt. A server that
/// was never reached is unavailable at once: without a network, other sources are used without delay.
pub(super) fn pause(error: &DownloadError, failed: u32, first: Duration) -> Option<Duration> {
    let is_transient = match error {
        DownloadError::Interrupted { .. } => true,
        DownloadError::Unreachable { .. } => failed > 1,
        DownloadError::Status { status, .. } => matches!(status, 408 | 429 | 500 | 502..=504),
        DownloadError::Client(_)
        | DownloadError::CertificateExpired { .. }
        | DownloadError::DigestMissing { .. }
        | DownloadError::TooLarge { .. }
        | DownloadError::NotText { .. }
        | DownloadError::Altered { .. }
        | DownloadError::Write { .. } => false,
    };
    let doublings = failed.saturating_sub(1);
    (is_transient && failed < ATTEMPTS).then(|| first * 2_u32.saturating_pow(doublings))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_may_pass_is_attempted_again() {
        let url = || "https://a.example/tool".to_owned();
        let interrupted = DownloadError::Interrupted { url: url(), reason: "connection reset".to_owned() };
        let unreachable = DownloadError::Unreachable { url: url(), reason: "no route".to_owned() };
        let status = |status| DownloadError::Status { url: url(), status };
        let full = DownloadError::Write { path: url(), source: std::io::ErrorKind::StorageFull.into() };
        let cases = [
            (&interrupted, 1, Some(1)),
            (&interrupted, 2, Some(2)),
            (&interrupted, 4, Some(8)),
            (&interrupted, 5, None),
            (&unreachable, 1, None),
            (&unreachable, 2, Some(2)),
            (&status(404), 1, None),
            (&status(403), 1, None),
            (&status(429), 1, Some(1)),
            (&status(503), 3, Some(4)),
            (&status(503), 5, None),
            (&full, 1, None),
        ];
        for (error, failed, seconds) in cases {
            let expected = seconds.map(Duration::from_secs);
            assert_eq!(pause(error, failed, Duration::from_secs(1)), expected, "{error}, {failed} failed");
        }
    }
}
