//! Reading the log after a close or a crash.
//!
//! The walk goes from the start of the log over all whole frames, segment by segment, to the first
//! place p without one. What p means depends on H, the highest LSN up to which something says that
//! the log was durable: a frame before p, a frame found after p, or the manifest.
//!
//! ```text
//!   p >= H   nothing acknowledged as durable is missing: a torn tail. The log ends at p; frames beyond it
//!            reached the disk out of order, and are cut.
//!   p <  H   what stood at p was durable: damage. Refused, with file and offset.
//! ```
//!
//! Frames after p matter only if they vouch for an LSN above p, so only these are hashed. If the
//! search has hashed several times the length of the segment for bytes that only look like frames
//! (values may be made for that on purpose), that is an error.
//!
//! A frame that was not durable may point to values that are not on the disk, since the log and the
//! value log are written independently. So [`replay_checked`] counts a frame that is not before H
//! as whole only if its values are whole. Frames before H have their values because of the order of
//! syncs, so these values are not examined.
//!
//! A segment is durable, with its header and its name, before the seal of the previous one
//! announces it. If no segment follows such a seal, it was lost: that is damage wherever p and H
//! are.
//!
//! A segment has its full length before its first frame is written. So a segment without a seal
//! that is shorter was cut, but not by a crash: that is damage wherever p and H are.
//!
//! A failed read never counts as the end. A segment that is missing between two others is damage.
//! The rule is that of Pebble (2025), with a durable LSN in every frame. Any such rule has a limit:
//! nothing vouches for the last commits before the end, unless a mark, a seal or an edit of the
//! manifest came after them.

use std::path::Path;

use folddb_base::{Error, FileNumber, Lsn, Result, Seq, error};
use folddb_host::Host;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{FrameHead, FrameKind};
use folddb_layout::segment::SegmentHeader;

use crate::segment_reader::SegmentReader;

/// Why an end that looks torn may be an error: that is better than to cut what is durable.
pub(crate) const GAVE_UP: &str =
    "too many bytes beyond look like frames and are not, so whether something durable follows is not known";

/// The error if a seal announces a segment that does not exist.
pub(crate) const NEXT_IS_GONE: &str =
    "the segment before it says that the log continues in this one, which was durable by then";

/// Where the log begins, and what is known about it from the manifest.
#[derive(Clone, Copy, Debug)]
pub struct ReplayFrom {
    /// The store that the log belongs to.
    pub store_id: u128,
    /// The first LSN that matters: the boundary of a frame, or where a segment ends.
    pub log_start_lsn: Lsn,
    /// Everything before this LSN is known to be durable.
    pub durable_lsn: Lsn,
    /// True if a segment must hold `log_start_lsn`, because the log was not closed.
    pub is_open: bool,
    /// Where the log may end otherwise.
    pub end: LogEnd,
}

/// Where a log may end, other than where its writer closed it or died.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogEnd {
    /// Nowhere.
    Own,
    /// At the LSN up to which it is known to be durable: it is a copy up to there. A file may then
    /// be shorter than it was when it was created, and an announced segment may be missing.
    Copied,
    /// Wherever an announced segment is missing, since another process may be writing: a segment
    /// that it creates after the directory was listed is not seen, although a seal that is read
    /// later announces it. Files have their full length.
    Growing,
}

/// A batch of the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayFrame<'a> {
    /// The LSN where it begins.
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
    /// True if it is known to have been durable, with everything that it points to.
    pub is_durable: bool,
}

/// What a replay found.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Replayed {
    /// Where a new chain of segments may begin: after every segment that was found.
    pub end_lsn: Lsn,
    /// Where the log ended: all frames before it were visited.
    pub cut_lsn: Lsn,
    /// False if it ended with a seal that is not known to be durable. A power cut may still undo
    /// that; then the last segment ends at its last batch.
    pub is_end_durable: bool,
    /// Bytes after `cut_lsn` that exist but do not count.
    pub cut_bytes: u64,
    /// The seq of the last record; none if the log has no record.
    pub last_seq: Option<Seq>,
    /// Batches visited.
    pub batches: u64,
    /// Records in them.
    pub records: u64,
    /// All segments in the directory, needed or not. They are removed once what was replayed is in
    /// runs.
    pub segments: Vec<FileNumber>,
}

/// Visits all batches of the log, oldest first.
///
/// # Errors
/// `Corruption` if durable data is damaged or missing, `Io` if it cannot be read, or what `visit`
/// returns. Frames before that place have been visited.
pub fn replay(
    host: &Host,
    dir: &Path,
    from: &ReplayFrom,
    visit: &mut dyn FnMut(ReplayFrame<'_>) -> Result<()>,
) -> Result<Replayed> {
    let found = take_stock(host, dir, from)?;
    walk_over(host, dir, from, found, from.durable_lsn, &mut |_| Ok(true), visit)
}

/// As [`replay`], for a log that may point to values in the value log: `has_values` says whether
/// the values of a frame that is not known to be durable are whole. The log ends at the first frame
/// with values that are not whole.
///
/// # Errors
/// As for [`replay`], or what `has_values` returns.
pub fn replay_checked(
    host: &Host,
    dir: &Path,
    from: &ReplayFrom,
    has_values: &mut dyn FnMut(&ReplayFrame<'_>) -> Result<bool>,
    visit: &mut dyn FnMut(ReplayFrame<'_>) -> Result<()>,
) -> Result<Replayed> {
    let found = take_stock(host, dir, from)?;
    // Later frames vouch for earlier ones, so all of them are read before any value is examined.
    let mut ahead = Walk { vouched_lsn: from.durable_lsn, lsn: from.log_start_lsn, ..Walk::default() };
    for segment in &found.live {
        let mut reader = SegmentReader::open(host, dir, segment.number)?;
        let entered = ahead.enter(dir, segment).is_ok();
        if !entered
            || !ahead.through(&mut reader, segment, 0, &mut |_| Ok(true), &mut |_| Ok(())).unwrap_or(false)
        {
            break; // the second walk reports any error there
        }
    }
    walk_over(host, dir, from, found, ahead.vouched_lsn, has_values, visit)
}

/// The walk that visits the batches. Frames that end at or before `durable_lsn` have their values.
fn walk_over(
    host: &Host,
    dir: &Path,
    from: &ReplayFrom,
    found: Stock,
    durable_lsn: Lsn,
    has_values: &mut dyn FnMut(&ReplayFrame<'_>) -> Result<bool>,
    visit: &mut dyn FnMut(ReplayFrame<'_>) -> Result<()>,
) -> Result<Replayed> {
    let mut walk = Walk { vouched_lsn: from.durable_lsn, lsn: from.log_start_lsn, ..Walk::default() };
    let mut cut = None;
    for (index, segment) in found.live.iter().enumerate() {
        walk.enter(dir, segment)?;
        let mut reader = SegmentReader::open(host, dir, segment.number)?;
        let is_sealed = walk.through(&mut reader, segment, durable_lsn, has_values, visit)?;
        if !is_sealed {
            cut = Some((index, reader));
            break;
        }
    }
    let mut cut_bytes = 0;
    if let Some((index, mut reader)) = cut {
        cut_bytes = judge((host, dir, from), &found.live[index..], &mut reader, &walk)?;
    } else if walk.lsn < walk.vouched_lsn {
        return Err(missing(
            dir,
            walk.lsn,
            &format!("it is known to be durable up to LSN {}", walk.vouched_lsn),
        ));
    } else if walk.owes_next && !ends_here(from, walk.lsn) {
        return Err(missing(dir, walk.lsn, NEXT_IS_GONE));
    }
    Ok(Replayed {
        end_lsn: found.end_lsn.max(walk.lsn),
        cut_lsn: walk.lsn,
        is_end_durable: walk.sealed_lsn <= durable_lsn,
        cut_bytes,
        last_seq: walk.next_seq.and_then(|next| next.checked_sub(1)),
        batches: walk.batches,
        records: walk.records,
        segments: found.all,
    })
}

/// The segments of a directory.
struct Stock {
    all: Vec<FileNumber>,
    /// The segments that reach beyond the start of the log, in order.
    live: Vec<SegmentHeader>,
    /// After all segments.
    end_lsn: Lsn,
}

fn take_stock(host: &Host, dir: &Path, from: &ReplayFrom) -> Result<Stock> {
    let names = host.files.list(dir).map_err(|error| Error::io("list", dir, error))?;
    let mut all: Vec<FileNumber> = names
        .iter()
        .filter_map(|name| match FileName::parse(name) {
            Some(FileName::Log(number)) => Some(number),
            _ => None,
        })
        .collect();
    all.sort_unstable();
    let mut stock = Stock { all: Vec::new(), live: Vec::new(), end_lsn: from.log_start_lsn };
    let mut damaged: Option<Error> = None;
    let mut unused = None;
    for &number in &all {
        let mut reader = SegmentReader::open(host, dir, number)?;
        let header = match reader.header(number)? {
            Ok(header) => header,
            // Its creation was interrupted, and it has no frame: a header is durable before the
            // first frame is written.
            Err(_) if reader.is_unused()? => {
                unused = Some(reader.path.clone());
                continue;
            }
            Err(cause) => {
                damaged = Some(error::corrupt(&reader.path, 0, cause));
                continue;
            }
        };
        if header.store_id != from.store_id {
            return Err(error::corrupt(&reader.path, 24, "the segment belongs to another store"));
        }
        stock.end_lsn = stock.end_lsn.max(header.next_lsn());
        if header.next_lsn() <= from.log_start_lsn {
            damaged = None; // segments before one that is not needed are not needed
            continue;
        }
        if header.first_lsn <= from.log_start_lsn {
            damaged = None; // the log begins in this one
        }
        stock.live.push(header);
    }
    stock.all = all;
    let begins = |segment: &SegmentHeader| segment.first_lsn <= from.log_start_lsn;
    match damaged {
        Some(error) => Err(error),
        None if from.is_open && !stock.live.iter().any(begins) => {
            let what = "the log was not closed, so a segment must hold it: that segment is gone, or the end of the manifest is";
            Err(match unused {
                Some(path) => error::lacking(format!("{} has no header, but {what}", path.display())),
                None => missing(dir, from.log_start_lsn, what),
            })
        }
        None => Ok(stock),
    }
}

/// The walk over whole frames.
#[derive(Default)]
struct Walk {
    /// The place of the next frame.
    lsn: Lsn,
    vouched_lsn: Lsn,
    /// Where the last seal ended.
    sealed_lsn: Lsn,
    next_seq: Option<Seq>,
    /// The hash of the previous frame, once it is known.
    prev_hash: Option<u32>,
    /// The previous segment of the walk.
    previous: Option<FileNumber>,
    /// True if its seal says that another one follows.
    owes_next: bool,
    /// True if the seal of the previous segment announced this one.
    was_left_for: bool,
    batches: u64,
    records: u64,
}

impl Walk {
    /// Moves to the beginning of `segment`. It is an error if another one comes next.
    fn enter(&mut self, dir: &Path, segment: &SegmentHeader) -> Result<()> {
        match self.previous {
            None if segment.first_lsn > self.lsn => {
                let found = format!("segment {} begins at LSN {}", segment.number, segment.first_lsn);
                return Err(missing(dir, self.lsn, &found));
            }
            None => {}
            Some(previous) => {
                let follows = segment.previous.is_none_or(|number| number == previous);
                if !follows || segment.first_lsn != self.lsn {
                    let found = format!("after segment {previous} comes segment {}", segment.number);
                    return Err(missing(dir, self.lsn, &found));
                }
            }
        }
        if segment.previous.is_none() && self.lsn == segment.first_lsn {
            self.prev_hash = Some(0);
        }
        self.previous = Some(segment.number);
        self.was_left_for = std::mem::take(&mut self.owes_next);
        Ok(())
    }

    /// Visits the frames of a segment; true when it ends with a seal.
    fn through(
        &mut self,
        reader: &mut SegmentReader,
        segment: &SegmentHeader,
        durable_lsn: Lsn,
        has_values: &mut dyn FnMut(&ReplayFrame<'_>) -> Result<bool>,
        visit: &mut dyn FnMut(ReplayFrame<'_>) -> Result<()>,
    ) -> Result<bool> {
        let path = reader.path.clone();
        while let Some(frame) = reader.frame(segment, self.lsn)? {
            let (head, lsn) = (frame.head, self.lsn);
            let end_lsn = lsn + frame.len_bytes as u64;
            let (first_seq, count, time_ms, payload) =
                (head.first_seq, head.count, head.time_ms, frame.payload);
            let is_durable = end_lsn <= durable_lsn;
            let batch = ReplayFrame { lsn, end_lsn, first_seq, count, time_ms, payload, is_durable };
            if head.kind == FrameKind::Batch && !is_durable && !has_values(&batch)? {
                return Ok(false); // counts as no whole frame
            }
            self.check(&head).map_err(|what| error::corrupt(&path, segment.offset_of(lsn), what))?;
            self.prev_hash = Some(frame.hash);
            self.vouched_lsn = self.vouched_lsn.max(head.durable_lsn);
            if head.kind.is_seal() {
                (self.sealed_lsn, self.lsn) = (end_lsn, segment.next_lsn());
                self.owes_next = head.kind == FrameKind::SealForNext;
                return Ok(true);
            }
            self.lsn = end_lsn;
            if head.kind == FrameKind::Batch {
                self.batches += 1;
                self.records += u64::from(head.count);
                visit(batch)?;
            }
        }
        Ok(false)
    }

    /// Checks that a whole frame follows the one before it.
    fn check(&mut self, head: &FrameHead) -> Result<(), String> {
        if self.prev_hash.is_some_and(|hash| hash != head.prev_hash) {
            return Err("the frame does not follow the one before it".to_owned());
        }
        if let Some(next) = self.next_seq
            && next != head.first_seq
        {
            return Err(format!("the frame begins at seq {}, but {next} is next", head.first_seq));
        }
        self.next_seq = Some(head.first_seq + u64::from(head.count));
        Ok(())
    }
}

/// Decides whether the end of the walk is a torn tail or damage. For a torn tail, returns the
/// number of bytes that are cut. `rest` is the segment in which the walk ended, open in `reader`,
/// and the segments after it.
fn judge(
    (host, dir, from): (&Host, &Path, &ReplayFrom),
    rest: &[SegmentHeader],
    reader: &mut SegmentReader,
    walk: &Walk,
) -> Result<u64> {
    let Some((first, later)) = rest.split_first() else { return Ok(0) };
    let mut too_short = check_length(reader, first, (from, walk.was_left_for));
    let beyond = reader.search(first, walk.lsn, walk.lsn)?;
    let (mut vouched_lsn, mut cut_bytes) = (walk.vouched_lsn.max(beyond.durable_lsn), beyond.bytes);
    let mut gave_up = beyond.gave_up;
    for segment in later {
        let mut reader = SegmentReader::open(host, dir, segment.number)?;
        too_short = too_short.and_then(|()| check_length(&mut reader, segment, (from, false)));
        let beyond = reader.search(segment, segment.first_lsn, walk.lsn)?;
        vouched_lsn = vouched_lsn.max(beyond.durable_lsn);
        cut_bytes += beyond.bytes;
        gave_up |= beyond.gave_up;
    }
    if walk.lsn < vouched_lsn {
        let what =
            format!("no whole frame at LSN {}, but the log was durable up to LSN {vouched_lsn}", walk.lsn);
        return Err(error::corrupt(&reader.path, first.offset_of(walk.lsn), what));
    }
    if gave_up {
        let what = format!("no whole frame at LSN {}, and {GAVE_UP}", walk.lsn);
        return Err(error::corrupt(&reader.path, first.offset_of(walk.lsn), what));
    }
    too_short.map(|()| cut_bytes) // frames vouch for more
}

/// Whether the log may end here although a seal announces another segment.
pub(crate) fn ends_here(from: &ReplayFrom, lsn: Lsn) -> bool {
    from.end != LogEnd::Own && lsn >= from.durable_lsn
}

fn check_length(
    reader: &mut SegmentReader,
    segment: &SegmentHeader,
    from: (&ReplayFrom, bool),
) -> Result<()> {
    match why_too_short(reader, segment, from)? {
        None => Ok(()),
        Some(what) => Err(error::corrupt(&reader.path, reader.len_bytes(), what)),
    }
}

/// What is wrong with the length of a segment without a seal, if anything. The header and the
/// length are durable before the first frame is written. A power cut may undo the length of a file
/// that was made ahead and never used, but not if the seal of another segment announced it
/// (`was_left_for`).
pub(crate) fn why_too_short(
    reader: &mut SegmentReader,
    segment: &SegmentHeader,
    (from, was_left_for): (&ReplayFrom, bool),
) -> Result<Option<String>> {
    let (len, made) = (reader.len_bytes(), segment.offset_of(segment.next_lsn()));
    let holds_start = from.is_open && segment.first_lsn <= from.log_start_lsn;
    let is_end_of_copy = from.end == LogEnd::Copied && len == segment.offset_of(from.durable_lsn);
    if len >= made || is_end_of_copy || !holds_start && !was_left_for && reader.is_unused()? {
        return Ok(None);
    }
    Ok(Some(format!(
        "it has {len} bytes, was made with {made}, and does not end with a seal: it was cut short"
    )))
}

fn missing(dir: &Path, lsn: Lsn, why: &str) -> Error {
    let message = format!("a segment of the log in {} is missing at LSN {lsn}: {why}", dir.display());
    error::lacking(message)
}
