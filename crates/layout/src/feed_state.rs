//! What the manifest keeps of change feeds: the position of each, and what has happened to tables
//! that feeds will report.
//!
//! Fields of the changes `SetFeed` and `NoteTable` of `manifest_edit.rs`, in the order in which
//! they are listed here: varints, text and slices as there.

use folddb_base::bytes::{Malformed, Reader, put_slice, put_varint};
use folddb_base::{FileNumber, Lsn, Seq, TableId};

/// Why a feed is lost until it starts again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LossCause {
    /// It would have held more than its budget.
    Budget,
    /// It held space while the store had none.
    Space,
    /// What it held is missing.
    Gone,
}

/// The progress of a feed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FeedPhase {
    /// Its rows have not all been acknowledged.
    Rows,
    /// It gives changes.
    Changes,
    /// It has lost its place.
    Lost(LossCause),
}

impl FeedPhase {
    fn code(self) -> u64 {
        match self {
            FeedPhase::Rows => 0,
            FeedPhase::Changes => 1,
            FeedPhase::Lost(LossCause::Budget) => 2,
            FeedPhase::Lost(LossCause::Space) => 3,
            FeedPhase::Lost(LossCause::Gone) => 4,
        }
    }

    fn from_code(code: u64) -> Result<FeedPhase, Malformed> {
        Ok(match code {
            0 => FeedPhase::Rows,
            1 => FeedPhase::Changes,
            2 => FeedPhase::Lost(LossCause::Budget),
            3 => FeedPhase::Lost(LossCause::Space),
            4 => FeedPhase::Lost(LossCause::Gone),
            _ => return Err(Malformed::Tag),
        })
    }
}

/// A feed, as the manifest knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FeedState {
    /// Its name.
    pub name: String,
    /// The table whose changes it gives; all tables if empty.
    pub table: String,
    /// It gives changes of keys with this prefix.
    pub prefix: Vec<u8>,
    /// It may hold this many bytes.
    pub bytes_max: u64,
    /// Its progress.
    pub phase: FeedPhase,
    /// Everything up to this seq is acknowledged; the rows of a feed that gives rows are as of this
    /// seq.
    pub seq: Seq,
    /// The log from here on has what follows.
    pub lsn: Lsn,
    /// Notes up to this one are acknowledged.
    pub note: u64,
    /// Nothing that it will give points to a value segment with a lower number.
    pub values_from: FileNumber,
}

/// The prefix of the names of feeds that are the archived logs of tables.
pub const ARCHIVE_PREFIX: &str = "log:";

impl FeedState {
    /// True for the archived log of a table, which is not read as a feed, and is never lost.
    pub fn is_archive(&self) -> bool {
        self.name.starts_with(ARCHIVE_PREFIX)
    }

    /// True while it retains what it has not given.
    pub fn holds(&self) -> bool {
        !matches!(self.phase, FeedPhase::Lost(_))
    }

    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        put_slice(out, self.name.as_bytes());
        put_slice(out, self.table.as_bytes());
        put_slice(out, &self.prefix);
        let numbers = [self.bytes_max, self.phase.code(), self.seq, self.lsn, self.note, self.values_from.0];
        numbers.iter().for_each(|&number| put_varint(out, number));
    }

    pub(crate) fn read(fields: &mut Reader<'_>) -> Result<FeedState, Malformed> {
        Ok(FeedState {
            name: fields.text()?.to_owned(),
            table: fields.text()?.to_owned(),
            prefix: fields.slice()?.to_vec(),
            bytes_max: fields.varint()?,
            phase: FeedPhase::from_code(fields.varint()?)?,
            seq: fields.varint()?,
            lsn: fields.varint()?,
            note: fields.varint()?,
            values_from: FileNumber(fields.varint()?),
        })
    }
}

/// The event that a table was created or dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableNote {
    /// Its number; numbers ascend.
    pub note: u64,
    /// All records up to this seq came before.
    pub seq: Seq,
    /// The table.
    pub table: TableId,
    /// Its name.
    pub name: String,
    /// Its rules, as text.
    pub rules_text: String,
    /// Dropped if true, otherwise created.
    pub is_dropped: bool,
}

impl TableNote {
    pub(crate) fn put(&self, out: &mut Vec<u8>) {
        [self.note, self.seq, u64::from(self.table.0)].iter().for_each(|&number| put_varint(out, number));
        put_slice(out, self.name.as_bytes());
        put_slice(out, self.rules_text.as_bytes());
        out.push(u8::from(self.is_dropped));
    }

    pub(crate) fn read(fields: &mut Reader<'_>) -> Result<TableNote, Malformed> {
        Ok(TableNote {
            note: fields.varint()?,
            seq: fields.varint()?,
            table: u32::try_from(fields.varint()?).map(TableId).map_err(|_| Malformed::Bounds)?,
            name: fields.text()?.to_owned(),
            rules_text: fields.text()?.to_owned(),
            is_dropped: match fields.u8()? {
                0 => false,
                1 => true,
                _ => return Err(Malformed::Tag),
            },
        })
    }
}
