//! The figures of a store as a page of metrics has them.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use folddb::{
    BackgroundWork, Durability, LatencyHistogram, MetricFamily, MetricKind, MetricValue, Metrics, Options,
    Rules, Store,
};

/// The names, which do not change: dashboards use them. New ones may be added.
const NAMES: &str = "\
writes: commits_total records_total user_bytes_total log_bytes_total value_bytes_total delay_us_total stalls_total
reads: gets_total operands_visited_max fold_failures_total pieces_total bytes_total values_total value_heads_total
reads: index_loads_total index_entries_total index_entries_stale_total
memory: memtable_bytes cache_bytes index_bytes index_locked_bytes
disk: bytes log_segments value_segments value_bytes value_live_bytes snapshot_file_bytes
background: flushes_total merges_total records_merged_total part_bytes_total indexes_saved_total index_bytes_total
background: reclaims_total value_bytes_copied_total value_bytes_given_back_total value_segments_reclaimed_total
background: records_expired_total index_entries_cleaned_total debt_s retries_total feeds_lost_total
snapshots: live in_files oldest_s";

#[test]
fn the_names_of_metrics_stay_and_each_says_what_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::default().background(BackgroundWork::Manual);
    let store = Store::create(dir.path().join("s.folddb"), options).unwrap();
    let visits = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    visits.fold("/index", &1).unwrap();
    store.flush().unwrap();
    let _snapshot = store.snapshot();

    let metrics = store.stats().metrics();
    let names: BTreeSet<String> = metrics.iter().map(|metric| metric.full_name()).collect();
    let of_line = |line: &'static str| {
        let (group, names) = line.split_once(": ").unwrap();
        names.split(' ').map(move |name| format!("folddb_{group}_{name}"))
    };
    let known: BTreeSet<String> = NAMES.lines().flat_map(of_line).collect();
    assert_eq!(names, known);
    for metric in &metrics {
        assert!(metric.help.ends_with('.') && !metric.help.contains('\n'), "{metric:?}");
        assert_eq!(metric.kind == MetricKind::Counter, metric.full_name().ends_with("_total"));
    }
    let value = |name: &str| metrics.iter().find(|metric| metric.full_name() == name).unwrap().value;
    assert_eq!(value("folddb_writes_commits_total"), 1.0);
    assert_eq!(value("folddb_background_flushes_total"), 1.0);
    assert_eq!(value("folddb_snapshots_live"), 1.0);
    assert!(value("folddb_disk_bytes") > 0.0);
}

/// The metrics of `Store::metrics` that `Store::stats` does not have, with their kinds and labels.
/// They stay, too.
const MORE: &str = "\
folddb_reads_scans_total counter
folddb_cache_hits_total counter
folddb_cache_misses_total counter
folddb_filter_rejects_total counter
folddb_filter_passes_total counter
folddb_filter_false_positives_total counter
folddb_prefix_filter_rejects_total counter
folddb_prefix_filter_passes_total counter
folddb_prefix_filter_false_positives_total counter
folddb_files_open gauge
folddb_space_bytes gauge kind: runs indexes log values
folddb_table_records gauge table: people visits
folddb_table_disk_bytes gauge table: people visits
folddb_table_memtable_bytes gauge table: people visits
folddb_table_runs gauge table: people visits
folddb_table_records_written_total counter table: people visits
folddb_table_bytes_written_total counter table: people visits
folddb_latency_seconds histogram op: get write commit scan sync stall flush merge";

fn line_of(family: &MetricFamily) -> String {
    let mut line = format!("{} {}", family.name, family.kind.name());
    for (at, sample) in family.samples.iter().enumerate() {
        let Some((key, value)) = &sample.label else { continue };
        line += &if at == 0 { format!(" {key}: {value}") } else { format!(" {value}") };
    }
    line
}

fn used(options: Options) -> Store {
    let store = Store::in_memory(options).unwrap();
    let visits = store.table("visits", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    let people = store.table("people", Rules::hashed::<String, String>()).unwrap();
    (0..1000).for_each(|i| drop(visits.fold(&(2 * i), &1)));
    store.flush().unwrap();
    (0..1000).for_each(|i| drop(visits.fold(&(2 * i), &1)));
    people.put("a", "Ada").unwrap();
    visits.compact().unwrap();
    let mut batch = store.batch();
    for i in 0..63 {
        batch.fold(&visits, &i, &1);
    }
    batch.commit(Durability::Sync).unwrap();
    (0..2000).for_each(|i| assert_eq!(visits.get(&i).unwrap().is_some(), i % 2 == 0 || i < 63));
    assert_eq!(visits.scan().count().unwrap(), 1031);
    store
}

fn number(metrics: &Metrics, name: &str, label: &str) -> f64 {
    match metrics.of(name, label) {
        Some(MetricValue::Number(number)) => *number,
        other => panic!("{name} of `{label}` is {other:?}"),
    }
}

fn latency(metrics: &Metrics, op: &str) -> LatencyHistogram {
    match metrics.of("folddb_latency_seconds", op) {
        Some(MetricValue::Latency(histogram)) => histogram.clone(),
        other => panic!("the latency of {op} is {other:?}"),
    }
}

#[test]
fn all_metrics_of_a_store_have_names_that_stay() {
    let store = used(Options::default().background(BackgroundWork::Manual));
    let metrics = store.metrics();
    let figures = store.stats().metrics().len();
    let more: Vec<String> = metrics.families[figures..].iter().map(line_of).collect();
    assert_eq!(more.join("\n"), MORE);
    for family in &metrics.families {
        assert!(family.help.ends_with('.') && !family.help.contains('\n'), "{family:?}");
        assert_eq!(family.kind == MetricKind::Counter, family.name.ends_with("_total"), "{family:?}");
    }
}

#[test]
fn metrics_count_what_was_done() {
    let store = used(Options::default().background(BackgroundWork::Manual));
    let metrics = store.metrics();
    let of = |name: &str, label: &str| number(&metrics, name, label);
    assert_eq!(of("folddb_table_records_written_total", "visits"), 2063.0);
    assert_eq!(of("folddb_table_records_written_total", "people"), 1.0);
    assert_eq!(of("folddb_table_bytes_written_total", "visits"), 2063.0 * 16.0);
    assert_eq!(of("folddb_table_records", "people"), 1.0);
    assert_eq!(of("folddb_reads_scans_total", ""), 1.0);
    let space: f64 =
        ["runs", "indexes", "log", "values"].map(|kind| of("folddb_space_bytes", kind)).iter().sum();
    assert_eq!(space, of("folddb_disk_bytes", ""));
    // Odd keys are in no file, and a filter lets about one in a hundred of them pass. No filter is
    // asked for the last, which is beyond the file.
    let (rejects, passes) = (of("folddb_filter_rejects_total", ""), of("folddb_filter_passes_total", ""));
    let false_passes = of("folddb_filter_false_positives_total", "");
    assert_eq!(passes, 1000.0 + false_passes);
    assert_eq!(rejects + false_passes, 999.0);
    assert!(false_passes < 60.0, "{false_passes}");
    // What a range delete hides is in the file all the same.
    let visits = store.table("visits", Rules::sorted::<u64, u64>().fold("sum:u64")).unwrap();
    visits.delete_range(&1000, &1200).unwrap();
    (1000..1200).step_by(2).for_each(|hidden| assert_eq!(visits.get(&hidden).unwrap(), None));
    assert_eq!(number(&store.metrics(), "folddb_filter_false_positives_total", ""), false_passes);
}

#[test]
fn about_one_operation_in_64_is_measured_and_every_rare_one() {
    let store = used(Options::default().background(BackgroundWork::Manual));
    let metrics = store.metrics();
    let counts = ["get", "scan", "flush", "merge", "stall"].map(|op| latency(&metrics, op).count());
    let stats = store.stats();
    let is_share = |measured: u64, of: u64| measured.abs_diff(of / 64) <= 2 + of / 640;
    assert!(is_share(counts[0], stats.reads.gets), "{} of {}", counts[0], stats.reads.gets);
    assert_eq!(counts[1..], [1, stats.background.flushes, stats.background.merges, 0]);
    let commits = latency(&metrics, "write").count() + latency(&metrics, "commit").count();
    assert!(is_share(commits, stats.writes.commits), "{commits} of {}", stats.writes.commits);
    assert!(latency(&metrics, "sync").count() > 0);
    let gets = latency(&metrics, "get");
    assert!(gets.sum() > std::time::Duration::ZERO && gets.quantile(0.5) <= gets.quantile(0.99));
}

// ---- the text format ----------------------------------------------------------------------------

/// A line of samples: name, labels, value. Panics where the grammar of the format does not hold.
fn sample_of(line: &str) -> (String, Vec<(String, String)>, f64) {
    let is_name = |text: &str| {
        let is_letter = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
        text.starts_with(is_letter) && text.chars().all(|c| is_letter(c) || c.is_ascii_digit())
    };
    let name_end = line.find(['{', ' ']).expect("a name ends");
    let (name, mut rest) = line.split_at(name_end);
    assert!(is_name(name), "{line}");
    let mut labels = Vec::new();
    if let Some(inside) = rest.strip_prefix('{') {
        rest = inside;
        loop {
            let (key, after) = rest.split_once("=\"").expect("a label has a value in quotes");
            assert!(is_name(key) && !key.contains(':'), "{line}");
            let (mut value, mut letters) = (String::new(), after.char_indices());
            let end = loop {
                match letters.next().expect("a value ends") {
                    (at, '"') => break at,
                    (_, '\\') => match letters.next().expect("a letter after a backslash").1 {
                        'n' => value.push('\n'),
                        letter @ ('\\' | '"') => value.push(letter),
                        other => panic!("\\{other} in {line}"),
                    },
                    (_, letter) => value.push(letter),
                }
            };
            labels.push((key.to_owned(), value));
            rest = &after[end + 1..];
            match rest.strip_prefix(',') {
                Some(next) => rest = next,
                None => break,
            }
        }
        rest = rest.strip_prefix('}').expect("labels end");
    }
    let value = rest.strip_prefix(' ').expect("a space before the value");
    (name.to_owned(), labels, value.parse().expect("a value is a double"))
}

/// A page: of each metric its kind and its samples.
type Page = Vec<(String, String, Vec<(String, Vec<(String, String)>, f64)>)>;

fn page_of(text: &str) -> Page {
    assert!(text.ends_with('\n') && !text.contains("\n\n"));
    let mut page = Page::new();
    let mut help = None;
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            help = rest.split_once(' ').map(|(name, _)| name.to_owned());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a kind");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(help.take().as_deref(), Some(name), "the help of each metric comes first, once");
            assert!(page.iter().all(|(other, ..)| other != name), "{name} is there once");
            page.push((name.to_owned(), kind.to_owned(), Vec::new()));
        } else {
            let (name, kind, samples) = page.last_mut().expect("a sample has a type");
            let sample = sample_of(line);
            let suffix = sample.0.strip_prefix(&name[..]).expect("samples follow the type of their metric");
            let suffixes: &[&str] = if kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
            assert!(suffixes.contains(&suffix), "{line}");
            samples.push(sample);
        }
    }
    page
}

#[test]
fn the_page_is_what_the_text_format_of_prometheus_allows() {
    let store = used(Options::default().background(BackgroundWork::Manual));
    let strange = "a \"b\" \\ c";
    let is_named = store.create_bytes_table(strange, "".parse().unwrap()).is_ok();
    let metrics = store.metrics();
    let page = page_of(&metrics.prometheus());
    assert_eq!(page.len(), metrics.families.len());
    let (_, _, records) = page.iter().find(|(name, ..)| name == "folddb_table_records").unwrap();
    let names: Vec<&str> = records.iter().map(|(_, labels, _)| &labels[0].1[..]).collect();
    assert!(names.contains(&"visits") && names.contains(&strange) == is_named, "{names:?}");
    for (family, (name, _, samples)) in metrics.families.iter().zip(&page) {
        assert_eq!(family.name, *name);
        let Some(MetricValue::Number(first)) = family.samples.first().map(|sample| &sample.value) else {
            continue;
        };
        assert_eq!(samples[0].2, *first, "a number is read as it was written");
    }
}

#[test]
fn buckets_of_a_histogram_add_up_on_the_page() {
    let metrics = used(Options::default().background(BackgroundWork::Manual)).metrics();
    let page = page_of(&metrics.prometheus());
    let (_, _, samples) = page.iter().find(|(_, kind, _)| kind == "histogram").unwrap();
    for op in ["get", "write", "commit", "scan", "sync", "stall", "flush", "merge"] {
        let of_op = |suffix: &str| -> Vec<(Option<f64>, f64)> {
            let name = format!("folddb_latency_seconds{suffix}");
            let is_one = |(sample, labels, _): &&(String, Vec<(String, String)>, f64)| {
                *sample == name && labels[0] == ("op".to_owned(), op.to_owned())
            };
            let bound = |labels: &[(String, String)]| labels.get(1).map(|(_, le)| le.parse::<f64>().unwrap());
            samples.iter().filter(is_one).map(|(_, labels, value)| (bound(labels), *value)).collect()
        };
        let (buckets, count, sum) = (of_op("_bucket"), of_op("_count"), of_op("_sum"));
        assert!(buckets.is_sorted_by(|a, b| a.0 < b.0 && a.1 <= b.1), "{op}: {buckets:?}");
        assert_eq!(buckets.last().unwrap(), &(Some(f64::INFINITY), count[0].1), "{op}");
        assert_eq!(count[0].1, latency(&metrics, op).count() as f64);
        assert_eq!(sum[0].1, latency(&metrics, op).sum().as_secs_f64());
    }
}
