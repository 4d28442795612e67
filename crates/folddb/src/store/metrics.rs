//! The figures of a store, in groups. One macro makes of each both the field of a struct and the
//! metric under its stable name, so that the two cannot disagree.

use folddb_engine::seq::Seq;

/// Makes a struct of each group, and the list of all figures.
macro_rules! groups {
    ($(
        $(#[doc = $about:literal])+
        $group:ident: $Group:ident {
            $($(#[doc = $help:literal])+ $kind:ident $name:ident: $type:ty,)+
        }
    )+) => {
        $(
            $(#[doc = $about])+
            #[derive(Clone, Copy, Debug, Default, PartialEq)]
            #[non_exhaustive]
            pub struct $Group {
                $($(#[doc = $help])+ pub $name: $type,)+
            }
        )+

        /// Figures of a store. Counters begin at the opening.
        #[derive(Clone, Debug, Default, PartialEq)]
        #[non_exhaustive]
        pub struct StoreStats {
            $($(#[doc = $about])+ pub $group: $Group,)+
            /// The last seq that readers see: records ever written.
            pub last_seq: Seq,
            /// Damage that merges have met, what sweeps and saves indexes, and what moves values:
            /// the tables and files that they leave alone since, and why.
            pub damage: Vec<String>,
            /// Why writes are refused for lack of space, if they are.
            pub short_of_space: Option<String>,
            /// The failure that has poisoned the store, if one has.
            pub poisoned_by: Option<String>,
            /// Whether the store is frozen, so that it is opened for reading only.
            pub is_frozen: bool,
        }

        impl StoreStats {
            /// The figures of all groups. Their names stay what they are from version to version.
            ///
            /// ```
            /// # use folddb::{Options, Rules, Store};
            /// # let dir = tempfile::tempdir().unwrap();
            /// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
            /// // A page of metrics, as Prometheus reads it.
            /// let mut page = String::new();
            /// for metric in store.stats().metrics() {
            ///     let (name, kind) = (metric.full_name(), metric.kind.name());
            ///     page += &format!("# HELP {name} {}\n# TYPE {name} {kind}\n{name} {}\n", metric.help, metric.value);
            /// }
            /// assert!(page.contains("folddb_writes_commits_total 0\n"));
            /// # Ok::<(), folddb::Error>(())
            /// ```
            pub fn metrics(&self) -> Vec<Metric> {
                let all = [$($(
                    Metric::of(
                        (stringify!($group), stringify!($name)),
                        concat!($($help),+),
                        MetricKind::$kind,
                        self.$group.$name,
                    ),
                )+)+];
                all.into_iter().flatten().collect()
            }
        }
    };
}

groups! {
    /// What was written.
    writes: WriteStats {
        /// Batches committed.
        Counter commits: u64,
        /// Records written.
        Counter records: u64,
        /// Bytes of the records as written by users, with a few bytes of framing each.
        Counter user_bytes: u64,
        /// Bytes appended to the log.
        Counter log_bytes: u64,
        /// Bytes written to the value log.
        Counter value_bytes: u64,
        /// Microseconds that writers were delayed by back pressure.
        Counter delay_us: u64,
        /// Times a writer waited because memory was full.
        Counter stalls: u64,
    }

    /// What was read.
    reads: ReadStats {
        /// Gets answered.
        Counter gets: u64,
        /// The most records that one get has visited.
        Gauge operands_visited_max: u64,
        /// Times a fold failed on a key, in reads, flushes and merges.
        Counter fold_failures: u64,
        /// Blocks and other pieces read from files.
        Counter pieces: u64,
        /// Bytes read from files for gets and scans.
        Counter bytes: u64,
        /// Values read from the value log. Keys, heads and what only counts them read none.
        Counter values: u64,
        /// Records of hashed tables of which only the front was read: by heads, by scans of keys,
        /// and by writes that looked for what they replace.
        Counter value_heads: u64,
        /// Pieces of indexes of hashed tables that were read from their checkpoints.
        Counter index_loads: u64,
        /// Entries of secondary indexes that finds have met.
        Counter index_entries: u64,
        /// As many of those were stale: their records have other terms by now.
        Counter index_entries_stale: u64,
    }

    /// What is in memory.
    memory: MemoryStats {
        /// Bytes in memtables, sealed ones included.
        Gauge memtable_bytes: u64,
        /// Bytes of blocks in the cache.
        Gauge cache_bytes: u64,
        /// Memory of the indexes of hashed tables, in bytes.
        Gauge index_bytes: u64,
        /// As much of that as the system has promised not to swap out.
        Gauge index_locked_bytes: u64,
    }

    /// What is on the disk.
    disk: DiskStats {
        /// Bytes of part files and segments.
        Gauge bytes: u64,
        /// Segments of the log.
        Gauge log_segments: u64,
        /// Files of the value log.
        Gauge value_segments: u64,
        /// Bytes in them: of those that are full, what they hold, of the others their length.
        Gauge value_bytes: u64,
        /// As much of that as runs point to, and indexes of hashed tables, of these about: what
        /// memtables point to is not counted yet.
        Gauge value_live_bytes: u64,
        /// Bytes of files, of runs and of values, that only old snapshots keep.
        Gauge snapshot_file_bytes: u64,
    }

    /// What the store did in the background.
    background: BackgroundStats {
        /// Memtables flushed.
        Counter flushes: u64,
        /// Merges finished.
        Counter merges: u64,
        /// Records that merges took in.
        Counter records_merged: u64,
        /// Bytes of part files written by flushes and merges.
        Counter part_bytes: u64,
        /// Indexes of hashed tables saved.
        Counter indexes_saved: u64,
        /// Bytes of the checkpoints that were written for that.
        Counter index_bytes: u64,
        /// Times that live values were copied together.
        Counter reclaims: u64,
        /// Bytes written for that.
        Counter value_bytes_copied: u64,
        /// Bytes of value files that were given back, less what was written for it.
        Counter value_bytes_given_back: u64,
        /// Segments of the value log that were given back, since nothing pointed to them any more.
        Counter value_segments_reclaimed: u64,
        /// Records whose values had expired and that flushes and merges have swept away.
        Counter records_expired: u64,
        /// Stale entries of secondary indexes that merges have left out.
        Counter index_entries_cleaned: u64,
        /// Work that is owed now, in seconds of it. Writers are slowed from half a second on,
        /// smoothly.
        Gauge debt_s: f64,
        /// Times that work failed and was tried again.
        Counter retries: u64,
        /// Times that a feed has lost its place.
        Counter feeds_lost: u64,
    }

    /// The snapshots that are held.
    snapshots: SnapshotStats {
        /// Live snapshots.
        Gauge live: u64,
        /// As many of them as read pinned files.
        Gauge in_files: u64,
        /// Seconds since the oldest live snapshot was taken.
        Gauge oldest_s: Option<f64>,
    }
}

/// One figure of a store, for a page of metrics.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Metric {
    /// Its group: `writes`.
    pub group: &'static str,
    /// Its name in the group: `commits`.
    pub name: &'static str,
    /// What it says, in a sentence or two.
    pub help: &'static str,
    /// Whether it only grows.
    pub kind: MetricKind,
    /// The figure.
    pub value: f64,
}

/// What a metric is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MetricKind {
    /// It counts what has happened since the store was opened.
    Counter,
    /// It says what is now.
    Gauge,
    /// It counts how long operations took.
    Histogram,
}

impl MetricKind {
    /// As metrics pages call it: `counter`, `gauge`, `histogram`.
    pub fn name(self) -> &'static str {
        match self {
            MetricKind::Counter => "counter",
            MetricKind::Gauge => "gauge",
            MetricKind::Histogram => "histogram",
        }
    }
}

impl Metric {
    /// None where there is no figure: of an oldest snapshot, where there is no snapshot.
    fn of(
        (group, name): (&'static str, &'static str),
        help: &'static str,
        kind: MetricKind,
        figure: impl Figure,
    ) -> Option<Metric> {
        Some(Metric { group, name, help: help.trim(), kind, value: figure.figure()? })
    }

    /// As metrics pages name it: `folddb_writes_commits_total`.
    pub fn full_name(&self) -> String {
        let total = if self.kind == MetricKind::Counter { "_total" } else { "" };
        format!("folddb_{}_{}{total}", self.group, self.name)
    }
}

/// What a figure may be.
trait Figure {
    fn figure(self) -> Option<f64>;
}

impl Figure for u64 {
    fn figure(self) -> Option<f64> {
        Some(self as f64)
    }
}

impl Figure for f64 {
    fn figure(self) -> Option<f64> {
        Some(self)
    }
}

impl Figure for Option<f64> {
    fn figure(self) -> Option<f64> {
        self
    }
}
