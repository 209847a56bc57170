//! The progress of all downloads of a build. Pure: the time is an argument.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The rate is the mean of this time.
const WINDOW: Duration = Duration::from_secs(10);

/// All downloads at one moment. Displays as one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DownloadProgress {
    /// Since the first download, for listeners that report less often.
    pub elapsed: Duration,
    /// Number of artefacts that are complete.
    pub finished: usize,
    /// Number of all artefacts.
    pub artefacts: usize,
    /// Bytes that are on the disk.
    pub received: u64,
    /// Sum of the known sizes, in bytes.
    pub size: u64,
    /// Whether the size of every artefact is known.
    pub is_size_complete: bool,
    /// Bytes in a second.
    pub rate: u64,
}

impl DownloadProgress {
    /// The time that the rest takes at this rate; `None` when nothing is received.
    fn left(&self) -> Option<Duration> {
        let rest = self.size.saturating_sub(self.received);
        (self.rate > 0).then(|| Duration::from_secs(rest.div_ceil(self.rate)))
    }
}

impl fmt::Display for DownloadProgress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let least = if self.is_size_complete { "" } else { "at least " };
        write!(
            f,
            "downloads: {} of {}, {} of {least}{}, {}/s",
            self.finished,
            self.artefacts,
            mebibytes(self.received),
            mebibytes(self.size),
            mebibytes(self.rate)
        )?;
        match self.left() {
            Some(left) => write!(f, ", {least}{} left", span(left)),
            None => write!(f, ", stalled"),
        }
    }
}

fn mebibytes(bytes: u64) -> String {
    let tenths = (bytes * 10) >> 20;
    if tenths < 1000 {
        format!("{}.{} MiB", tenths / 10, tenths % 10)
    } else {
        format!("{} MiB", tenths / 10)
    }
}

fn span(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 0..100 => format!("{seconds} s"),
        seconds @ 100..6000 => format!("{} min", seconds.div_ceil(60)),
        seconds => format!("{} h {:02} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// Counts bytes and artefacts.
#[derive(Debug, Default)]
pub(super) struct Meter(Mutex<Counts>);

#[derive(Debug, Default)]
struct Counts {
    next: usize,
    /// Bytes that are there and the size, of artefacts that are not complete.
    open: BTreeMap<usize, (u64, Option<u64>)>,
    finished: usize,
    finished_bytes: u64,
    /// Bytes from the network.
    arrived: u64,
    /// Time → [`Self::arrived`].
    samples: VecDeque<(Duration, u64)>,
}

/// An artefact that is downloaded, or will be; not counted after its end.
pub(super) struct Counted<'a> {
    meter: &'a Meter,
    number: usize,
}

impl Meter {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// One artefact more.
    pub(super) fn count(&self) -> Counted<'_> {
        let mut counts = self.counts();
        let number = counts.next;
        counts.next += 1;
        counts.open.insert(number, (0, None));
        Counted { meter: self, number }
    }

    /// `None` without an incomplete artefact. `elapsed` must not decrease from one call to the next.
    pub(super) fn progress(&self, elapsed: Duration) -> Option<DownloadProgress> {
        let mut counts = self.counts();
        let arrived = counts.arrived;
        if counts.samples.is_empty() {
            counts.samples.push_back((Duration::ZERO, 0));
        }
        counts.samples.push_back((elapsed, arrived));
        while counts.samples.get(1).is_some_and(|(time, _)| *time + WINDOW <= elapsed) {
            counts.samples.pop_front();
        }
        let (since, before) = counts.samples.front().copied().unwrap_or_default();
        let milliseconds = elapsed.saturating_sub(since).as_millis().max(1);
        let rate = u128::from(arrived.saturating_sub(before)) * 1000 / milliseconds;
        let open = counts.open.values();
        let received = counts.finished_bytes + open.clone().map(|(received, _)| received).sum::<u64>();
        let size = counts.finished_bytes
            + open.clone().map(|(received, size)| size.unwrap_or(*received)).sum::<u64>();
        (!counts.open.is_empty()).then(|| DownloadProgress {
            elapsed,
            finished: counts.finished,
            artefacts: counts.finished + counts.open.len(),
            received,
            size,
            is_size_complete: open.clone().all(|(_, size)| size.is_some()),
            rate: u64::try_from(rate).unwrap_or(u64::MAX),
        })
    }
}

impl Counted<'_> {
    /// The bytes that are there when a response begins, and the size if the server has announced it.
    pub(super) fn begin(&self, received: u64, size: Option<u64>) {
        self.meter.counts().open.insert(self.number, (received, size));
    }

    /// So many bytes more.
    pub(super) fn add(&self, bytes: u64) {
        let mut counts = self.meter.counts();
        counts.arrived += bytes;
        if let Some((received, _)) = counts.open.get_mut(&self.number) {
            *received += bytes;
        }
    }

    pub(super) fn finish(self) {
        let mut counts = self.meter.counts();
        if let Some((received, _)) = counts.open.remove(&self.number) {
            counts.finished += 1;
            counts.finished_bytes += received;
        }
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.meter.counts().open.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_line_has_the_rate_and_what_is_left() {
        let cases = [
            ((0, 0, false, 0), "0.0 MiB of at least 0.0 MiB, 0.0 MiB/s, stalled"),
            ((MIB / 2, MIB, true, MIB / 4), "0.5 MiB of 1.0 MiB, 0.2 MiB/s, 2 s left"),
            ((120 * MIB, 433 * MIB, true, 12 * MIB), "120 MiB of 433 MiB, 12.0 MiB/s, 27 s left"),
            ((0, 600 * MIB, false, MIB), "0.0 MiB of at least 600 MiB, 1.0 MiB/s, at least 10 min left"),
            ((0, 8000 * MIB, true, MIB), "0.0 MiB of 8000 MiB, 1.0 MiB/s, 2 h 13 min left"),
            ((5 * MIB, 5 * MIB, true, MIB), "5.0 MiB of 5.0 MiB, 1.0 MiB/s, 0 s left"),
        ];
        for ((received, size, is_size_complete, rate), expected) in cases {
            let progress = DownloadProgress {
                elapsed: Duration::ZERO,
                finished: 3,
                artefacts: 21,
                received,
                size,
                is_size_complete,
                rate,
            };
            assert_eq!(progress.to_string(), format!("downloads: 3 of 21, {expected}"));
        }
    }

    #[test]
    fn the_rate_is_that_of_the_last_seconds_and_of_the_network() {
        let meter = Meter::default();
        let at = |seconds| meter.progress(Duration::from_secs(seconds)).unwrap();
        let (one, two) = (meter.count(), meter.count());
        assert_eq!((at(0).artefacts, at(0).is_size_complete, at(0).rate), (2, false, 0));
        // What an earlier build has received is no part of the rate.
        one.begin(50 * MIB, Some(100 * MIB));
        one.add(10 * MIB);
        two.begin(0, Some(40 * MIB));
        assert_eq!((at(5).rate, at(5).received, at(5).size), (2 * MIB, 60 * MIB, 140 * MIB));
        assert!(at(5).is_size_complete);
        // Nothing in the last window.
        assert_eq!((at(15).rate, at(16).rate), (0, 0));
        one.add(40 * MIB);
        one.finish();
        two.add(10 * MIB);
        let seen = at(20);
        assert_eq!((seen.finished, seen.artefacts, seen.received), (1, 2, 110 * MIB));
        assert_eq!(seen.rate, 50 * MIB / 15, "no sample is exactly as old as the window");
        // Begun again, from zero, and given up.
        two.begin(0, None);
        assert_eq!((at(21).received, at(21).size, at(21).is_size_complete), (100 * MIB, 100 * MIB, false));
        drop(two);
        assert_eq!(meter.progress(Duration::from_secs(22)), None);
    }
}
