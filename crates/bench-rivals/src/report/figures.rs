//! The figures that a contest compares: where each is in a run's JSON, medians over runs, and
//! ratios.

use serde_json::{Map, Value, json};

use super::standings::Standing;

/// The store that is compared: its ratio to the best of the others is reported.
const OURS: &str = "folddb";

/// A figure that is compared.
pub(super) struct Measure {
    /// As it is in the table, with its unit.
    pub(super) name: &'static str,
    /// Of one run.
    value: fn(&Value) -> Option<f64>,
    is_more_better: bool,
}

const fn more(name: &'static str, value: fn(&Value) -> Option<f64>) -> Measure {
    Measure { name, value, is_more_better: true }
}

const fn less(name: &'static str, value: fn(&Value) -> Option<f64>) -> Measure {
    Measure { name, value, is_more_better: false }
}

/// All figures; a table has those that its workload has.
pub(super) const MEASURES: &[Measure] = &[
    more("load, rows/s", |run| at(run, &["load", "rows_per_s"])),
    more("load and settle, rows/s", settled_rows_per_s),
    less("load and settle, CPU µs/row", settled_cpu_us_per_row),
    more("puts, rows/s", |run| at(run, &["puts", "rows_per_s"])),
    more("deletes, rows/s", |run| at(run, &["deletes", "rows_per_s"])),
    less("commit mean, µs", |run| at(run, &["commits", "mean_us"])),
    less("commit p50, µs", |run| at(run, &["commits", "p50_us"])),
    less("commit p99, µs", |run| at(run, &["commits", "p99_us"])),
    less("commit p99.9, µs", |run| at(run, &["commits", "p99_9_us"])),
    less("commit max, µs", |run| at(run, &["commits", "max_us"])),
    less("settle, s", |run| at(run, &["settle", "seconds"])),
    less("bytes written per byte", |run| at(run, &["written", "amplification"])),
    less("disk, bytes", |run| at(run, &["disk_bytes"])),
    less("peak memory, bytes", |run| at(run, &["peak_anonymous_bytes"])),
    less("reader: get p50, µs", |run| at(run, &["reader", "gets", "p50_us"])),
    less("reader: get p99, µs", |run| at(run, &["reader", "gets", "p99_us"])),
    less("reader: select p50, µs", |run| at(run, &["reader", "selects", "p50_us"])),
    more("warm gets/s", |run| at(run, &["reads", "warm", "gets_per_s"])),
    less("warm hit p50, µs", |run| at(run, &["reads", "warm", "hits", "p50_us"])),
    less("warm hit p99, µs", |run| at(run, &["reads", "warm", "hits", "p99_us"])),
    less("warm miss p50, µs", |run| at(run, &["reads", "warm", "misses", "p50_us"])),
    less("warm miss p99, µs", |run| at(run, &["reads", "warm", "misses", "p99_us"])),
    more("warm scan, rows/s", |run| at(run, &["reads", "warm", "scan", "rows_per_s"])),
    more("cold gets/s", |run| at(run, &["reads", "cold", "gets_per_s"])),
    less("cold hit p50, µs", |run| at(run, &["reads", "cold", "hits", "p50_us"])),
    less("cold hit p99, µs", |run| at(run, &["reads", "cold", "hits", "p99_us"])),
    less("cold miss p50, µs", |run| at(run, &["reads", "cold", "misses", "p50_us"])),
    less("cold miss p99, µs", |run| at(run, &["reads", "cold", "misses", "p99_us"])),
    more("cold scan, rows/s", |run| at(run, &["reads", "cold", "scan", "rows_per_s"])),
    more("optimized gets/s", |run| at(run, &["optimized", "reads", "warm", "gets_per_s"])),
    less("optimized hit p50, µs", |run| at(run, &["optimized", "reads", "warm", "hits", "p50_us"])),
    less("optimized hit p99, µs", |run| at(run, &["optimized", "reads", "warm", "hits", "p99_us"])),
    less("optimized miss p50, µs", |run| at(run, &["optimized", "reads", "warm", "misses", "p50_us"])),
    less("optimized miss p99, µs", |run| at(run, &["optimized", "reads", "warm", "misses", "p99_us"])),
    more("optimized scan, rows/s", |run| at(run, &["optimized", "reads", "warm", "scan", "rows_per_s"])),
    less("optimize, s", |run| at(run, &["optimized", "seconds"])),
    less("reopen, ms", |run| at(run, &["reads", "cold", "open_ms"])),
    more("writes beside gets, rows/s", |run| at(run, &["read_while_writing", "writes_per_s"])),
    less("get beside writes p50, µs", |run| at(run, &["read_while_writing", "gets", "p50_us"])),
    less("get beside writes p99, µs", |run| at(run, &["read_while_writing", "gets", "p99_us"])),
    less("first get of all appended, ms", |run| at(run, &["get_ms", "first"])),
    less("second get, ms", |run| at(run, &["get_ms", "second"])),
    less("get after settling, ms", |run| at(run, &["get_ms", "after_flush"])),
    less("seek in an empty store p50, µs", |run| at(run, &["seeks", "of_an_empty_table", "p50_us"])),
    less("seek when drained p50, µs", |run| at(run, &["seeks", "drained", "p50_us"])),
    less("seek when settled p50, µs", |run| at(run, &["seeks", "settled", "p50_us"])),
    more("fill, rows/s", |run| at(run, &["fill", "rows_per_s"])),
    more("ops/s", |run| at(run, &["serve", "rows_per_s"])),
    less("get p50, µs", |run| at(run, &["serve", "gets", "p50_us"])),
    less("get p99, µs", |run| at(run, &["serve", "gets", "p99_us"])),
    less("get p99.9, µs", |run| at(run, &["serve", "gets", "p99_9_us"])),
    less("put p50, µs", |run| at(run, &["serve", "puts", "p50_us"])),
    less("put p99, µs", |run| at(run, &["serve", "puts", "p99_us"])),
    less("put p99.9, µs", |run| at(run, &["serve", "puts", "p99_9_us"])),
    less("put max, µs", |run| at(run, &["serve", "puts", "max_us"])),
    less("of it its head p50, µs", |run| at(run, &["serve", "heads", "p50_us"])),
    more("heads/s, warm", |run| at(run, &["heads", "warm", "per_s"])),
    more("heads/s, cold", |run| at(run, &["heads", "cold", "per_s"])),
    more("gets/s as cold", |run| at(run, &["heads", "cold_gets", "per_s"])),
    less("disk per live byte", |run| at(run, &["space", "per_byte"])),
    more("gets/s by all threads, cold", |run| at(run, &["cold_gets", "gets_per_s"])),
    less("get p50 by all threads, cold, µs", |run| at(run, &["cold_gets", "gets", "p50_us"])),
    less("get p99 by all threads, cold, µs", |run| at(run, &["cold_gets", "gets", "p99_us"])),
    less("read from disk per get, bytes", |run| at(run, &["cold_gets", "read_bytes_per_get"])),
    less("cold open before them, ms", |run| at(run, &["cold_gets", "open_ms"])),
    less("cold open, ms", |run| at(run, &["open", "open_ms"])),
    less("first get, µs", |run| at(run, &["open", "first_get_us"])),
];

fn at(run: &Value, path: &[&str]) -> Option<f64> {
    path.iter().try_fold(run, |value, step| value.get(*step))?.as_f64()
}

/// Work that is put off is work: the rows over the time of load and settling together.
fn settled_rows_per_s(run: &Value) -> Option<f64> {
    Some((at(run, &["rows"])? / (at(run, &["load", "seconds"])? + at(run, &["settle", "seconds"])?)).round())
}

fn settled_cpu_us_per_row(run: &Value) -> Option<f64> {
    let cpu_s = at(run, &["load", "cpu_s"])? + at(run, &["settle", "cpu_s"])?;
    Some((cpu_s * 1e9 / at(run, &["rows"])?).round() / 1e3)
}

/// A figure over the rounds of a rival.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spread {
    pub(super) median: f64,
    pub(super) min: f64,
    pub(super) max: f64,
}

/// A figure over the rounds. It is computed in each round first: the median of a sum is not the sum
/// of medians. `None` if the rival failed or has no such figure.
pub(super) fn spread(measure: &Measure, standing: &Standing) -> Option<Spread> {
    let runs = standing.runs.as_ref().ok()?;
    let values: Vec<f64> = runs.iter().filter_map(measure.value).collect();
    let (min, max) = (values.iter().copied().reduce(f64::min)?, values.iter().copied().reduce(f64::max)?);
    Some(Spread { median: median(&values), min, max })
}

/// The medians of all figures in the runs of a rival. `None` if it failed.
pub(super) fn medians_of(standing: &Standing) -> Option<Value> {
    Some(medians(&standing.runs.as_ref().ok()?.iter().collect::<Vec<_>>()))
}

/// How many times better FoldDB is than the best of the others, with that one's name. `None` if one
/// of the two is missing.
pub(super) fn ratio_to_best(measure: &Measure, standings: &[Standing]) -> Option<(f64, String)> {
    let of = |standing: &Standing| Some(spread(measure, standing)?.median);
    let ours = of(standings.iter().find(|standing| standing.rival == OURS)?)?;
    let others = standings.iter().filter(|standing| !standing.rival.starts_with(OURS));
    let known = others.filter_map(|standing| Some((of(standing)?, &standing.rival)));
    let (best, rival) = match measure.is_more_better {
        true => known.max_by(|one, other| one.0.total_cmp(&other.0))?,
        false => known.min_by(|one, other| one.0.total_cmp(&other.0))?,
    };
    let (above, below) = if measure.is_more_better { (ours, best) } else { (best, ours) };
    (below > 0.0).then(|| (above / below, rival.clone()))
}

/// The medians of runs, figure by figure; lists of the same length place by place. What is not a
/// number, or not of the same form in every run, is taken from the first run.
fn medians(runs: &[&Value]) -> Value {
    match runs.first() {
        Some(Value::Object(first)) => {
            let of = |name: &String| {
                let all: Vec<&Value> = runs.iter().filter_map(|run| run.get(name)).collect();
                (name.clone(), medians(&all))
            };
            Value::Object(first.keys().map(of).collect::<Map<_, _>>())
        }
        Some(Value::Array(first))
            if runs.iter().all(|run| run.as_array().map(Vec::len) == Some(first.len())) =>
        {
            let of = |place| medians(&runs.iter().filter_map(|run| run.get(place)).collect::<Vec<_>>());
            (0..first.len()).map(of).collect()
        }
        Some(Value::Number(_)) => {
            let numbers: Vec<f64> = runs.iter().filter_map(|run| run.as_f64()).collect();
            number(median(&numbers))
        }
        first => first.map_or(Value::Null, |&first| first.clone()),
    }
}

/// The middle one, or the mean of the middle two.
fn median(numbers: &[f64]) -> f64 {
    let mut sorted = numbers.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => 0.0,
        len => (sorted[(len - 1) / 2] + sorted[len / 2]) / 2.0,
    }
}

/// A whole number as such.
fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { json!(value as i64) } else { json!(value) }
}

#[cfg(test)]
#[path = "figures/tests.rs"]
mod tests;
