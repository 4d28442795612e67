//! Following the log: reading it batch by batch, from a place on, while it is written.
//!
//! A follower reads files, and only what is durable in them: otherwise it could return batches that
//! a power cut undoes. The owner of the files says which file has the history at an LSN: a segment,
//! or an archived part that replaces it ([`crate::archived_log`]). The caller says up to which LSN
//! the log is durable, so a place before that without a whole frame is damage.
//!
//! If *another process* writes the log, a follower does not know such an LSN
//! ([`Follower::next_written`]): it gets what that process has written to the kernel, and waits at
//! a place without a whole frame. [`Follower::check_wait`] decides as replay does whether such a
//! place is damage: it is if the manifest, or a later frame, says that the log was durable beyond
//! it.

use std::path::{Path, PathBuf};

use folddb_base::{Error, FileNumber, Lsn, Result, Seq, error};
use folddb_host::Host;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{Frame, FrameKind};
use folddb_layout::segment::SegmentHeader;

use crate::archived_log::archived_log_path;
use crate::segment_file::segment_path;
use crate::segment_reader::SegmentReader;

/// A file that has some of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryFile {
    /// Its number.
    pub number: FileNumber,
    /// True for an archived part of the log, false for a segment.
    pub is_archived: bool,
    /// Where it begins.
    pub first_lsn: Lsn,
    /// Where the history continues after it.
    pub next_lsn: Lsn,
    /// Its length in bytes.
    pub file_bytes: u64,
}

impl HistoryFile {
    /// Its path.
    pub fn path(&self, dir: &Path) -> PathBuf {
        if self.is_archived { archived_log_path(dir, self.number) } else { segment_path(dir, self.number) }
    }

    /// Whether it has the history at an LSN.
    pub fn covers(&self, lsn: Lsn) -> bool {
        (self.first_lsn..self.next_lsn).contains(&lsn)
    }

    /// Bytes of it from an LSN on.
    pub fn bytes_from(&self, lsn: Lsn) -> u64 {
        self.file_bytes.min(self.next_lsn.saturating_sub(lsn.max(self.first_lsn)))
    }
}

/// The segments of a store in a directory, oldest first. Segments without a whole header are left
/// out.
///
/// # Errors
/// A failed call.
pub fn segments_in(host: &Host, dir: &Path, store_id: u128) -> Result<Vec<HistoryFile>> {
    let names = host.files.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let mut found = Vec::new();
    for name in names {
        let Some(FileName::Log(number)) = FileName::parse(&name) else { continue };
        let mut reader = SegmentReader::open(host, dir, number)?;
        let Ok(header) = reader.header(number)? else { continue };
        if header.store_id == store_id {
            found.push(HistoryFile {
                number,
                is_archived: false,
                first_lsn: header.first_lsn,
                next_lsn: header.next_lsn(),
                file_bytes: reader.len_bytes(),
            });
        }
    }
    found.sort_by_key(|file| (file.first_lsn, file.number));
    Ok(found)
}

/// The files of the history, segments and archived parts together, oldest first: no LSN is in two
/// of them. An archived part replaces what segments have of the same LSNs. A segment that begins
/// within an archived part is replaced as a whole: if that part ends first, the rest of the segment
/// is in the next part.
pub fn history(segments: &[HistoryFile], kept: &[HistoryFile]) -> Vec<HistoryFile> {
    let is_replaced = |segment: &&HistoryFile| kept.iter().any(|kept| kept.covers(segment.first_lsn));
    let clipped = |segment: &HistoryFile| {
        let after = kept.iter().find(|kept| kept.next_lsn >= segment.next_lsn);
        let next_lsn = after.map_or(segment.next_lsn, |kept| kept.first_lsn.min(segment.next_lsn));
        HistoryFile { next_lsn, ..*segment }
    };
    let segments = segments.iter().filter(|segment| !is_replaced(segment));
    let segments = segments.map(clipped).filter(|segment| segment.first_lsn < segment.next_lsn);
    let mut all: Vec<HistoryFile> = segments.chain(kept.iter().copied()).collect();
    all.sort_by_key(|file| (file.first_lsn, file.number));
    all
}

/// A batch of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed<'a> {
    /// Its position.
    pub lsn: Lsn,
    /// The LSN after it.
    pub end_lsn: Lsn,
    /// The seq of its first record.
    pub first_seq: Seq,
    /// How many records it holds.
    pub count: u32,
    /// When it was written, in milliseconds since 1970; none if it does not say.
    pub time_ms: Option<u64>,
    /// The records, for `folddb_layout::frame::records`.
    pub payload: &'a [u8],
}

/// What is at the place of a follower, if another process writes the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// A batch. The follower is now after it.
    Batch(Followed<'a>),
    /// No whole frame yet.
    NotYet,
    /// No file has the history at this place, not yet or no longer.
    NoFile,
}

/// A place in the log that advances.
pub struct Follower {
    host: Host,
    dir: PathBuf,
    lsn: Lsn,
    /// True if the seal of the previous segment announces another one.
    owes_next: bool,
    open: Option<Open>,
    payload: Vec<u8>,
}

struct Open {
    reader: SegmentReader,
    header: SegmentHeader,
    /// From here on, another file has the history.
    next_lsn: Lsn,
    /// The file is read up to here.
    end_lsn: Lsn,
}

/// What is at a place.
enum Step {
    /// Nothing durable, or no whole frame, yet.
    Wait,
    /// No file has it.
    NoFile,
    /// No batch is here. The history continues at this LSN; true if a segment must exist there.
    Over(Lsn, bool),
    /// A batch. Its records are in the buffer.
    Batch { end_lsn: Lsn, first_seq: Seq, count: u32, time_ms: Option<u64> },
}

impl Follower {
    /// A follower at `lsn`: the boundary of a frame, or where a segment ends.
    pub fn at(host: &Host, dir: &Path, lsn: Lsn) -> Follower {
        Follower {
            host: host.clone(),
            dir: dir.to_owned(),
            lsn,
            owes_next: false,
            open: None,
            payload: Vec::new(),
        }
    }

    /// Its position.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Whether a file must have the history here: the seal of the previous segment announced one,
    /// which was durable before.
    pub fn owes_next(&self) -> bool {
        self.owes_next
    }

    /// Returns the next batch that ends at or before `durable_lsn`, and moves after it; none if
    /// there is none. `file_at` says which file has the history at an LSN.
    ///
    /// # Errors
    /// Damage; a failed read.
    pub fn next(
        &mut self,
        durable_lsn: Lsn,
        file_at: &dyn Fn(Lsn) -> Option<HistoryFile>,
    ) -> Result<Option<Followed<'_>>> {
        loop {
            match self.step(durable_lsn, file_at)? {
                Step::Wait => return Ok(None),
                Step::NoFile => return Err(lacks(&self.dir, self.lsn)),
                Step::Over(lsn, owes_next) => (self.lsn, self.owes_next) = (lsn, owes_next),
                Step::Batch { end_lsn, first_seq, count, time_ms } => {
                    let lsn = std::mem::replace(&mut self.lsn, end_lsn);
                    self.owes_next = false;
                    let payload = &self.payload[..];
                    return Ok(Some(Followed { lsn, end_lsn, first_seq, count, time_ms, payload }));
                }
            }
        }
    }

    /// Returns the next batch of a log that another process writes, and moves after it, if that
    /// process has written it to the kernel. It may not be durable.
    ///
    /// # Errors
    /// Damage; a failed read. What the writer does at the same time may cause either: then a later
    /// call succeeds.
    pub fn next_written(&mut self, file_at: &dyn Fn(Lsn) -> Option<HistoryFile>) -> Result<Written<'_>> {
        loop {
            match self.step_written(file_at)? {
                Step::Wait => return Ok(Written::NotYet),
                Step::NoFile => return Ok(Written::NoFile),
                Step::Over(lsn, owes_next) => (self.lsn, self.owes_next) = (lsn, owes_next),
                Step::Batch { end_lsn, first_seq, count, time_ms } => {
                    let lsn = std::mem::replace(&mut self.lsn, end_lsn);
                    self.owes_next = false;
                    let payload = &self.payload[..];
                    return Ok(Written::Batch(Followed { lsn, end_lsn, first_seq, count, time_ms, payload }));
                }
            }
        }
    }

    /// Fails if this place was durable but has no whole frame now, so that none will ever appear.
    /// The manifest, read before this call, says that the log is durable up to `known_lsn`. If the
    /// files of the history are `given`, their frames after this place are searched for a higher
    /// durable LSN.
    ///
    /// # Errors
    /// Damage; a failed read. What the writer does at the same time may cause either: then a later
    /// call succeeds.
    pub fn check_wait(&mut self, known_lsn: Lsn, given: Option<&[HistoryFile]>) -> Result<()> {
        let lsn = self.lsn;
        let vouched_lsn = given.map_or(Ok(0), |files| self.vouched_beyond(files))?.max(known_lsn);
        let Some(open) = self.open.as_mut().filter(|_| lsn < vouched_lsn) else { return Ok(()) };
        if open.reader.frame_now(&open.header, lsn)?.is_some() {
            return Ok(()); // it has been written since
        }
        let what = format!("no whole frame at LSN {lsn}, but the log was durable up to LSN {vouched_lsn}");
        Err(error::corrupt(&open.reader.path, open.header.offset_of(lsn), what))
    }

    /// The LSN up to which the log is durable, according to frames after this place.
    fn vouched_beyond(&mut self, files: &[HistoryFile]) -> Result<Lsn> {
        let lsn = self.lsn;
        let mut vouched_lsn = 0;
        if let Some(open) = &mut self.open {
            open.reader.forget()?;
            vouched_lsn = open.reader.search(&open.header, lsn, lsn)?.durable_lsn;
        }
        for file in files.iter().filter(|file| file.first_lsn > lsn) {
            let mut reader = SegmentReader::open_at(&self.host, file.path(&self.dir))?;
            let Ok(header) = reader.header(file.number)? else { continue };
            vouched_lsn = vouched_lsn.max(reader.search(&header, header.first_lsn, lsn)?.durable_lsn);
        }
        Ok(vouched_lsn)
    }

    fn step_written(&mut self, file_at: &dyn Fn(Lsn) -> Option<HistoryFile>) -> Result<Step> {
        let lsn = self.lsn;
        let Some(open) = Open::at(&mut self.open, (&self.host, &self.dir), lsn, file_at)? else {
            return Ok(Step::NoFile);
        };
        let Some(frame) = open.reader.frame_now(&open.header, lsn)? else { return Ok(Step::Wait) };
        Ok(step_over(frame, lsn, &open.header, &mut self.payload))
    }

    fn step(&mut self, durable_lsn: Lsn, file_at: &dyn Fn(Lsn) -> Option<HistoryFile>) -> Result<Step> {
        let lsn = self.lsn;
        if lsn >= durable_lsn {
            return Ok(Step::Wait);
        }
        let Some(open) = Open::at(&mut self.open, (&self.host, &self.dir), lsn, file_at)? else {
            return Ok(Step::NoFile);
        };
        if open.end_lsn != durable_lsn {
            open.reader.end_at(&open.header, durable_lsn)?;
            open.end_lsn = durable_lsn;
        }
        let path = open.reader.path.clone();
        let Some(frame) = open.reader.frame(&open.header, lsn)? else {
            let what = format!("no whole frame at LSN {lsn}, but the log is durable up to LSN {durable_lsn}");
            return Err(error::corrupt(&path, open.header.offset_of(lsn), what));
        };
        Ok(step_over(frame, lsn, &open.header, &mut self.payload))
    }
}

/// What a whole frame means for a follower. The records of a batch are copied to `payload`.
fn step_over(frame: Frame<'_>, lsn: Lsn, header: &SegmentHeader, payload: &mut Vec<u8>) -> Step {
    let (head, end_lsn) = (frame.head, lsn + frame.len_bytes as u64);
    match head.kind {
        FrameKind::Seal => Step::Over(header.next_lsn(), false),
        FrameKind::SealForNext => Step::Over(header.next_lsn(), true),
        FrameKind::Mark => Step::Over(end_lsn, false),
        FrameKind::Batch => {
            payload.clear();
            payload.extend_from_slice(frame.payload);
            let (first_seq, count, time_ms) = (head.first_seq, head.count, head.time_ms);
            Step::Batch { end_lsn, first_seq, count, time_ms }
        }
    }
}

fn lacks(dir: &Path, lsn: Lsn) -> Error {
    error::lacking(format!("the log in {} has nothing at LSN {lsn}", dir.display()))
}

impl Open {
    /// The file that has the history at an LSN, kept open in `slot`; none if no file has it.
    fn at<'o>(
        slot: &'o mut Option<Open>,
        (host, dir): (&Host, &Path),
        lsn: Lsn,
        file_at: &dyn Fn(Lsn) -> Option<HistoryFile>,
    ) -> Result<Option<&'o mut Open>> {
        let is_there = |open: &Open| (open.header.first_lsn..open.next_lsn).contains(&lsn);
        if !slot.as_ref().is_some_and(is_there) {
            let Some(file) = file_at(lsn) else { return Ok(None) };
            *slot = Some(Open::begin(host, dir, lsn, &file)?);
        }
        Ok(slot.as_mut())
    }

    fn begin(host: &Host, dir: &Path, lsn: Lsn, file: &HistoryFile) -> Result<Open> {
        let mut reader = SegmentReader::open_at(host, file.path(dir))?;
        let header = reader.header(file.number)?.map_err(|cause| error::corrupt(&reader.path, 0, cause))?;
        if !(header.first_lsn..header.next_lsn()).contains(&lsn) {
            return Err(error::corrupt(&reader.path, 48, format!("it has nothing at LSN {lsn}")));
        }
        // The caller may not know the end of the last segment.
        let next_lsn = file.next_lsn.min(header.next_lsn());
        Ok(Open { reader, header, next_lsn, end_lsn: 0 })
    }
}
