//! Checks whether a record fits its table, and a batch the store.

use std::panic::{AssertUnwindSafe, catch_unwind};

use folddb_base::{Error, Op, Record, Result, Rope, Seq, Stamp};
use folddb_journal::ReplayFrame;
use folddb_layout::frame::{self, LogOp};
use folddb_manifest::TableState;
use folddb_rules::table_rules::BoundRules;
use folddb_run::Depth;

use folddb_engine::values::at_rest::ValuesAtRest;

/// What is wrong with a record.
pub(crate) enum Wrong {
    /// The record itself does not fit the table.
    Record(String),
    /// The value that it points to cannot be read.
    Value(Error),
}

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong::Record(what)
    }
}

impl Wrong {
    fn into_words(self) -> String {
        match self {
            Wrong::Record(what) => what,
            Wrong::Value(error) => error.message().to_owned(),
        }
    }
}

/// Checks that a record fits the table: its key, its values, its seq.
pub(crate) fn check_record(
    rules: &BoundRules,
    record: &Record<'_>,
    seq_max: Seq,
    load: &dyn Fn(&Rope<'_>) -> folddb_base::Result<Option<Vec<u8>>>,
) -> Result<(), Wrong> {
    if record.seq > seq_max {
        let what = format!("its seq is {}, and the table is flushed only up to {seq_max}", record.seq);
        return Err(Wrong::Record(what));
    }
    rules
        .rules
        .key_codec()
        .check(record.key)
        .map_err(|cause| format!("it is not a key of the table: {cause}"))?;
    match record.op().map_err(|cause| cause.to_string())? {
        Op::Delete => Ok(()),
        Op::Set(payload) | Op::Insert(payload) | Op::Fold(payload) => {
            if rules.fold.has_stamps() {
                Stamp::split(payload)
                    .map_err(|_| "it has no stamp, and values of the table expire".to_owned())?;
            }
            Ok(check_value(rules, rules.fold.value_in(payload))?)
        }
        Op::InsertFold { absent, present } => {
            Ok(check_value(rules, absent).and_then(|()| check_value(rules, present))?)
        }
        Op::SetSeparated(rope) | Op::InsertSeparated(rope) | Op::FoldSeparated(rope) => {
            let rope = Rope::decode(rope).map_err(|cause| cause.to_string())?;
            match load(&rope).map_err(Wrong::Value)? {
                Some(value) => Ok(check_value(rules, &value)?),
                None => Ok(()), // too long to hold; its pieces are intact
            }
        }
    }
}

/// The checksum is right, so the disk is not at fault.
const WHOLE: &str = "its checksum is right, so a program wrote it so, and the disk did not damage it";

/// Whether the fold takes these bytes. If a user's fold panics, it does not.
pub(crate) fn check_value(rules: &BoundRules, value: &[u8]) -> Result<(), String> {
    let checked = catch_unwind(AssertUnwindSafe(|| rules.check_value(value)));
    match checked {
        Ok(Ok(())) => Ok(()),
        Ok(Err(cause)) => Err(format!("it is not a value of the table: {cause}; {WHOLE}")),
        Err(_) => Err(format!("the fold panics on its value; {WHOLE}")),
    }
}

/// Checks that the records of a batch belong to present or former tables.
pub(crate) fn check_frame(
    frame: &ReplayFrame<'_>,
    rules: &[(&TableState, BoundRules)],
    depth: Depth,
    values: &ValuesAtRest<'_>,
) -> Result<(), String> {
    let mut count = 0;
    for (seq, record) in (frame.first_seq..).zip(frame::records(frame.payload)) {
        let record = record.map_err(|cause| format!("a record of the batch: {cause}"))?;
        count += 1;
        // The survey reports tables that the manifest never had.
        let Some((table, rules)) = rules.iter().find(|(table, _)| table.id == record.table) else { continue };
        let in_table = |what: String| format!("seq {seq}, table `{}`: {what}", table.name);
        match record.op {
            LogOp::RangeDelete if rules.order.compare(record.key, record.payload).is_ge() => {
                return Err(in_table("a range delete ends before it begins".to_owned()));
            }
            LogOp::Op(kind) if depth == Depth::Records => {
                let record = Record { key: record.key, seq, kind, payload: record.payload };
                // A batch that was never promised may have lost its value: the log then ends there
                // at the next opening.
                let checks = frame.is_durable || !kind.is_separated();
                let load = |rope: &Rope<'_>| values.value((table.id, record.key), rope);
                if checks {
                    check_record(rules, &record, Seq::MAX, &load)
                        .map_err(|wrong| in_table(wrong.into_words()))?;
                }
            }
            _ => {}
        }
    }
    if count != frame.count {
        return Err(format!("the batch has {count} records and claims {}", frame.count));
    }
    Ok(())
}
