//! A metrics store: reports of hosts, folded into one window per minute; series found by their
//! tags; ranges of windows aggregated; old windows dropped.
//!
//! ```text
//! cargo run -p folddb --example metrics
//! ```
//!
//! A sample is one blind write, no matter how many there are in a minute. In a table with summaries
//! the blocks store what they fold to, so aggregating a long range reads little.

use folddb::folds::{Quantiles, Stats};
use folddb::{Durability, Options, Record, Result, Rules, Store, Table};

/// The measurements of a series in a minute.
#[derive(Record, Debug, Default)]
struct Window {
    all: Stats,
    spread: Quantiles,
}

/// Metric and host, and the minute.
type Key = (String, String, u64);
type Minutes = Table<Key, Window>;
/// The tags of a series, as JSON.
type Series = Table<(String, String), String>;

const ZONES: [&str; 2] = ["eu", "us"];
const HOSTS: u64 = 12;
const MINUTES: u64 = 24 * 60;
const SAMPLES_A_MINUTE: u64 = 6;

pub(crate) fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-metrics-{}", std::process::id()));
    let store = Store::create(&dir, Options::default())?;
    let minutes: Minutes = store.table("minutes", Rules::sorted::<Key, Window>().summaries(true))?;
    let rules = Rules::sorted::<(String, String), String>()
        .index("by_zone", "json:/zone")
        .index("by_role", "json:/role");
    let series: Series = store.table("series", rules)?;

    report(&store, &minutes, &series)?;
    minutes.compact()?; // background merges do so eventually

    println!("last hour by zone            samples    mean     p95");
    for zone in ZONES {
        let mut all = Window::default();
        for key in series.find("by_zone")?.term(zone).keys() {
            let (metric, host) = key?;
            let found = over(&minutes, (&metric, &host), MINUTES - 60..MINUTES)?;
            all.all.merge(&found.all);
            all.spread.merge(&found.spread);
        }
        let p95 = all.spread.quantile(0.95).unwrap_or_default();
        println!("  cpu in {zone:20} {:7} {:6.2}% {p95:6.2}%", all.all.count(), all.all.mean());
        assert_eq!(all.all.count(), HOSTS / 2 * 60 * SAMPLES_A_MINUTE);
        check(&all, (0..HOSTS).filter(|&host| zone_of(host) == zone), MINUTES - 60..MINUTES);
    }

    println!("database hosts, six hours at a time");
    for key in series.find("by_role")?.term("database").keys() {
        let (metric, host) = key?;
        let means = (0..4).map(|quarter| {
            let found = over(&minutes, (&metric, &host), quarter * 360..(quarter + 1) * 360)?;
            Ok(format!("{:6.2}%", found.all.mean()))
        });
        println!("  {host}  {}", means.collect::<Result<Vec<_>>>()?.join("  "));
    }

    let day = minutes.scan().prefix(&("cpu",)).aggregate()?;
    let (windows, value) = (day.rows, day.value.expect("there are samples"));
    let summaries = day.cost.block_summaries + day.cost.part_summaries;
    println!(
        "a day: {windows} windows of {} samples, {} rows read",
        value.all.count(),
        day.cost.rows_scanned
    );
    assert_eq!((windows, value.all.count()), (HOSTS * MINUTES, HOSTS * MINUTES * SAMPLES_A_MINUTE));
    assert!(summaries > 0 && day.cost.rows_scanned < windows, "blocks say what they fold to: {:?}", day.cost);

    // Retention: the first half of the day of each series is deleted, by one op each.
    for key in series.scan() {
        let ((metric, host), _) = key?;
        minutes.delete_range(&(metric.clone(), host.clone(), 0), &(metric, host, MINUTES / 2))?;
    }
    let kept = minutes.scan().count()?;
    println!("{kept} windows are kept");
    assert_eq!(kept, HOSTS * MINUTES / 2);

    drop((minutes, series));
    store.close()?;
    let _ = std::fs::remove_dir_all(&dir); // the example cleans up
    Ok(())
}

/// The reports of the hosts in a day, in their order of arrival: a batch per minute.
fn report(store: &Store, minutes: &Minutes, series: &Series) -> Result<()> {
    for host in 0..HOSTS {
        let (zone, role) = (zone_of(host), if host % 3 == 0 { "database" } else { "web" });
        series.put(&("cpu", name_of(host)), &format!(r#"{{"zone":"{zone}","role":"{role}"}}"#))?;
    }
    for minute in 0..MINUTES {
        let mut batch = store.batch();
        for (host, sample) in (0..HOSTS * SAMPLES_A_MINUTE).map(|number| (number % HOSTS, number / HOSTS)) {
            let load = load_of(host, minute, sample);
            let window = Window { all: Stats::of(load), spread: Quantiles::of(load) };
            batch.fold(minutes, &("cpu", name_of(host), minute), &window);
        }
        batch.commit(Durability::Process)?;
    }
    Ok(())
}

/// The measurements of a series in a range of minutes.
fn over(minutes: &Minutes, (metric, host): (&str, &str), range: std::ops::Range<u64>) -> Result<Window> {
    let scan = minutes.scan().from(&(metric, host, range.start)).before(&(metric, host, range.end));
    Ok(scan.aggregate()?.value.unwrap_or_default())
}

/// The same, computed sample by sample.
fn check(found: &Window, hosts: impl Iterator<Item = u64>, range: std::ops::Range<u64>) {
    let mut loads: Vec<f64> = Vec::new();
    for host in hosts {
        for minute in range.clone() {
            loads.extend((0..SAMPLES_A_MINUTE).map(|sample| load_of(host, minute, sample)));
        }
    }
    loads.sort_by(f64::total_cmp);
    let mean = loads.iter().sum::<f64>() / loads.len() as f64;
    assert!((found.all.mean() - mean).abs() < 1e-9, "{} is about {mean}", found.all.mean());
    assert_eq!((found.all.min(), found.all.max()), (loads.first().copied(), loads.last().copied()));
    let p95 = loads[loads.len() * 95 / 100];
    let within = (found.spread.quantile(0.95).unwrap_or_default() - p95).abs() / p95;
    assert!(within < 0.02, "p95 is about {p95}");
}

fn name_of(host: u64) -> String {
    format!("host-{host:02}")
}

fn zone_of(host: u64) -> &'static str {
    ZONES[(host % 2) as usize]
}

/// A load in percent, from the time of day, the host, and chance.
fn load_of(host: u64, minute: u64, sample: u64) -> f64 {
    let of_day = 20.0 - 15.0 * (minute as f64 / MINUTES as f64 * std::f64::consts::TAU).cos();
    let draw = (host * 7919 + minute * 104_729 + sample * 1_299_709).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    of_day + host as f64 + (draw >> 40) as f64 / (1 << 24) as f64 * 30.0
}
