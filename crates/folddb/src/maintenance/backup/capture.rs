//! The state of a backup, captured in one moment: what lives, its files, and the end of the log.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use folddb_base::{Error, FileNumber, Lsn, Result, Seq};
use folddb_host::ReadFile;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::FRAME_OVERHEAD_BYTES_MAX;
use folddb_layout::segment::{SEGMENT_HEADER_BYTES, SegmentHeader};
use folddb_manifest::State;
use folddb_value_log::ValuesEnd;
use folddb_value_log::segment::values_path;

use folddb_engine::state::engine::Engine;
use folddb_engine::state::hash_files::IndexFile;
use folddb_engine::state::view::PartFiles;
use folddb_value_log::SegmentMap;

/// The state of a backup, captured in one moment.
pub(crate) struct Capture {
    /// What lives.
    pub(crate) state: Arc<State>,
    /// Pins the files of its parts and its values.
    _pinned: (Vec<PartFiles>, Arc<SegmentMap>, Vec<Arc<IndexFile>>),
    pub(crate) segments: Vec<Segment>,
    pub(crate) values: Vec<ValuesCopy>,
    /// Where the log ends, and the seq of the last record before.
    pub(crate) end_lsn: Lsn,
    pub(crate) last_seq: Seq,
    pub(crate) writers_held: Duration,
}

/// A segment of the log, held open.
pub(crate) struct Segment {
    pub(crate) number: FileNumber,
    pub(crate) file: Arc<dyn ReadFile>,
    /// No needed frame is before this offset. 0 if the log begins with the segment, or before it.
    start_bytes: u64,
    /// No needed frame is beyond this offset.
    end_bytes: u64,
    /// Finished in order: after its last frame there are only zeros, which need not be copied.
    pub(crate) is_sealed: bool,
}

/// A value segment to be copied or linked.
#[derive(Clone, Copy)]
pub(crate) struct ValuesCopy {
    pub(crate) number: FileNumber,
    /// Its valid bytes.
    pub(crate) bytes: u64,
    /// Its file will never change.
    pub(crate) is_sealed: bool,
}

impl Segment {
    /// The range of the file that is needed.
    pub(crate) fn needed(&self) -> std::io::Result<Range<u64>> {
        let end = if self.is_sealed { self.end_of_frames()? } else { self.end_bytes };
        Ok(self.start_bytes..end.max(self.start_bytes))
    }

    fn end_of_frames(&self) -> std::io::Result<u64> {
        let mut end = self.end_bytes;
        let mut piece = vec![0; 64 << 10];
        while end > 0 {
            let len = end.min(piece.len() as u64);
            let piece = &mut piece[..len as usize];
            self.file.read_exact_at(end - len, piece)?;
            if let Some(last) = piece.iter().rposition(|&byte| byte != 0) {
                // The seal itself may end in zeros.
                return Ok(
                    (end - len + last as u64 + 1 + FRAME_OVERHEAD_BYTES_MAX as u64).min(self.end_bytes)
                );
            }
            end -= len;
        }
        Ok(self.end_bytes)
    }
}

/// Captures in one moment what lives, its files, and the end of the log.
pub(crate) fn capture(engine: &Engine) -> Result<Capture> {
    match &engine.journal {
        Some(journal) => capture_while_open(engine, &Arc::clone(journal)),
        None => capture_at_rest(engine),
    }
}

fn capture_while_open(engine: &Engine, journal: &folddb_journal::JournalSync) -> Result<Capture> {
    // No edit may come in between, so that runs and log are consistent and no needed segment is
    // removed.
    let manifest = engine.manifest.lock();
    engine.check_open()?;
    let state = Arc::clone(manifest.state());
    let (committer, began) = (engine.commit.lock(), engine.host.clock.monotonic());
    let (facts, last_seq) = (journal.segments(), committer.next_seq - 1);
    let writers_held = engine.host.clock.monotonic().saturating_sub(began);
    drop(committer);
    let end_lsn = facts.last().map_or(state.log_start_lsn, |active| active.end_lsn);
    let mut segments = Vec::new();
    for fact in facts.iter().filter(|fact| fact.end_lsn > state.log_start_lsn) {
        let file = open_segment(engine, fact.number)?;
        let end_bytes = SEGMENT_HEADER_BYTES as u64 + (fact.end_lsn - fact.first_lsn);
        let is_sealed = fact.end_lsn < end_lsn;
        let start_bytes = offset_of_start(state.log_start_lsn, fact.first_lsn);
        segments.push(Segment { number: fact.number, file, start_bytes, end_bytes, is_sealed });
    }
    let values = value_files(engine, &state, &engine.values.log.ends())?;
    let _pinned = pin(engine);
    Ok(Capture { _pinned, state, segments, values, end_lsn, last_seq, writers_held })
}

/// Where in a segment the log begins; 0 if that is not within it.
fn offset_of_start(log_start_lsn: Lsn, first_lsn: Lsn) -> u64 {
    match log_start_lsn.checked_sub(first_lsn) {
        None | Some(0) => 0,
        Some(before) => SEGMENT_HEADER_BYTES as u64 + before,
    }
}

/// A store that is opened for reading does not change. Another process may have continued the log,
/// and removed values that it points to, and later segments: so the log is not read again, but
/// copied as far as it was read at the opening.
fn capture_at_rest(engine: &Engine) -> Result<Capture> {
    let state = Arc::clone(engine.manifest.lock().state());
    let (end_lsn, last_seq) = (engine.read_to_lsn, engine.published());
    let mut segments = Vec::new();
    for number in log_files(engine)? {
        let file = open_segment(engine, number)?;
        let Some(header) = segment_header(engine, number, &*file)? else { continue };
        let needed = state.log_start_lsn.max(header.first_lsn)..end_lsn.min(header.next_lsn());
        if !needed.is_empty() {
            let whole = file.len_bytes().map_err(|error| segment_error(engine, "read", number, error))?;
            let end_bytes = header.offset_of(header.next_lsn().min(end_lsn)).min(whole);
            let is_sealed = header.next_lsn() <= end_lsn;
            let start_bytes = offset_of_start(state.log_start_lsn, header.first_lsn);
            segments.push(Segment { number, file, start_bytes, end_bytes, is_sealed });
        }
    }
    let values = value_files(engine, &state, &[])?;
    let (_pinned, writers_held) = (pin(engine), Duration::ZERO);
    Ok(Capture { _pinned, state, segments, values, end_lsn, last_seq, writers_held })
}

/// The value segments with their present valid bytes. A segment that is not sealed, or not cut to
/// its end yet, is not linked: it will change, but a backup must not. If nobody appends, an
/// unsealed one counts with its whole length.
fn value_files(engine: &Engine, state: &State, open: &[ValuesEnd]) -> Result<Vec<ValuesCopy>> {
    let mut copies = Vec::new();
    for (&number, end) in state.values.iter().filter(|(number, _)| !state.is_directory(**number)) {
        let path = values_path(&engine.dir, number);
        let len = engine.host.files.len_bytes(&path).map_err(|error| Error::io("read", &path, error))?;
        let open_end = open.iter().find(|one| one.number == number).map(|one| one.end);
        let bytes = end.or(open_end).unwrap_or(len);
        copies.push(ValuesCopy { number, bytes, is_sealed: *end == Some(len) });
    }
    Ok(copies)
}

fn pin(engine: &Engine) -> (Vec<PartFiles>, Arc<SegmentMap>, Vec<Arc<IndexFile>>) {
    let parts = engine.catalog().all().map(|table| table.part_files()).collect();
    let catalog = engine.catalog();
    let hashed = catalog.all().filter_map(|table| table.hashed.as_ref());
    let indexes = hashed.filter_map(|hashed| hashed.file.lock().clone()).collect();
    (parts, engine.values.files.present(), indexes)
}

/// The existing segments of the log, oldest first.
fn log_files(engine: &Engine) -> Result<BTreeSet<FileNumber>> {
    let names = engine.host.files.list(&engine.dir).map_err(|error| Error::io("list", &engine.dir, error))?;
    let number = |name: &String| match FileName::parse(name) {
        Some(FileName::Log(number)) => Some(number),
        _ => None,
    };
    Ok(names.iter().filter_map(number).collect())
}

fn open_segment(engine: &Engine, number: FileNumber) -> Result<Arc<dyn ReadFile>> {
    let path = engine.path(&FileName::Log(number).to_string());
    engine.host.files.open(&path).map_err(|error| segment_error(engine, "open", number, error))
}

/// The header of a segment; none if its creation was interrupted.
pub(crate) fn segment_header(
    engine: &Engine,
    number: FileNumber,
    file: &dyn ReadFile,
) -> Result<Option<SegmentHeader>> {
    let mut bytes = vec![0; SEGMENT_HEADER_BYTES];
    match file.read_exact_at(0, &mut bytes) {
        Ok(()) => Ok(SegmentHeader::decode(&bytes, number).ok()),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(None),
        Err(error) => Err(segment_error(engine, "read", number, error)),
    }
}

pub(crate) fn segment_error(
    engine: &Engine,
    doing: &str,
    number: FileNumber,
    error: std::io::Error,
) -> Error {
    Error::io(doing, &engine.path(&FileName::Log(number).to_string()), error)
}
