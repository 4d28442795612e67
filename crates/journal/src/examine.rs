//! Reads the log beyond all damage, and lists the damage.
//!
//! [`crate::replay`] fails at the first damage. This continues with the next whole frame that can
//! be found, and decides by the same rule: a hole is damage if something vouches for what was
//! there, else a torn tail. It is for examining and repairing stores that do not open.
//!
//! ```text
//!   frames  [1][2][3]..hole..[5][6]..torn       1 to 3 are the history without a gap; 5 and 6 are beyond a hole
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use folddb_base::{Error, ErrorKind, FileNumber, Lsn, Result, Seq, error};
use folddb_host::Host;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{FrameHead, FrameKind};
use folddb_layout::segment::{NUMBER_AT, SEGMENT_HEADER_BYTES, SegmentHeader};

use crate::replay::{GAVE_UP, NEXT_IS_GONE, ReplayFrame, ReplayFrom, ends_here, why_too_short};
use crate::segment_file::segment_path;
use crate::segment_reader::SegmentReader;

/// Bytes of a header: those that are hashed, and the hash.
const HEADER_SAYS_BYTES: usize = 80;

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogFault {
    /// The segment; none if it is missing.
    pub file: Option<FileNumber>,
    /// The offset in it.
    pub offset: u64,
    /// What is wrong.
    pub what: String,
    /// Nothing could be read from this LSN on.
    pub lsn: Lsn,
    /// Where whole frames continue; none if no whole frame follows.
    pub to_lsn: Option<Lsn>,
    /// How many records are lost, if the frames before and after show that.
    pub records: Option<u64>,
    /// True if nothing is lost: the header could be restored, or the contents are in another file.
    pub costs_nothing: bool,
}

/// The end of the log as a power cut leaves it: nothing there was known to be durable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TornEnd {
    /// The segment.
    pub file: FileNumber,
    /// Where the whole frames end.
    pub lsn: Lsn,
    /// Bytes that were written after that.
    pub bytes: u64,
}

/// What a log holds.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct LogReport {
    /// Segments in the directory.
    pub segments: u64,
    /// How many of them are needed.
    pub needed: u64,
    /// Batches up to the first hole.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// Batches after the first hole.
    pub batches_beyond: u64,
    /// Records in these.
    pub records_beyond: u64,
    /// Where the log begins.
    pub start_lsn: Lsn,
    /// Where its frames end before the first hole.
    pub end_lsn: Lsn,
    /// The highest LSN that anything vouches for.
    pub vouched_lsn: Lsn,
    /// What is wrong: first faults of headers, then of whole frames, then holes, each in the order
    /// of the log.
    pub faults: Vec<LogFault>,
    /// The torn end, if there is one.
    pub torn: Option<TornEnd>,
}

/// Visits all batches that can be found, oldest first. The second argument of `visit` is true after
/// the first hole. An error of `visit` is a fault of that batch.
///
/// # Errors
/// The directory cannot be listed. If a file cannot be read, that is one of the faults.
pub fn examine(
    host: &Host,
    dir: &Path,
    from: &ReplayFrom,
    visit: &mut dyn FnMut(ReplayFrame<'_>, bool) -> Result<(), String>,
) -> Result<LogReport> {
    let mut walk = Walk {
        host,
        dir,
        from,
        report: LogReport {
            start_lsn: from.log_start_lsn,
            vouched_lsn: from.durable_lsn,
            ..LogReport::default()
        },
        holes: Vec::new(),
        lsn: from.log_start_lsn,
        next_seq: None,
        prev_hash: None,
        owes_next: false,
        was_left_for: false,
        elsewhere: BTreeMap::new(),
        visit,
    };
    let live = walk.take_stock(from)?;
    let mut previous = None;
    for segment in &live {
        walk.enter(segment, previous);
        walk.was_left_for = std::mem::take(&mut walk.owes_next);
        walk.through(segment);
        previous = Some(segment.number);
    }
    Ok(walk.judge(previous))
}

/// A place where a whole frame should be, but is not.
struct Hole {
    fault: LogFault,
    /// The seq of the record that should be here, if known.
    next_seq: Option<Seq>,
    /// Bytes from here to the last byte of the segment that was written.
    bytes: u64,
    /// True if a whole frame is here that this version cannot read, or if it is not known what
    /// follows.
    is_never_torn: bool,
}

struct Walk<'a> {
    host: &'a Host,
    dir: &'a Path,
    from: &'a ReplayFrom,
    report: LogReport,
    holes: Vec<Hole>,
    /// Where the next frame should be.
    lsn: Lsn,
    next_seq: Option<Seq>,
    prev_hash: Option<u32>,
    /// True if the seal of the last segment that was read says that another one follows.
    owes_next: bool,
    /// True if the seal of the previous segment announced the one that is being read.
    was_left_for: bool,
    /// Segments that are in the file of another segment, each with the number of that file.
    elsewhere: BTreeMap<FileNumber, FileNumber>,
    visit: &'a mut dyn FnMut(ReplayFrame<'_>, bool) -> Result<(), String>,
}

impl Walk<'_> {
    fn fault(&mut self, file: FileNumber, offset: u64, what: impl ToString) {
        let (lsn, what) = (self.lsn, what.to_string());
        let (file, to_lsn, records) = (Some(file), Some(lsn), Some(0));
        let fault = LogFault { file, offset, what, lsn, to_lsn, records, costs_nothing: false };
        self.report.faults.push(fault);
    }

    // ---- which segments there are ---------------------------------------------------------------

    /// The segments that are needed, in order. Damaged headers are restored if that is unambiguous.
    fn take_stock(&mut self, from: &ReplayFrom) -> Result<Vec<SegmentHeader>> {
        let names = self.host.files.list(self.dir).map_err(|error| Error::io("list", self.dir, error))?;
        let mut numbers: Vec<FileNumber> = names
            .iter()
            .filter_map(|name| match FileName::parse(name) {
                Some(FileName::Log(number)) => Some(number),
                _ => None,
            })
            .collect();
        numbers.sort_unstable();
        self.report.segments = numbers.len() as u64;
        let stands: BTreeMap<FileNumber, Stands> =
            numbers.iter().map(|&number| (number, self.look_at_header(number, from.store_id))).collect();
        self.elsewhere = find_elsewhere(&stands, from.store_id);
        let mut live = Vec::new();
        // What is wrong with a segment matters only if no later one shows that it is not needed.
        let mut pending: Vec<(FileNumber, String, bool)> = Vec::new();
        let is_needed = |header: &SegmentHeader| header.next_lsn() > from.log_start_lsn;
        numbers.extend(self.elsewhere.keys().filter(|number| !stands.contains_key(number)));
        numbers.sort_unstable();
        for number in numbers {
            let is_elsewhere = self.elsewhere.contains_key(&number);
            let mut header = None;
            match stands.get(&number) {
                None | Some(Stands::Unused) => {}
                // It is never ignored, not even if the log begins later: the files of two stores
                // are mixed.
                Some(Stands::Whole(whole)) if whole.store_id != from.store_id => {
                    self.fault(number, 24, "the segment belongs to another store".to_owned());
                }
                Some(Stands::Whole(whole)) => header = Some(whole),
                // Only later segments show whether it is needed: its own LSNs prove nothing.
                Some(Stands::Restored(restored, what)) => {
                    pending.push((number, what.clone(), is_needed(restored)));
                    live.extend(Some(*restored).filter(is_needed));
                }
                Some(Stands::Other(_, what)) => pending.push((number, what.clone(), is_elsewhere)),
                Some(Stands::Damaged(what)) => pending.push((number, what.clone(), false)),
            }
            if let Some(Stands::Other(other, _)) =
                self.elsewhere.get(&number).and_then(|file| stands.get(file))
            {
                header = Some(other);
            }
            let Some(header) = header else { continue };
            if header.first_lsn <= from.log_start_lsn {
                pending.retain(|(before, ..)| *before >= number);
            }
            live.extend(Some(*header).filter(is_needed));
        }
        for (number, what, costs_nothing) in pending {
            self.fault(number, 0, what);
            self.report.faults.last_mut().into_iter().for_each(|fault| fault.costs_nothing = costs_nothing);
        }
        live.sort_by_key(|header: &SegmentHeader| header.first_lsn);
        self.report.needed = live.len() as u64;
        let begins = live.first().is_some_and(|header| header.first_lsn <= from.log_start_lsn);
        if from.is_open && !begins {
            let what = "the log was not closed, so a segment must hold it: that segment is gone, or the end of the manifest is";
            let to_lsn = live.first().map(|header| header.first_lsn);
            self.hole(None, 0, what, to_lsn);
        }
        Ok(live)
    }

    /// What is in the place of a segment's header.
    fn look_at_header(&self, number: FileNumber, store_id: u128) -> Stands {
        self.header(number, store_id).unwrap_or_else(|error| Stands::Damaged(error.message().to_owned()))
    }

    fn header(&self, number: FileNumber, store_id: u128) -> Result<Stands> {
        let mut reader = SegmentReader::open(self.host, self.dir, number)?;
        let cause = match reader.header(number)? {
            Ok(header) => return Ok(Stands::Whole(header)),
            Err(_) if reader.is_unused()? => return Ok(Stands::Unused),
            Err(cause) => cause,
        };
        if let Some(other) = written_as(&mut reader, number) {
            let what = format!("the header of the segment: these are the bytes of segment {}", other.number);
            return Ok(Stands::Other(other, what));
        }
        let restored = restore_header(&mut reader, number).filter(|header| header.store_id == store_id);
        Ok(match restored {
            Some(header) => Stands::Restored(
                header,
                format!("the header of the segment: {cause}; what it said is known anyway"),
            ),
            None => Stands::Damaged(format!("the header of the segment: {cause}")),
        })
    }

    // ---- the walk -------------------------------------------------------------------------------

    /// Moves to the beginning of `segment`, and checks that it comes next.
    fn enter(&mut self, segment: &SegmentHeader, previous: Option<FileNumber>) {
        let is_next = match previous {
            None => segment.first_lsn <= self.lsn,
            Some(previous) => {
                segment.first_lsn == self.lsn && segment.previous.is_none_or(|number| number == previous)
            }
        };
        if !is_next {
            let is_known = self.holes.last().is_some_and(|hole| hole.fault.to_lsn == Some(segment.first_lsn));
            if !is_known {
                let what = format!("a segment is missing before segment {}", segment.number);
                self.hole(None, 0, what, Some(segment.first_lsn));
            }
            self.lsn = segment.first_lsn;
        }
        if segment.previous.is_none() && self.lsn == segment.first_lsn {
            self.prev_hash = Some(0);
        }
    }

    /// Visits what a segment holds, and moves to where the next one begins.
    fn through(&mut self, segment: &SegmentHeader) {
        let file = self.elsewhere.get(&segment.number).copied().unwrap_or(segment.number);
        let ended = SegmentReader::open(self.host, self.dir, file)
            .and_then(|mut reader| self.frames(&mut reader, segment));
        match ended {
            Ok(()) => {}
            Err(error) => {
                let offset = segment.offset_of(self.lsn);
                self.hole(Some(segment.number), offset, error.message(), None);
            }
        }
        self.lsn = segment.next_lsn();
    }

    fn frames(&mut self, reader: &mut SegmentReader, segment: &SegmentHeader) -> Result<()> {
        loop {
            let (lsn, offset) = (self.lsn, segment.offset_of(self.lsn));
            let (missing, is_whole) = match reader.frame(segment, lsn) {
                Ok(Some(frame)) => {
                    let (head, hash, len) = (frame.head, frame.hash, frame.len_bytes as u64);
                    self.take(segment, &head, hash, lsn + len, frame.payload);
                    if head.kind.is_seal() {
                        self.owes_next = head.kind == FrameKind::SealForNext;
                        self.note_end(segment, lsn + len);
                        // A seal vouches for what is before it, but does not show what was lost in
                        // a hole.
                        return if self.holes.is_empty() {
                            Ok(())
                        } else {
                            self.look_at_length(reader, segment)
                        };
                    }
                    self.lsn = lsn + len;
                    continue;
                }
                Ok(None) => ("no whole frame".to_owned(), false),
                Err(error) if error.kind() == ErrorKind::Corruption => (error.message().to_owned(), true),
                Err(error) => return Err(error),
            };
            let next = reader.find_frame(segment, lsn.saturating_add(1))?;
            self.hole(Some(segment.number), offset, missing, next);
            if let Some(hole) = self.holes.last_mut() {
                hole.is_never_torn = is_whole;
            }
            match next {
                Some(next) => self.lsn = next,
                None => return self.rest(reader, segment),
            }
        }
    }

    /// Examines what is after the last hole of a segment, as a replay does that ends in the first
    /// hole.
    fn rest(&mut self, reader: &mut SegmentReader, segment: &SegmentHeader) -> Result<()> {
        let known_lsn = self.holes.first().map_or(self.lsn, |hole| hole.fault.lsn);
        reader.wasted_bytes = 0;
        let beyond = reader.search(segment, self.lsn, known_lsn)?;
        self.report.vouched_lsn = self.report.vouched_lsn.max(beyond.durable_lsn);
        self.note_end(segment, self.lsn + beyond.bytes);
        self.look_at_length(reader, segment)?;
        if let Some(first) = self.holes.first_mut().filter(|first| beyond.gave_up && !first.is_never_torn) {
            first.is_never_torn = true;
            first.fault.what.push_str(&format!(", and {GAVE_UP}"));
        }
        Ok(())
    }

    fn look_at_length(&mut self, reader: &mut SegmentReader, segment: &SegmentHeader) -> Result<()> {
        if let Some(what) = why_too_short(reader, segment, (self.from, self.was_left_for))? {
            let (lsn, offset) = (self.lsn, reader.len_bytes());
            let file = Some(segment.number);
            self.report.faults.push(LogFault {
                file,
                offset,
                what,
                lsn,
                to_lsn: None,
                records: None,
                costs_nothing: false,
            });
        }
        Ok(())
    }

    /// Notes where a segment ends, in case holes in it turn out to be a torn end.
    fn note_end(&mut self, segment: &SegmentHeader, end_lsn: Lsn) {
        for hole in self.holes.iter_mut().filter(|hole| hole.fault.file == Some(segment.number)) {
            hole.bytes = end_lsn.saturating_sub(hole.fault.lsn);
        }
    }

    /// Notes that nothing could be read from here on.
    fn hole(&mut self, file: Option<FileNumber>, offset: u64, what: impl ToString, to_lsn: Option<Lsn>) {
        let (lsn, what) = (self.lsn, what.to_string());
        let fault = LogFault { file, offset, what, lsn, to_lsn, records: None, costs_nothing: false };
        self.holes.push(Hole { fault, next_seq: self.next_seq, bytes: 0, is_never_torn: false });
        self.prev_hash = None;
        self.next_seq = None;
    }

    fn take(&mut self, segment: &SegmentHeader, head: &FrameHead, hash: u32, end_lsn: Lsn, payload: &[u8]) {
        let (lsn, offset) = (self.lsn, segment.offset_of(self.lsn));
        if self.prev_hash.is_some_and(|hash| hash != head.prev_hash) {
            self.fault(segment.number, offset, "the frame does not follow the one before it");
        }
        if let Some(next) = self.next_seq
            && next != head.first_seq
        {
            let what = format!("the frame begins at seq {}, but {next} is next", head.first_seq);
            self.fault(segment.number, offset, what);
        }
        // The first frame after a hole shows how many records were lost in it.
        for hole in self.holes.iter_mut().filter(|hole| hole.fault.records.is_none()) {
            hole.fault.to_lsn = hole.fault.to_lsn.or(Some(lsn));
            if let Some(next) = hole.next_seq {
                hole.fault.records = Some(head.first_seq.saturating_sub(next));
            }
        }
        self.prev_hash = Some(hash);
        self.next_seq = Some(head.first_seq + u64::from(head.count));
        self.report.vouched_lsn = self.report.vouched_lsn.max(head.durable_lsn);
        if head.kind != FrameKind::Batch {
            return;
        }
        let is_beyond = !self.holes.is_empty();
        let (batches, records) = match is_beyond {
            false => (&mut self.report.batches, &mut self.report.records),
            true => (&mut self.report.batches_beyond, &mut self.report.records_beyond),
        };
        *batches += 1;
        *records += u64::from(head.count);
        let (first_seq, count, time_ms) = (head.first_seq, head.count, head.time_ms);
        if let Err(what) = (self.visit)(
            ReplayFrame {
                lsn,
                end_lsn,
                first_seq,
                count,
                time_ms,
                payload,
                is_durable: end_lsn <= self.report.vouched_lsn,
            },
            is_beyond,
        ) {
            self.fault(segment.number, offset, what);
        }
    }

    // ---- the judgment --------------------------------------------------------------------------

    /// Distinguishes holes that are damage from the torn end. `last` is the newest segment that
    /// could be placed.
    fn judge(self, last: Option<FileNumber>) -> LogReport {
        let is_told = self.report.faults.iter().any(|fault| fault.file > last);
        let owes_next = self.owes_next && !is_told && !ends_here(self.from, self.lsn);
        let Walk { mut report, mut holes, lsn, .. } = self;
        let end_lsn = lsn.max(report.start_lsn);
        report.end_lsn = holes.first().map_or(end_lsn, |hole| hole.fault.lsn);
        let vouched_lsn = report.vouched_lsn;
        if holes.is_empty() && end_lsn < vouched_lsn {
            let what = if last.is_none() { "the log is gone" } else { "the end of the log is gone" };
            let what = what.to_owned();
            let fault = LogFault {
                file: None,
                offset: 0,
                what,
                lsn: end_lsn,
                to_lsn: None,
                records: None,
                costs_nothing: false,
            };
            holes.push(Hole { fault, next_seq: None, bytes: 0, is_never_torn: false });
        }
        if owes_next && holes.is_empty() {
            let what = format!("a segment is missing at the end of the log: {NEXT_IS_GONE}");
            let fault = LogFault {
                file: None,
                offset: 0,
                what,
                lsn: end_lsn,
                to_lsn: None,
                records: None,
                costs_nothing: false,
            };
            holes.push(Hole { fault, next_seq: None, bytes: 0, is_never_torn: false });
        }
        for Hole { mut fault, bytes, is_never_torn, .. } in holes {
            if let (Some(file), true) = (fault.file, fault.lsn >= vouched_lsn && !is_never_torn) {
                // What follows reached the disk out of order, and was not known to be durable.
                report.torn = Some(TornEnd { file, lsn: fault.lsn, bytes }).filter(|torn| torn.bytes > 0);
                break;
            }
            if fault.lsn < vouched_lsn {
                fault.what.push_str(&format!(", but the log was durable up to LSN {vouched_lsn}"));
            }
            report.faults.push(fault);
        }
        report
    }
}

/// What is in the place of a segment's header.
enum Stands {
    /// It was never used.
    Unused,
    Whole(SegmentHeader),
    /// It is damaged, but its original bytes are certain.
    Restored(SegmentHeader, String),
    /// It is the whole header of another segment.
    Other(SegmentHeader, String),
    Damaged(String),
}

/// Segments that are in the file of another one, for example after two files were swapped, each
/// with the number of that file. The checksum proves which segment it is. A segment that is in its
/// own file does not count.
fn find_elsewhere(stands: &BTreeMap<FileNumber, Stands>, store_id: u128) -> BTreeMap<FileNumber, FileNumber> {
    let is_at_home =
        |number: FileNumber| matches!(stands.get(&number), Some(Stands::Whole(_) | Stands::Restored(..)));
    let found = stands.iter().filter_map(|(&file, stands)| match stands {
        Stands::Other(header, _) if header.store_id == store_id => Some((header.number, file)),
        _ => None,
    });
    found.filter(|(number, _)| !is_at_home(*number)).collect()
}

/// The header of a segment that is in the file of another one.
fn written_as(reader: &mut SegmentReader, number: FileNumber) -> Option<SegmentHeader> {
    let bytes = reader.raw_header().ok()?;
    let said = FileNumber(u64::from_le_bytes(bytes.get(NUMBER_AT..NUMBER_AT + 8)?.try_into().ok()?));
    SegmentHeader::decode(bytes, said).ok().filter(|header| header.number != number)
}

/// Restores a damaged header if the hashes prove its bytes: only one byte is wrong, and only one
/// value of that byte gives the right hash; or the frame after the header is whole with the salt
/// and LSN of the header.
fn restore_header(reader: &mut SegmentReader, number: FileNumber) -> Option<SegmentHeader> {
    let len_bytes = reader.len_bytes();
    let mut bytes = reader.raw_header().ok()?.to_vec();
    if bytes.len() < SEGMENT_HEADER_BYTES {
        return None;
    }
    bytes[HEADER_SAYS_BYTES..].fill(0);
    if let Ok(header) = SegmentHeader::decode(&bytes, number) {
        return Some(header);
    }
    for at in 0..HEADER_SAYS_BYTES {
        let before = bytes[at];
        for value in 0..=u8::MAX {
            bytes[at] = value;
            if let Ok(header) = SegmentHeader::decode(&bytes, number) {
                return Some(header);
            }
        }
        bytes[at] = before;
    }
    let header = SegmentHeader::from_fields(&bytes, number, len_bytes)?;
    reader.frame(&header, header.first_lsn).ok()??;
    Some(header)
}

impl LogFault {
    /// The error for it.
    pub fn to_error(&self, dir: &Path) -> Error {
        match self.file {
            Some(number) => error::corrupt(&segment_path(dir, number), self.offset, &self.what),
            None => {
                let message = format!("the log in {} at LSN {}: {}", dir.display(), self.lsn, self.what);
                Error::new(ErrorKind::Corruption, message)
            }
        }
    }
}
