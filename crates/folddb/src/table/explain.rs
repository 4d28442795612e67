//! Where the records of a key are, and why each still exists.

use std::time::SystemTime;

use folddb_base::checksum::key_hash;
use folddb_base::ids::RunId;
use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::stamp::NEVER;
use folddb_base::{FileNumber, OpKind, Result, Seq as RawSeq, Stamp};
use folddb_merge::Times as MergeTimes;
use folddb_rules::Keep;
use folddb_rules::time::moment;

use crate::table::bytes::BytesTable;
use crate::table::record_op::RecordOp;
use folddb_engine::read::hashed;
use folddb_engine::read::hashed::As;
use folddb_engine::seq::Seq;
use folddb_engine::state::clock;
use folddb_engine::state::hash_index::Hashed;
use folddb_engine::values::hashed_record::Reading;

/// One record of a key, and where it is.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Explained {
    /// Where: a part of a memtable, or run and file.
    pub place: Place,
    /// Its seq. If its run does not store seqs, the newest of its part; 0 in a hashed table.
    pub seq: Seq,
    /// What it does.
    pub op: RecordOp,
    /// When it was written, as far as its table keeps that.
    pub written: Option<SystemTime>,
    /// The deadline of its value; none if it lasts forever.
    pub deadline: Option<SystemTime>,
    /// Why it still exists.
    pub why: String,
}

/// Where a record is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Place {
    /// In the active memtable: the tail or a chunk.
    Memtable(String),
    /// In a memtable that waits for its flush.
    Sealed(String),
    /// In the value log, through the index of a hashed table.
    Values {
        /// The segment.
        segment: u32,
        /// Where its record begins, in bytes.
        offset: u64,
    },
    /// In a run.
    Run {
        /// The run.
        run: RunId,
        /// Its tier.
        tier: u8,
        /// The file.
        file: FileNumber,
    },
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Place::Memtable(part) => write!(f, "memtable, {part}"),
            Place::Sealed(part) => write!(f, "sealed memtable, {part}"),
            Place::Values { segment, offset } => write!(f, "value segment {segment}, offset {offset}"),
            Place::Run { run, tier, file } => write!(f, "tier {tier}, run {run}, file {file}"),
        }
    }
}

impl BytesTable {
    /// Every record of `key`, newest first: where it is and why it still exists.
    ///
    /// # Errors
    /// Damage, or a failed read.
    pub fn explain(&self, key: &[u8]) -> Result<Vec<Explained>> {
        if let Some(hashed) = &self.core.hashed {
            return self.explain_hashed(hashed, key);
        }
        let mut found = Vec::new();
        let view = self.core.view();
        self.engine().check_readable(&self.core)?;
        view.active
            .explain(key, |at, record| found.push(self.explained(Place::Memtable(at.to_string()), &record)));
        for sealed in &view.sealed {
            sealed.memtable.explain(key, |at, record| {
                found.push(self.explained(Place::Sealed(at.to_string()), &record))
            });
        }
        let hash = key_hash(key);
        let order = &self.core.rules.order;
        for run in view.runs.iter() {
            for part in &run.parts {
                if order.compare(key, &part.low).is_lt() || order.compare(key, &part.high).is_gt() {
                    continue;
                }
                let place = Place::Run { run: run.id, tier: run.tier, file: part.file.number };
                let _all = part.file.part.get(key, hash, RawSeq::MAX, &mut |record| {
                    found.push(self.explained(place.clone(), &record));
                    Ok(std::ops::ControlFlow::Continue(()))
                })?;
            }
        }
        found.sort_by_key(|record| std::cmp::Reverse(record.seq));
        let ranges = view.range_deletes.all_over(order, key);
        let kept = Kept {
            boundaries: self.engine().boundaries.all(),
            times: clock::times_to_keep(self.engine(), &self.core),
            keep: self.core.keep(),
            ranges,
        };
        for index in 0..found.len() {
            found[index].why = kept.why(&found, index);
        }
        Ok(found)
    }
}

impl BytesTable {
    /// A record without the reason. Its times are those of its stamp; if it has none, that of its
    /// seq.
    fn explained(&self, place: Place, record: &folddb_base::Record<'_>) -> Explained {
        let has_stamps = self.core.rules.fold.has_stamps();
        let stamp = if has_stamps { Stamp::of(record.kind, record.payload).ok().flatten() } else { None };
        let noted_ms = || if self.core.is_timed { clock::time_of(self.engine(), record.seq) } else { None };
        Explained {
            place,
            seq: record.seq.into(),
            op: RecordOp::stored(record.kind, record.payload, &self.core.rules.fold),
            written: stamp.map(|stamp| stamp.write_ms).or_else(noted_ms).map(moment),
            deadline: stamp.map(|stamp| stamp.deadline_ms).filter(|&ms| ms < NEVER).map(moment),
            why: String::new(),
        }
    }

    /// The newest record of a key of a hashed table; older versions are its history.
    fn explain_hashed(&self, hashed: &Hashed, key: &[u8]) -> Result<Vec<Explained>> {
        let (engine, core) = (self.engine(), &*self.core);
        let mut record = Vec::new();
        let found = hashed::look_up(engine, (core, hashed), key, As::Reader, Reading::Short, &mut record)?;
        let of = engine.values.files.present();
        let explained = |found: folddb_engine::values::hashed_record::Found| {
            Explained {
            place: Place::Values {
                segment: of.number_of(found.slot.segment()).unwrap_or(found.slot.segment()),
                offset: u64::from(found.slot.unit()) * VALUE_ALIGN,
            },
            seq: Seq::default(),
            op: RecordOp::plain(OpKind::Set, found.value(&record)),
            written: found.front.map(|front| moment(front.stamp.write_ms)),
            deadline: found.deadline_ms().map(moment),
            why:
                "it is the value of the key: a hashed table resolves each op when it is written, and keeps no seq"
                    .to_owned(),
        }
        };
        Ok(found.map(explained).into_iter().collect())
    }
}

/// What prevents the records of a key from being folded.
struct Kept {
    /// The seqs of the live snapshots, ascending.
    boundaries: Vec<RawSeq>,
    /// What merges keep of the past, and the rule that says so.
    times: MergeTimes,
    keep: Keep,
    /// The seqs of the range deletes over the key.
    ranges: Vec<RawSeq>,
}

impl Kept {
    /// Why a record has not been folded into its neighbor yet.
    pub(crate) fn why(&self, records: &[Explained], index: usize) -> String {
        let Some(newer) = index.checked_sub(1).map(|newer| &records[newer]) else {
            return "it is the newest".to_owned();
        };
        let record = &records[index];
        let (seq, newer_seq) = (RawSeq::from(record.seq), RawSeq::from(newer.seq));
        let boundary = self.boundaries.iter().find(|&&boundary| seq <= boundary && boundary < newer_seq);
        match boundary {
            _ if self.is_kept_as_it_is(newer_seq, index) => {
                let keep = self.keep;
                format!(
                    "the table keeps its history (keep={keep}), so no merge folds it into the next newer one"
                )
            }
            Some(boundary) => format!("a snapshot at {boundary} sees it without the newer ones"),
            None if newer.place == record.place => "it does not compose with the next newer one".to_owned(),
            None => "no merge has seen it together with the newer ones yet".to_owned(),
        }
    }

    /// Whether merges keep the record of this seq, if this many records of its key are as new or
    /// newer.
    fn is_kept_as_it_is(&self, seq: RawSeq, records: usize) -> bool {
        let events = records + self.ranges.iter().filter(|&&range| range > seq).count();
        events < self.times.newest as usize || seq > self.times.since
    }
}
