//! FoldDB: an embedded store for data that is written far more often than it is read.
//!
//! **The value of a key is the fold of everything ever written to it.** A write never looks for the
//! key first, it appends; reads and background merges fold what was appended, with a function that
//! you choose for the table.
//!
//! ```
//! use folddb::{Durability, Options, Rules, Store, folds::Stats};
//!
//! # fn main() -> folddb::Result<()> {
//! # let dir = tempfile::tempdir().unwrap();
//! # let path = dir.path().join("flights.folddb");
//! // A store is a directory. Only `create` makes one.
//! let store = Store::create(&path, Options::default())?;
//!
//! // The type of the values decides how a table folds: here, statistics of delays.
//! let delays = store.table("delays", Rules::sorted::<(String, String), Stats>())?;
//! delays.fold(&("UA", "EWR"), &12.5)?; // blind: reads nothing
//! delays.fold(&("UA", "EWR"), &-3.0)?;
//! delays.fold(&("DL", "JFK"), &Stats::of(7.0))?;
//!
//! let one: Option<Stats> = delays.get(&("UA", "EWR"))?;
//! assert_eq!(one.map(|stats| stats.mean()), Some(4.75));
//!
//! // A batch is atomic, over any tables of the store.
//! let names = store.table("names", Rules::sorted::<String, String>())?;
//! let mut batch = store.batch();
//! batch.fold(&delays, &("UA", "LGA"), &Stats::of(1.0)).put(&names, "UA", "United");
//! batch.commit(Durability::Sync)?;
//!
//! // A snapshot sees the store as it was.
//! let past = store.snapshot();
//! delays.delete(&("UA", "EWR"))?;
//! for row in past.table(&delays).scan().prefix(&("UA",)).reverse() {
//!     let ((carrier, origin), stats) = row?;
//!     println!("{carrier} {origin} {}", stats.mean());
//! }
//! # assert_eq!(past.scan(&delays).prefix(&("UA",)).count()?, 2);
//! # assert_eq!(delays.scan().prefix(&("UA",)).count()?, 1);
//! # Ok(())
//! # }
//! ```
//!
//! # The four ops
//!
//! | op | on an absent key | on a present value x |
//! |---|---|---|
//! | `put v` | v | v |
//! | `put_if_absent v` | v | x: the first wins |
//! | `fold m` | m | x·m |
//! | `delete` | absent | absent |
//!
//! A [`Table`], a [`Batch`] and a [`Transaction`] have them all, with `delete_range` and
//! `delete_prefix`. Reads are the same on a table as it is now, at a snapshot, and in a
//! transaction: see [`Reader`].
//!
//! In a sorted table none of the ops reads; a hashed one ([`Rules::hashed`]) looks the key up. The
//! table's rules define `·`: see [`folds`] for the built-in folds, and [`Fold`] for your own.
//!
//! # Types of values
//! | values | the table folds by |
//! |---|---|
//! | numbers, `bool`, `String`, `Vec<u8>`, `Option`, tuples of these, [`Json`] | `replace`; or what [`Rules::fold`] says |
//! | [`folds::Stats`], [`folds::Hll`], [`folds::ByteSet`] and others of [`folds`] | the fold of that name |
//! | [`folds::Sum`], `Min`, `Max`, `First` of a number or a text | what their name says |
//! | tuples with such values, and structs with `#[derive(Record)]` | each field by its own fold |
//! | [`Updated`] | a function of yours, of an item and an [`Update`] of another type |
//!
//! A table whose fold takes other values is refused when it is opened, so that a typed write never
//! produces something unreadable.
//!
//! # Features
//! | feature | by default | what it adds |
//! |---|---|---|
//! | `derive` | on | `#[derive(Record)]` |
//! | `json` | on | values of types that serde knows ([`Json`]), and `serde_json::Value` |
//! | `bitmap` | on | the fold `bitmap`, and its type |
//! | `lz4` | on | tables whose blocks are compressed ([`Rules::lz4`]) |
//! | `zstd` | off | tables whose blocks are compressed by zstd ([`Rules::bottom_compression`]); it is written in C |
//! | `testing` | off | `Options::host`: a simulated world |
//!
//! A table that needs a disabled feature is refused, by name. JSON as text, the folds of JSON and
//! indexes on its contents need no feature.
//!
//! # Durability
//! Each commit chooses its [`Durability`]; by default it survives the death of the process, and
//! with [`Durability::Sync`] a power cut. After a failed write the store is *poisoned*: reads
//! continue, and writes are refused until it is opened again. A full disk is not poison: writes are
//! refused until there is space.
//!
//! The library prints nothing, reads no environment variable, and starts only the threads that
//! [`BackgroundWork`] names, and those requested from [`BytesScan::fold_rows`], which end with the
//! call.

#![forbid(unsafe_code)]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod reexports;
mod options;
mod uncommitted;
mod rules;
mod scan;
mod table;
mod snapshot;
mod index;
mod aggregate;
mod reader;
mod batch;
mod transaction;
mod store;
mod bulk_load;
mod feed;
pub mod maintenance;

pub use aggregate::digest::{DIGEST_VERSION, Digest};
pub use aggregate::range::{Aggregate, AggregateCost};
pub use batch::Batch;
pub use bulk_load::{BulkLoad, BytesBulkLoad};
pub use feed::{
    Feed, FeedBatch, FeedChange, FeedEvent, FeedOp, FeedOptions, FeedPosition, FeedRow, FeedTable,
    SecondaryFeed,
};
pub use folddb_engine::background::merge_job::CompactProgress;
pub use folddb_engine::background::reclaim_report::ReclaimReport;
pub use folddb_engine::background::scheduler::BackgroundJob;
pub use folddb_engine::events::{
    Event, FlushEvent, MergeEvent, MissedEvents, PoisonEvent, ReclaimEvent, StallCause, StallEvent,
};
pub use folddb_engine::options::{BackgroundWork, Durability};
pub use folddb_engine::read::estimate::RangeEstimate;
pub use folddb_engine::read::history::HistoryEntry;
pub use folddb_engine::read::locate::{FilePiece, Locate, Located, LocatedPiece};
pub use folddb_engine::seq::Seq;
pub use folddb_engine::state::clock::AsOf;
pub use folddb_engine::state::feed_state::FeedStats;
pub use folddb_engine::state::latency::LatencyHistogram;
pub use folddb_engine::values::head::Head;
pub use folddb_engine::write::encoded_batch::WriteOp;
pub use folddb_engine::write::ops::Lifetime;
pub use folddb_engine::write::stream::{ValueReader, ValueWriter};
pub use index::build::{IndexInfo, IndexProgress};
pub use index::find::BytesFind;
pub use index::hits::{Hit, Hits};
pub use index::typed_find::{Find, FoundRows};
pub use options::shared::Shared;
pub use options::{Options, Tuning};
pub use reader::table_at::{BytesTableAt, TableAt};
pub use reader::{AnyTable, Reader};
pub use reexports::{codec, datum, law, limits, order, table_rules, text, time};
pub use rules::Rules;
pub use rules::dynamic::DynamicRules;
pub use scan::bytes::{BytesRows, BytesScan, Heads, LentRows};
pub use scan::cursor::{Cursor, Resume};
pub use scan::typed::{Scan, TypedRows};
pub use snapshot::Snapshot;
pub use store::Store;
pub use store::metric_families::{MetricFamily, MetricSample, MetricValue, Metrics};
pub use store::metrics::{
    BackgroundStats, DiskStats, MemoryStats, Metric, MetricKind, ReadStats, SnapshotStats, StoreStats,
    WriteStats,
};
pub use store::reclaim_step::ReclaimStep;
pub use store::stats::ValueSegment;
pub use store::sync_handle::SyncHandle;
pub use store::value_times::ValueTimes;
pub use table::bytes::BytesTable;
pub use table::explain::{Explained, Place};
pub use table::record_op::{RecordOp, RecordValue};
pub use table::stats::{PartInfo, RunInfo, TableStats};
pub use table::typed::Table;
pub use transaction::Transaction;

pub use folddb_base::ids::RunId;
pub use folddb_base::{Damage, Error, ErrorKind, FileNumber, Result};
pub use folddb_rules::head::HeadRule;
pub use folddb_rules::value_placement::ValuePlacement;
pub use folddb_rules::{
    Datum, Expire, Fold, FoldFailure, IndexRule, Keep, Outcome, ParseError, TermRule, Terms, Update, Updated,
    folds,
};

/// A struct whose fields fold on their own is a value of a table.
///
/// ```
/// use folddb::folds::{Hll, Stats};
/// use folddb::{Options, Record, Rules, Store};
///
/// #[derive(Record, Debug, PartialEq)]
/// struct Route {
///     #[fold(sum)]
///     flights: u64,       // also min, max, first
///     delay: Stats,       // its type has a fold
///     tails: Option<Hll>, // may be absent
/// }
///
/// # fn main() -> folddb::Result<()> {
/// # let dir = tempfile::tempdir().unwrap();
/// # let store = Store::create(dir.path().join("flights.folddb"), Options::default())?;
/// let routes = store.table("routes", Rules::sorted::<String, Route>())?;
/// routes.fold("UA", &Route { flights: 1, delay: Stats::of(12.5), tails: Some(Hll::of("N14228")) })?;
/// routes.fold("UA", &Route { flights: 1, delay: Stats::default(), tails: None })?;
/// let route = routes.get("UA")?.unwrap();
/// assert_eq!((route.flights, route.delay.count(), route.tails.unwrap().estimate()), (2, 1, 1));
/// assert_eq!(
///     Rules::sorted::<String, Route>().as_table_rules().fold.spec(),
///     "{flights: sum:u64, delay: stats:f64, tails: hll:12}",
/// );
/// # Ok(())
/// # }
/// ```
///
/// A field whose type the fold does not take does not compile:
///
/// ```compile_fail
/// #[derive(folddb::Record)]
/// struct Route {
///     #[fold(sum)]
///     carrier: String,
/// }
/// ```
#[cfg(feature = "derive")]
pub use folddb_derive::Record;
#[cfg(feature = "json")]
pub use folddb_rules::codec::Json;

#[cfg(test)]
mod tests;
