//! The records of operations on this machine: a file each, one JSON object a line.
//!
//! # Guarantees
//! - A line is written as soon as it happens: a process that is killed leaves all that happened before.
//! - Whether the process of an operation runs is known by a flock(2) on its file, and so never wrong.
//! - At most [`KEPT`] operations are kept besides those that run, and at most [`BYTES`] of each; the oldest are removed.
//! - A record that cannot be written fails no operation: it is reported once.

use std::fs::{self, File, OpenOptions};
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use jiff::Timestamp;

use super::atomic_file::{self, FileError};
use super::layout::Layout;
use crate::model::event::Event;
use crate::model::operation_record::{OperationBegun, OperationEnded, OperationRecord, RecordLine};

/// Operations that are kept.
pub const KEPT: usize = 200;
/// Bytes of one record; what happens after that is left out, but for its end.
pub const BYTES: usize = 4 << 20;

/// The record of an operation that runs.
pub struct OperationLog {
    file: Mutex<Writing>,
}

struct Writing {
    file: File,
    path: PathBuf,
    written: usize,
    /// Whether a write has failed, which was reported.
    failed: bool,
    /// Whether the last line may be incomplete.
    torn: bool,
}

impl OperationLog {
    /// Begins a record, and removes the oldest.
    ///
    /// # Errors
    /// When its file cannot be created.
    pub fn begin(layout: &Layout, begun: OperationBegun) -> Result<Self, FileError> {
        let directory = layout.operations();
        let path = directory.join(format!("{}.jsonl", begun.id));
        let failed = |reason| FileError { path: path.clone(), reason };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(&directory).map_err(failed)?;
        let file =
            OpenOptions::new().append(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
        file.lock().map_err(failed)?;
        remove_oldest(&directory)?;
        let writing = Writing { file, path, written: 0, failed: false, torn: false };
        let log = Self { file: Mutex::new(writing) };
        log.write(&RecordLine::Began(begun));
        Ok(log)
    }

    /// Something happened.
    pub fn event(&self, time: Timestamp, event: &Event) {
        self.write(&RecordLine::Happened { time, event: event.clone() });
    }

    /// It has ended.
    pub fn end(&self, ended: OperationEnded) {
        self.write(&RecordLine::Ended(ended));
    }

    fn write(&self, line: &RecordLine) {
        let mut writing = self.file.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(mut text) = serde_json::to_vec(line) else { return };
        text.push(b'\n');
        if writing.written + text.len() > BYTES && !matches!(line, RecordLine::Ended(_)) {
            return;
        }
        writing.written += text.len();
        if let Err(reason) = writing.line(&text)
            && !std::mem::replace(&mut writing.failed, true)
        {
            tracing::warn!("{}: {reason}: this operation is not recorded", writing.path.display());
        }
    }
}

impl Writing {
    /// After a line that was written in part, on a full file system, the next begins on its own line.
    fn line(&mut self, text: &[u8]) -> std::io::Result<()> {
        let torn = std::mem::replace(&mut self.torn, true);
        if torn {
            self.file.write_all(b"\n")?;
        }
        self.file.write_all(text)?;
        self.torn = false;
        Ok(())
    }
}

/// Those of operations that run stay, the one that begins included: others may have later dates, of a clock that was ahead.
/// An operation that begins at the same time may have removed some of them.
fn remove_oldest(directory: &Path) -> Result<(), FileError> {
    let ids = ids_in(directory).map_err(|reason| FileError { path: directory.to_owned(), reason })?;
    let surplus = ids.iter().rev().skip(KEPT).map(|id| path_of(directory, id));
    let runs = |path: &PathBuf| File::open(path).is_ok_and(|file| file.try_lock_shared().is_err());
    surplus.filter(|path| !runs(path)).try_for_each(|path| atomic_file::remove(&path))
}

fn path_of(directory: &Path, id: &str) -> PathBuf {
    directory.join(format!("{id}.jsonl"))
}

fn ids_in(directory: &Path) -> std::io::Result<Vec<String>> {
    let entries = match fs::read_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(error),
    };
    let mut ids = Vec::new();
    for entry in entries {
        ids.extend(
            entry?.file_name().to_str().and_then(|name| name.strip_suffix(".jsonl")).map(str::to_owned),
        );
    }
    ids.sort();
    Ok(ids)
}

/// The ids of all operations, the oldest first.
///
/// # Errors
/// When the directory cannot be read.
pub fn ids(layout: &Layout) -> Result<Vec<String>, FileError> {
    let directory = layout.operations();
    ids_in(&directory).map_err(|reason| FileError { path: directory, reason })
}

/// Reads a record; `None` where there is none of this id. A line that was being written when the machine lost power is
/// left out.
///
/// # Errors
/// When it cannot be read.
pub fn read(layout: &Layout, id: &str) -> Result<Option<OperationRecord>, FileError> {
    let path = path_of(&layout.operations(), id);
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(reason) => return Err(FileError { path, reason }),
    };
    // Asked before it is read: one that ends meanwhile is shown as it ended.
    let runs = file.try_lock_shared().is_err();
    let mut record = None;
    // By bytes: what breaks off within a character is no text.
    for line in BufReader::new(&file).split(b'\n') {
        let line = line.map_err(|reason| FileError { path: path.clone(), reason })?;
        let Ok(line) = serde_json::from_slice(&line) else { continue };
        take_in(&mut record, line, runs);
    }
    Ok(record)
}

/// The operation that this process is, if it runs and is recorded.
pub fn running(layout: &Layout, process: u32) -> Option<OperationBegun> {
    let own = format!("-{process}");
    let newest = ids(layout).ok()?.into_iter().rev().find(|id| id.ends_with(&own))?;
    read(layout, &newest).ok()?.filter(|record| record.runs).map(|record| record.begun)
}

fn take_in(record: &mut Option<OperationRecord>, line: RecordLine, runs: bool) {
    match (line, record) {
        (RecordLine::Began(begun), record) => {
            *record = Some(OperationRecord { begun, events: Vec::new(), ended: None, runs });
        }
        (RecordLine::Happened { time, event }, Some(record)) => record.events.push((time, event)),
        (RecordLine::Ended(ended), Some(record)) => record.ended = Some(ended),
        (_, None) => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::operation_record::OperationStatus;

    fn begun(id: &str) -> OperationBegun {
        OperationBegun {
            id: id.to_owned(),
            time: Timestamp::UNIX_EPOCH,
            command: vec!["metalform".to_owned(), "expand".to_owned()],
            user: "root".to_owned(),
            process: 1,
            version: "1.0.0".to_owned(),
        }
    }

    fn ended(exit: u8) -> OperationEnded {
        OperationEnded { time: Timestamp::UNIX_EPOCH, exit, errors: Vec::new(), hints: Vec::new() }
    }

    #[test]
    fn a_record_shows_whether_its_process_runs_and_how_it_ended() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        assert_eq!(ids(&layout).unwrap(), Vec::<String>::new());
        assert_eq!(read(&layout, "x").unwrap(), None);
        let log = OperationLog::begin(&layout, begun("a")).unwrap();
        let event = Event::PhaseBegun { host: "node-1".parse().unwrap(), phase: "Reachable".to_owned() };
        log.event(Timestamp::UNIX_EPOCH, &event);
        let record = read(&layout, "a").unwrap().unwrap();
        assert_eq!((record.status(), record.events.len()), (OperationStatus::Running, 1));
        assert_eq!(record.hosts(), ["node-1".parse().unwrap()]);
        drop(log);
        assert_eq!(read(&layout, "a").unwrap().unwrap().status(), OperationStatus::Killed);
        for (id, exit, status) in [
            ("b", 0, OperationStatus::Succeeded),
            ("c", 5, OperationStatus::Failed),
            ("d", 130, OperationStatus::Interrupted),
        ] {
            OperationLog::begin(&layout, begun(id)).unwrap().end(ended(exit));
            assert_eq!(read(&layout, id).unwrap().unwrap().status(), status);
        }
        assert_eq!(ids(&layout).unwrap(), ["a", "b", "c", "d"]);
    }

    #[test]
    fn what_begins_is_recorded_although_all_others_have_later_dates() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        for number in 0..KEPT {
            drop(OperationLog::begin(&layout, begun(&format!("later-{number:04}"))).unwrap());
        }
        let log = OperationLog::begin(&layout, begun("earlier")).unwrap();
        log.end(ended(0));
        assert_eq!(read(&layout, "earlier").unwrap().unwrap().status(), OperationStatus::Succeeded);
        drop(log);
        drop(OperationLog::begin(&layout, begun("later-9999")).unwrap());
        let ids = ids(&layout).unwrap();
        assert_eq!((ids.len(), ids[0].as_str()), (KEPT, "later-0001"));
    }

    #[test]
    fn what_follows_a_torn_line_is_read() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let log = OperationLog::begin(&layout, begun("a")).unwrap();
        // As on a full file system.
        let mut writing = log.file.lock().unwrap();
        writing.file.write_all(b"{\"happened\":{\"ti").unwrap();
        writing.torn = true;
        drop(writing);
        log.end(ended(4));
        assert_eq!(read(&layout, "a").unwrap().unwrap().status(), OperationStatus::Failed);
        let text = fs::read_to_string(path_of(&layout.operations(), "a")).unwrap();
        assert_eq!(text.lines().count(), 3, "{text}");
    }

    #[test]
    fn operations_that_begin_at_the_same_time_are_all_recorded() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        let begin_many = |process: usize| {
            for number in 0..KEPT {
                OperationLog::begin(&layout, begun(&format!("{number:04}-{process}"))).unwrap();
            }
        };
        std::thread::scope(|scope| {
            for process in 0..4 {
                let begin_many = &begin_many;
                scope.spawn(move || begin_many(process));
            }
        });
        assert_eq!(ids(&layout).unwrap().len(), KEPT);
    }

    #[test]
    fn what_was_half_written_is_left_out_and_the_oldest_are_removed() {
        let root = tempfile::tempdir().unwrap();
        let layout = Layout::below(root.path());
        for number in 0..KEPT + 3 {
            drop(OperationLog::begin(&layout, begun(&format!("{number:04}"))).unwrap());
        }
        assert_eq!(ids(&layout).unwrap().len(), KEPT);
        assert_eq!(ids(&layout).unwrap()[0], "0003");
        let path = path_of(&layout.operations(), "0003");
        let mut file = OpenOptions::new().append(true).open(path).unwrap();
        // Within the first character of a name.
        file.write_all(b"{\"happened\":{\"ti\":\"\xc3").unwrap();
        assert_eq!(read(&layout, "0003").unwrap().unwrap().events, []);
    }
}
