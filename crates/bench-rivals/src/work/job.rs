//! What is to be done with a store: the same for all rivals of a contest.

use crate::rival::Durability;

/// Ops for each object of leveled, where `--keys` does not say otherwise.
const OPS_PER_KEY: u64 = 4;

/// How often each object of more-than-ram is put, where `--keys` does not say otherwise.
const ROUNDS: u64 = 16;

/// How often a record of indexed is written, where `--keys` does not say otherwise.
const WRITES_PER_KEY: u64 = 2;

/// The workloads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Workload {
    /// Random pairs of numbers.
    Hugedb,
    /// Sums on keys that are hit by Zipf's law, with a concurrent reader.
    Osmos,
    /// Appends of 72 bytes to one key, then gets of it.
    AppendOne,
    /// Puts, then deletes of all of them, then seeks.
    Drain,
    /// Random pairs of numbers, then a cold opening.
    Open,
    /// Values of 100 bytes, every commit synced, by several threads.
    Commit,
    /// Documents that grow by small appends.
    Ydb,
    /// The same, where each update reads the document and puts the longer one.
    YdbRmw,
    /// Objects of 4 to 20 KiB, each replaced many times.
    MoreThanRam,
    /// Objects that are read five times as often as replaced, by several threads.
    Leveled,
    /// Blobs put once, then a cold opening and gets by several threads.
    Elliptics,
    /// Records with indexes, each written more than once: a program that reads the old one first,
    /// where the store has none.
    Indexed,
}

impl Workload {
    /// Its name on the command line and in results.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Workload::Hugedb => "hugedb",
            Workload::Osmos => "osmos",
            Workload::AppendOne => "append-one",
            Workload::Drain => "drain",
            Workload::Open => "open",
            Workload::Commit => "commit",
            Workload::Ydb => "ydb",
            Workload::YdbRmw => "ydb-rmw",
            Workload::MoreThanRam => "more-than-ram",
            Workload::Leveled => "leveled",
            Workload::Elliptics => "elliptics",
            Workload::Indexed => "indexed",
        }
    }
}

/// The length of values with which leveled was measured.
pub(crate) const VALUE_BYTES: u64 = 8 << 10;

/// What is to be done: the same for all rivals of a contest.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct Job {
    #[arg(long, value_enum)]
    pub(crate) workload: Workload,
    /// Rows, writes, appends or ops
    #[arg(long, default_value_t = 1_000_000)]
    pub(crate) rows: u64,
    /// Keys of osmos, ydb, more-than-ram, leveled [default: a fifth, tenth, 16th, fourth of the
    /// rows]
    #[arg(long)]
    pub(crate) keys: Option<u64>,
    /// Ops in a commit; 1 is the store's way for single writes
    #[arg(long, default_value_t = 1)]
    pub(crate) batch: u64,
    /// For write buffers and caches together
    #[arg(long, default_value_t = 64 << 20)]
    pub(crate) memory_bytes: u64,
    /// When a commit counts as done; `commit` always syncs
    #[arg(long, value_enum, default_value_t = Durability::Process)]
    pub(crate) durability: Durability,
    /// Writers of commit; threads of leveled; readers of elliptics
    #[arg(long, default_value_t = 1)]
    pub(crate) threads: u64,
    /// Bytes of a value of leveled
    #[arg(long, default_value_t = VALUE_BYTES)]
    pub(crate) value_bytes: u64,
    /// Each put of leveled asks for the head of its object first, as Riak does
    #[arg(long)]
    pub(crate) heads: bool,
    /// Indexes of indexed, 0 to 4
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u8).range(0..=4))]
    pub(crate) indexes: u8,
    /// Decides the data
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Reading while writing: rows a second of the writer [default: as many as it can]
    #[arg(long, value_name = "RATE")]
    pub(crate) beside_writes_per_s: Option<u64>,
    /// Reading while writing: gets a second of the reader [default: as many as it can]
    #[arg(long, value_name = "RATE")]
    pub(crate) beside_gets_per_s: Option<u64>,
    /// Also has the store make its reads as fast as they can be, and reads again
    #[arg(long)]
    pub(crate) optimize: bool,
}

impl Job {
    /// The name of its results: the settings that differ from one contest to another.
    pub(crate) fn name(&self) -> String {
        let mut name = format!("{}-batch-{}-rows-{}", self.workload.name(), self.batch, self.rows);
        if self.threads > 1 {
            name += &format!("-threads-{}", self.threads);
        }
        if self.workload == Workload::Leveled {
            name += &format!("-value-{}{}", self.value_bytes, if self.heads { "-heads" } else { "" });
        }
        if self.workload == Workload::Indexed {
            name += &format!("-indexes-{}", self.indexes);
        }
        if let Some(rate) = self.beside_writes_per_s {
            name += &format!("-writes-{rate}");
        }
        if let Some(rate) = self.beside_gets_per_s {
            name += &format!("-gets-{rate}");
        }
        if self.durability != Durability::Process {
            name += &format!("-{}", self.durability.name());
        }
        name
    }

    /// The number of keys, for workloads with fewer keys than rows.
    pub(crate) fn key_count(&self) -> u64 {
        let rows_per_key = match self.workload {
            Workload::Ydb | Workload::YdbRmw => 10,
            Workload::MoreThanRam => ROUNDS,
            Workload::Leveled => OPS_PER_KEY,
            Workload::Indexed => WRITES_PER_KEY,
            _ => 5,
        };
        self.keys.unwrap_or(self.rows / rows_per_key).max(1)
    }
}
