//! Following the log: batch by batch, from a place on, while it is written to.
//!
//! Who follows reads files, and of these only what is durable: a reader of frames in memory would
//! hand out what a power cut takes back. Which file has the history at an LSN is told by who owns
//! the files: segments, and kept ends of logs ([`crate::archived_tail`]) in their place. A place
//! without a whole frame is no end here but damage, since all before the end that it is told is
//! durable.
//!
//! Who follows a log that *another process* writes knows of no such end
//! ([`Follower::next_written`]): it is given what that process has handed to the kernel, and a
//! place without a whole frame is where it waits. Whether anything is to come there is decided as
//! replay does it ([`Follower::check_wait`]): where the manifest, or a frame beyond, says that the
//! log was durable further on, it is damage.

use std::path::{Path, PathBuf};

use folddb_base::{Error, FileNumber, Lsn, Result, Seq};
use folddb_host::Host;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{Frame, FrameKind};
use folddb_layout::segment::SegmentHeader;

use crate::archived_tail::archived_tail_path;
use crate::segment_file::segment_path;
use crate::segment_reader::SegmentReader;

/// A file that has some of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HistoryFile {
    /// Its number.
    pub number: FileNumber,
    /// A kept end of a log; else a segment.
    pub is_kept: bool,
    /// Where it begins.
    pub first_lsn: Lsn,
    /// Where the history goes on after it.
    pub next_lsn: Lsn,
    /// Its length in bytes.
    pub file_bytes: u64,
}

impl HistoryFile {
    /// Where it lies.
    pub fn path(&self, dir: &Path) -> PathBuf {
        if self.is_kept { archived_tail_path(dir, self.number) } else { segment_path(dir, self.number) }
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

/// The segments of the log in a directory whose headers are whole, oldest first.
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
                is_kept: false,
                first_lsn: header.first_lsn,
                next_lsn: header.next_lsn(),
                file_bytes: reader.len_bytes(),
            });
        }
    }
    found.sort_by_key(|file| (file.first_lsn, file.number));
    Ok(found)
}

/// The history as segments and kept ends of logs have it together, oldest first: no LSN is in two
/// of these files. Kept ends take the place of what the segments have there.
pub fn history(segments: &[HistoryFile], kept: &[HistoryFile]) -> Vec<HistoryFile> {
    let clipped = |segment: &HistoryFile| {
        let after = kept.iter().find(|kept| kept.next_lsn >= segment.next_lsn);
        let next_lsn = after.map_or(segment.next_lsn, |kept| kept.first_lsn.min(segment.next_lsn));
        HistoryFile { next_lsn, ..*segment }
    };
    let segments = segments.iter().map(clipped).filter(|segment| segment.first_lsn < segment.next_lsn);
    let mut all: Vec<HistoryFile> = segments.chain(kept.iter().copied()).collect();
    all.sort_by_key(|file| (file.first_lsn, file.number));
    all
}

/// A batch of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Followed<'a> {
    /// Where it stands.
    pub lsn: Lsn,
    /// The LSN after it.
    pub end_lsn: Lsn,
    /// The seq of its first record.
    pub first_seq: Seq,
    /// How many records it holds.
    pub count: u32,
    /// When it was written, where it says so, in milliseconds since 1970.
    pub time_ms: Option<u64>,
    /// The records, for `folddb_layout::frame::records`.
    pub payload: &'a [u8],
}

/// What stands at the place of a follower of another process's log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written<'a> {
    /// A batch, which it has gone past.
    Batch(Followed<'a>),
    /// No whole frame yet.
    NotYet,
    /// No file has the history there: none yet, or none any more.
    NoFile,
}

/// A place in the log that goes on.
pub struct Follower {
    host: Host,
    dir: PathBuf,
    lsn: Lsn,
    /// It has come here by a seal that says that another segment comes behind.
    owes_next: bool,
    open: Option<Open>,
    payload: Vec<u8>,
}

struct Open {
    reader: SegmentReader,
    header: SegmentHeader,
    /// The history goes on in another file from here on.
    next_lsn: Lsn,
    /// Up to here it is examined.
    end_lsn: Lsn,
}

/// What stands at a place.
enum Step {
    /// Nothing that is durable yet; or nothing that is whole.
    Wait,
    /// No file has it.
    NoFile,
    /// No batch; the history goes on there. Whether a segment must be there that goes on with it.
    Over(Lsn, bool),
    /// A batch, whose records are in the buffer.
    Batch { end_lsn: Lsn, first_seq: Seq, count: u32, time_ms: Option<u64> },
}

impl Follower {
    /// Stands at `lsn`: the boundary of a frame, or where a segment ends.
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

    /// Where it stands.
    pub fn lsn(&self) -> Lsn {
        self.lsn
    }

    /// Whether a file must go on with the history here: one was left for the segment before, and
    /// was durable before that was sealed for it.
    pub fn owes_next(&self) -> bool {
        self.owes_next
    }

    /// The next batch, and goes past it; none when there is no other that ends at or before
    /// `durable_lsn`. `file_at` tells which file has the history at an LSN.
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

    /// The next batch of a log that another process writes, and goes past it, once that process has
    /// handed it to the kernel. Nothing says that it is durable.
    ///
    /// # Errors
    /// Damage; a failed read. Either may be owed to what the writer does meanwhile, and then pass.
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

    /// Fails where what stood at this place was durable, and is no whole frame now: nothing will
    /// come there. `known_lsn` is what the manifest says, as it was read before this; frames beyond
    /// this place, which may say more, are looked for where the files of the history are `given`.
    ///
    /// # Errors
    /// Damage; a failed read. Either may be owed to what the writer does meanwhile, and then pass.
    pub fn check_wait(&mut self, known_lsn: Lsn, given: Option<&[HistoryFile]>) -> Result<()> {
        let lsn = self.lsn;
        let vouched_lsn = given.map_or(Ok(0), |files| self.vouched_beyond(files))?.max(known_lsn);
        let Some(open) = self.open.as_mut().filter(|_| lsn < vouched_lsn) else { return Ok(()) };
        if open.reader.frame_now(&open.header, lsn)?.is_some() {
            return Ok(()); // it has come since
        }
        let what = format!("no whole frame at LSN {lsn}, but the log was durable up to LSN {vouched_lsn}");
        Err(Error::corrupt(&open.reader.path, open.header.offset_of(lsn), what))
    }

    /// Up to where frames beyond this place say that the log is durable.
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
            return Err(Error::corrupt(&path, open.header.offset_of(lsn), what));
        };
        Ok(step_over(frame, lsn, &open.header, &mut self.payload))
    }
}

/// Goes past a whole frame; the records of a batch are copied to `payload`.
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
    Error::lacking(format!("the log in {} has nothing at LSN {lsn}", dir.display()))
}

impl Open {
    /// The file that has the history at an LSN, kept open in `slot`; none where none has it.
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
        let header = reader.header(file.number)?.map_err(|cause| Error::corrupt(&reader.path, 0, cause))?;
        if !(header.first_lsn..header.next_lsn()).contains(&lsn) {
            return Err(Error::corrupt(&reader.path, 48, format!("it has nothing at LSN {lsn}")));
        }
        let next_lsn = file.next_lsn.min(header.next_lsn()); // of a segment that was the last one more was not known
        Ok(Open { reader, header, next_lsn, end_lsn: 0 })
    }
}
