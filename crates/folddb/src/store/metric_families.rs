//! `Store::metrics`: everything that can be measured of a store, as a page of metrics has it. The
//! text for Prometheus is made of it in `prometheus.rs`.
//!
//! Names stay from version to version, and follow what Prometheus and OpenTelemetry ask for: units
//! are seconds and bytes, and are in the names; what only grows ends with `_total`. The figures of
//! `Store::stats` have the names that they always had.

use folddb_engine::state::engine::Engine;
use folddb_engine::state::latency::{Histogram, LatencyHistogram};
use folddb_engine::state::pressure;

use crate::store::Store;
use crate::store::metrics::{Metric, MetricKind};
use crate::table::stats::{TableStats, table_stats};

/// All metrics of a store at one moment: see [`Store::metrics`].
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Metrics {
    /// The metrics, each with all of its samples.
    pub families: Vec<MetricFamily>,
}

/// A metric, with a sample for each of its labels.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MetricFamily {
    /// Its name, which stays: `folddb_reads_gets_total`.
    pub name: String,
    /// What it says, in a sentence or two.
    pub help: &'static str,
    /// What it is.
    pub kind: MetricKind,
    /// Its samples. One without a label has one.
    pub samples: Vec<MetricSample>,
}

/// A sample of a metric.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct MetricSample {
    /// Its label and the value of that: `table`, and the name of one.
    pub label: Option<(&'static str, String)>,
    /// What was measured.
    pub value: MetricValue,
}

/// What was measured.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum MetricValue {
    /// A count, bytes, or seconds.
    Number(f64),
    /// How long operations took.
    Latency(LatencyHistogram),
}

impl Store {
    /// All metrics of the store: the figures of [`Store::stats`], latencies, and figures by table
    /// and by kind of space.
    ///
    /// One get, write, commit and scan in 64 is measured, and every sync, stall, flush and merge.
    /// [`Metrics::prometheus`] makes a page of it.
    ///
    /// ```
    /// use folddb::{MetricValue, Options, Rules, Store};
    ///
    /// let store = Store::in_memory(Options::default())?;
    /// let visits = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    /// visits.fold("/index", &1)?;
    ///
    /// let metrics = store.metrics();
    /// let Some(MetricValue::Latency(writes)) = metrics.of("folddb_latency_seconds", "write") else {
    ///     panic!("a store has it")
    /// };
    /// assert_eq!(writes.count(), 1);
    /// println!("{:?}", writes.quantile(0.99));
    /// assert!(metrics.prometheus().contains("folddb_table_records{table=\"visits\"} 1\n"));
    /// # Ok::<(), folddb::Error>(())
    /// ```
    pub fn metrics(&self) -> Metrics {
        match self.engine().check_here() {
            Ok(()) => Metrics { families: families(self) },
            Err(_) => Metrics::default(),
        }
    }
}

impl Metrics {
    /// A sample, by the name of its metric and the value of its label; by an empty one if it has
    /// none.
    pub fn of(&self, name: &str, label: &str) -> Option<&MetricValue> {
        let family = self.families.iter().find(|family| family.name == name)?;
        let has = |sample: &&MetricSample| sample.label.as_ref().map_or("", |(_, value)| value) == label;
        family.samples.iter().find(has).map(|sample| &sample.value)
    }
}

fn families(store: &Store) -> Vec<MetricFamily> {
    let engine = store.engine();
    let mut families: Vec<MetricFamily> = store.stats().metrics().iter().map(of_figure).collect();
    families.extend(of_caches(engine));
    families.push(of_space(engine));
    families.extend(of_tables(engine));
    families.push(of_latencies(engine));
    families
}

fn of_figure(metric: &Metric) -> MetricFamily {
    family(&metric.full_name(), metric.help, metric.kind, [(None, metric.value)])
}

fn family(
    name: &str,
    help: &'static str,
    kind: MetricKind,
    samples: impl IntoIterator<Item = (Option<(&'static str, String)>, f64)>,
) -> MetricFamily {
    let sample = |(label, value)| MetricSample { label, value: MetricValue::Number(value) };
    MetricFamily { name: name.to_owned(), help, kind, samples: samples.into_iter().map(sample).collect() }
}

fn of_caches(engine: &Engine) -> Vec<MetricFamily> {
    let reads = engine.parts.stats();
    let counter =
        |name: &str, help, value: u64| family(name, help, MetricKind::Counter, [(None, value as f64)]);
    vec![
        counter("folddb_reads_scans_total", "Scans begun.", engine.counters.scans.get()),
        counter("folddb_cache_hits_total", "Pieces of files that were in memory.", reads.cache_hits),
        counter("folddb_cache_misses_total", "Pieces of files that were not in memory.", reads.cache_misses),
        counter(
            "folddb_filter_rejects_total",
            "Keys that a filter knew to be absent from a file.",
            reads.filter_rejects,
        ),
        counter("folddb_filter_passes_total", "Keys that a filter let pass.", reads.filter_passes),
        counter(
            "folddb_filter_false_positives_total",
            "Keys that a filter let pass, and that the file did not have.",
            reads.filter_false_passes,
        ),
        counter(
            "folddb_prefix_filter_rejects_total",
            "Files that a scan of a prefix passed over, since their filters knew that they do not have it.",
            reads.prefixes.rejects,
        ),
        counter(
            "folddb_prefix_filter_passes_total",
            "Files that a filter let a scan of a prefix read.",
            reads.prefixes.passes,
        ),
        counter(
            "folddb_prefix_filter_false_positives_total",
            "Files that a filter let a scan of a prefix read, and that did not have it.",
            reads.prefixes.false_passes,
        ),
        family(
            "folddb_files_open",
            "Files of runs that are open.",
            MetricKind::Gauge,
            [(None, reads.files_open as f64)],
        ),
    ]
}

fn of_space(engine: &Engine) -> MetricFamily {
    let space = pressure::space_now(engine);
    let kinds =
        [("runs", space.runs), ("indexes", space.indexes), ("log", space.log), ("values", space.values)];
    let sample = |(kind, bytes): (&str, u64)| (Some(("kind", kind.to_owned())), bytes as f64);
    let help = "Bytes of files: runs, saved indexes of hashed tables, the log, separated values.";
    family("folddb_space_bytes", help, MetricKind::Gauge, kinds.map(sample))
}

fn of_tables(engine: &Engine) -> Vec<MetricFamily> {
    let tables: Vec<TableStats> = engine.catalog().own().map(table_stats).collect();
    let of = |name: &str, help, kind, figure: fn(&TableStats) -> u64| {
        let label = |table: &TableStats| Some(("table", table.name.clone()));
        family(name, help, kind, tables.iter().map(|table| (label(table), figure(table) as f64)))
    };
    let gauge = |name: &str, help, figure| of(name, help, MetricKind::Gauge, figure);
    let counter = |name: &str, help, figure| of(name, help, MetricKind::Counter, figure);
    vec![
        gauge("folddb_table_records", "Records; a key may have several.", |table| table.records),
        gauge("folddb_table_disk_bytes", "Bytes of the files of its runs.", |table| table.disk_bytes),
        gauge("folddb_table_memtable_bytes", "Bytes of its memtables.", |table| table.memtable_bytes),
        gauge("folddb_table_runs", "Its runs.", |table| table.runs.len() as u64),
        counter("folddb_table_records_written_total", "Records written to it.", |table| {
            table.records_written
        }),
        counter("folddb_table_bytes_written_total", "Bytes of keys and values written to it.", |table| {
            table.bytes_written
        }),
    ]
}

fn of_latencies(engine: &Engine) -> MetricFamily {
    let latencies = &engine.latencies;
    let ops: [(&str, &Histogram); 8] = [
        ("get", &latencies.get),
        ("write", &latencies.write),
        ("commit", &latencies.commit),
        ("scan", &latencies.scan),
        ("sync", &latencies.sync),
        ("stall", &latencies.stall),
        ("flush", &latencies.flush),
        ("merge", &latencies.merge),
    ];
    let sample = |(op, histogram): (&str, &Histogram)| MetricSample {
        label: Some(("op", op.to_owned())),
        value: MetricValue::Latency(histogram.now()),
    };
    MetricFamily {
        name: "folddb_latency_seconds".to_owned(),
        help: "How long operations took: single writes, commits of batches, scans up to their first row; \
               one get, write, commit and scan in 64 is measured, and all of the others.",
        kind: MetricKind::Histogram,
        samples: ops.map(sample).into_iter().collect(),
    }
}
