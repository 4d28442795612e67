//! A byte of a file rots, in another world: each read then is right, or an error that names the
//! file, as are the findings of `verify`.
//!
//! The byte decides what no store can detect, never the outcome:
//!
//! ```text
//!   a frame of the log that nothing vouches for        it and what follows may be missing; what is before it is not
//!   a value, where frames are that nothing vouches     the same from the first of these frames on, whose values are
//!     for                                              read when the log is replayed
//!   the last edit of a manifest                        it may be missing, and nothing is compared
//! ```

use std::path::Path;

use folddb::maintenance::VerifyOptions;
use folddb::time::unix_ms;
use folddb::{Error, ErrorKind, Store};
use folddb_base::Seq;
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{FrameHead, decode_frame};
use folddb_layout::segment::SEGMENT_HEADER_BYTES;

use crate::compare::Outcome;
use crate::play::contents::contents;
use crate::play::player::{Player, said};
use crate::world::SimDisk;

/// Segments are mostly empty: only damage to their beginning matters.
const SEGMENT_SPAN_BYTES: u64 = 40_000;

/// What may be missing, without an error, where a byte has rotted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Missing {
    Nothing,
    /// All that was written after this seq.
    After(Seq),
    /// The changes of the last edit of the manifest.
    LastEdit,
}

impl Player {
    /// Flips bits of a byte of some file in another world.
    pub(super) fn rot(&self, disk: &SimDisk, file: u8, place: u16, bits: u8) -> Outcome {
        let disk = disk.after_death();
        let files = files_of(&disk, &self.dir);
        let Some((name, len_bytes)) = files.get(usize::from(file) % files.len().max(1)) else {
            return Ok(());
        };
        if name.ends_with(".part") {
            self.exchange(&disk)?;
        }
        let span = if name.ends_with(".log") { (*len_bytes).min(SEGMENT_SPAN_BYTES) } else { *len_bytes };
        let offset = (u64::from(place) * span) >> 16;
        let missing = missing(&disk, &self.dir, name, offset)?;
        if !disk.rot(&self.dir.join(name), offset, bits) {
            return Ok(());
        }
        let judged = self.read_rotten(&disk, name, missing);
        judged
            .map_err(|why| format!("byte {offset} of {name} has rotted ({missing:?} may be missing): {why}"))
    }

    fn read_rotten(&self, disk: &SimDisk, name: &str, missing: Missing) -> Outcome {
        let (reading, checking) = (self.in_world(disk.fork()), self.in_world(disk.fork()));
        let opened = Store::open(&self.dir, reading.options());
        let read = opened.and_then(|store| contents(&store).map(|contents| (store, contents)));
        let (store, contents) = match read {
            Ok(read) => read,
            Err(error) if !tells(&error, name, missing) => return Err(format!("that is told as {error:?}")),
            Err(error) => {
                let verified =
                    Store::verify(&self.dir, &VerifyOptions::default().deep(true), &checking.options());
                return match verified {
                    Ok(report) if report.is_clean() => Err(format!("{error:?}, and verify calls it whole")),
                    _ => Ok(()),
                };
            }
        };
        let mut known = self.known.clone();
        known.model.set_time(unix_ms(store.now()));
        match missing {
            Missing::Nothing => {}
            Missing::After(seq) => known.promises_up_to(seq),
            Missing::LastEdit => return Ok(()),
        }
        known.settle(&contents, u64::from(store.last_seq()))
    }
}

/// Whether an error says that this file has rotted. A rotten version number looks like a newer one;
/// and where the last edit of a manifest is missing, other files do not fit.
fn tells(error: &Error, name: &str, missing: Missing) -> bool {
    let is_named = error.to_string().contains(name);
    match error.kind() {
        ErrorKind::Corruption => is_named || missing == Missing::LastEdit,
        ErrorKind::NewerFormat => is_named || name == "FORMAT", // it is about the whole store
        _ => false,
    }
}

/// All files of a store that are not empty, also those in directories.
fn files_of(disk: &SimDisk, dir: &Path) -> Vec<(String, u64)> {
    let mut files = Vec::new();
    for (name, len_bytes) in disk.names(dir) {
        match FileName::parse(&name) {
            Some(FileName::ValueDirectory(_)) => {
                let within = disk.names(&dir.join(&name)).into_iter();
                files.extend(within.map(|(file, len_bytes)| (format!("{name}/{file}"), len_bytes)));
            }
            Some(_) => files.push((name, len_bytes)),
            None => {}
        }
    }
    files.retain(|(_, len_bytes)| *len_bytes > 0);
    files
}

/// What may be missing where this byte rots.
fn missing(disk: &SimDisk, dir: &Path, name: &str, offset: u64) -> Result<Missing, String> {
    let of = |name: &str| disk.bytes(&dir.join(name)).map_err(|error| error.to_string());
    let is_of_value_log = |name| matches!(name, Some(FileName::Values(_) | FileName::ValueFile(..)));
    match FileName::parse(name) {
        Some(FileName::Manifest(_)) => {
            let starts = edit_starts(&of(name)?);
            let is_last = starts.len() > 1 && starts.last().is_some_and(|last| *last <= offset as usize);
            Ok(if is_last { Missing::LastEdit } else { Missing::Nothing })
        }
        Some(FileName::Log(_)) => {
            let at = frames(&of(name)?).into_iter().find(|frame| frame.holds(offset as usize));
            let Some(rotten) = at else { return Ok(Missing::Nothing) };
            let vouched = vouched_lsn(disk, dir, Some(rotten.lsn))?;
            Ok(if rotten.lsn < vouched { Missing::Nothing } else { rotten.missing() })
        }
        file if is_of_value_log(file) => {
            let vouched = vouched_lsn(disk, dir, None)?;
            let first = all_frames(disk, dir)?.into_iter().find(|frame| frame.lsn >= vouched);
            Ok(first.map_or(Missing::Nothing, |frame| frame.missing()))
        }
        _ => Ok(Missing::Nothing),
    }
}

/// A frame of the log.
struct Frame {
    start: usize,
    end: usize,
    lsn: u64,
    head: FrameHead,
}

impl Frame {
    fn holds(&self, offset: usize) -> bool {
        (self.start..self.end).contains(&offset)
    }

    fn missing(&self) -> Missing {
        Missing::After(self.head.first_seq.saturating_sub(1))
    }
}

/// How far the log is durable according to the manifest and all frames but this one.
fn vouched_lsn(disk: &SimDisk, dir: &Path, but: Option<u64>) -> Result<u64, String> {
    let manifest = folddb_manifest::load(&disk.fork().host(), dir).map_err(said("load the manifest"))?;
    let frames = all_frames(disk, dir)?.into_iter().filter(|frame| Some(frame.lsn) != but);
    let by_frames = frames.map(|frame| frame.head.durable_lsn).max().unwrap_or(0);
    Ok(by_frames.max(manifest.state.durable_lsn))
}

/// The frames of all segments, in their order.
fn all_frames(disk: &SimDisk, dir: &Path) -> Result<Vec<Frame>, String> {
    let mut all = Vec::new();
    for (name, _) in disk.names(dir).into_iter().filter(|(name, _)| name.ends_with(".log")) {
        all.extend(frames(&disk.bytes(&dir.join(name)).map_err(|error| error.to_string())?));
    }
    all.sort_by_key(|frame| frame.lsn);
    Ok(all)
}

/// The whole frames of a segment, up to the first that is not.
fn frames(bytes: &[u8]) -> Vec<Frame> {
    let field = |at: usize| {
        let field = bytes.get(at..at + 8).and_then(|bytes| bytes.try_into().ok());
        field.map_or(0, u64::from_le_bytes)
    };
    let (salt, first_lsn) = (field(40), field(48));
    let (mut frames, mut start) = (Vec::new(), SEGMENT_HEADER_BYTES);
    loop {
        let lsn = first_lsn + (start - SEGMENT_HEADER_BYTES) as u64;
        let rest = bytes.get(start..).unwrap_or_default();
        let Ok(Some(frame)) = decode_frame(rest, salt, lsn) else { return frames };
        let end = start + frame.len_bytes;
        frames.push(Frame { start, end, lsn, head: frame.head });
        start = end;
    }
}

/// Where the edits of a manifest begin; each says its length.
fn edit_starts(bytes: &[u8]) -> Vec<usize> {
    let (mut starts, mut at) = (Vec::new(), 0);
    while let Some(len) =
        bytes.get(at + 8..at + 12).and_then(|len| len.try_into().ok()).map(u32::from_le_bytes)
        && len > 0
        && at + len as usize <= bytes.len()
    {
        starts.push(at);
        at += len as usize;
    }
    starts
}
