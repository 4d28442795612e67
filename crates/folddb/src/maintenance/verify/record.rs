//! Checks whether a record fits its table, and a batch the store.

use std::panic::{AssertUnwindSafe, catch_unwind};

use folddb_base::{Error, Op, Record, Result, Rope, Seq, Stamp, counted};
use folddb_journal::ReplayFrame;
use folddb_layout::frame::{self, LogOp};
use folddb_manifest::TableState;
use folddb_rules::table_rules::BoundRules;
use folddb_run::Depth;

use crate::maintenance::unfit::Unfit;
use folddb_engine::values::at_rest::ValuesAtRest;

/// What is wrong with a record.
pub(crate) enum Wrong {
    /// The record itself does not fit the table.
    Record(String),
    /// The value that it points to cannot be read.
    Value(Error),
    /// It is whole, and the table does not take its value.
    Unfit(String),
}

impl From<String> for Wrong {
    fn from(what: String) -> Wrong {
        Wrong::Record(what)
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
            check_value(rules, rules.fold.value_in(payload)).map_err(Wrong::Unfit)
        }
        Op::InsertFold { absent, present } => {
            check_value(rules, absent).and_then(|()| check_value(rules, present)).map_err(Wrong::Unfit)
        }
        Op::SetSeparated(rope) | Op::InsertSeparated(rope) | Op::FoldSeparated(rope) => {
            let rope = Rope::decode(rope).map_err(|cause| cause.to_string())?;
            match load(&rope).map_err(Wrong::Value)? {
                Some(value) => check_value(rules, &value).map_err(Wrong::Unfit),
                None => Ok(()), // too long to hold; its pieces are intact
            }
        }
    }
}

/// Whether the fold takes these bytes. Their checksum is right: if it does not, a program wrote
/// them so. If a user's fold panics, it does not.
pub(crate) fn check_value(rules: &BoundRules, value: &[u8]) -> Result<(), String> {
    let checked = catch_unwind(AssertUnwindSafe(|| rules.check_value(value)));
    match checked {
        Ok(Ok(())) => Ok(()),
        Ok(Err(cause)) => Err(cause.to_string()),
        Err(_) => Err("the fold panics on it".to_owned()),
    }
}

/// Checks that the records of a batch belong to present or former tables. Values that their tables
/// do not take are no fault of the batch, and are added to `unfit`.
pub(crate) fn check_frame(
    frame: &ReplayFrame<'_>,
    rules: &[(&TableState, BoundRules)],
    depth: Depth,
    values: &ValuesAtRest<'_>,
    unfit: &mut Unfit,
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
                let checked = if checks { check_record(rules, &record, Seq::MAX, &load) } else { Ok(()) };
                match checked {
                    Ok(()) => {}
                    Err(Wrong::Record(what)) => return Err(in_table(what)),
                    Err(Wrong::Value(error)) => return Err(in_table(error.message().to_owned())),
                    Err(Wrong::Unfit(why)) => {
                        let key = rules.rules.key_codec().show_line(record.key);
                        let why = format!("at seq {seq}, {why}");
                        unfit.add("the log", None, (&table.name, key), why);
                    }
                }
            }
            _ => {}
        }
    }
    if count != frame.count {
        return Err(format!("the batch has {} and claims {}", counted(count.into(), "record"), frame.count));
    }
    Ok(())
}
