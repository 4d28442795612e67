//! Metrics as text that Prometheus scrapes: its exposition format, version 0.0.4.
//!
//! ```text
//!   # HELP folddb_latency_seconds How long operations took ...
//!   # TYPE folddb_latency_seconds histogram
//!   folddb_latency_seconds_bucket{op="get",le="0.000000256"} 3
//!   folddb_latency_seconds_bucket{op="get",le="+Inf"} 7
//!   folddb_latency_seconds_sum{op="get"} 0.00000931
//!   folddb_latency_seconds_count{op="get"} 7
//! ```

use std::fmt::Write;

use folddb_engine::state::latency::LatencyHistogram;

use crate::store::metric_families::{MetricFamily, MetricSample, MetricValue, Metrics};

impl Metrics {
    /// The page as Prometheus scrapes it, with the content type `text/plain; version=0.0.4`.
    pub fn prometheus(&self) -> String {
        let mut page = String::new();
        for family in &self.families {
            put_family(&mut page, family);
        }
        page
    }
}

fn put_family(page: &mut String, family: &MetricFamily) {
    let MetricFamily { name, help, kind, samples } = family;
    let help = escaped(help, &['\\', '\n']);
    let _ = writeln!(page, "# HELP {name} {help}\n# TYPE {name} {}", kind.name());
    for sample in samples {
        put_sample(page, name, sample);
    }
}

fn put_sample(page: &mut String, name: &str, MetricSample { label, value }: &MetricSample) {
    let label =
        label.as_ref().map(|(key, value)| format!("{key}=\"{}\"", escaped(value, &['\\', '\n', '"'])));
    let label = label.as_deref();
    match value {
        MetricValue::Number(number) => put_line(page, name, [label, None], *number),
        MetricValue::Latency(histogram) => put_histogram(page, name, label, histogram),
    }
}

fn put_histogram(page: &mut String, name: &str, label: Option<&str>, histogram: &LatencyHistogram) {
    let bucket = format!("{name}_bucket");
    for (bound, so_far) in histogram.buckets() {
        let bound = format!("le=\"{}\"", bound.as_secs_f64());
        put_line(page, &bucket, [label, Some(&bound)], so_far as f64);
    }
    put_line(page, &bucket, [label, Some("le=\"+Inf\"")], histogram.count() as f64);
    put_line(page, &format!("{name}_sum"), [label, None], histogram.sum().as_secs_f64());
    put_line(page, &format!("{name}_count"), [label, None], histogram.count() as f64);
}

/// A double is written with as many digits as it needs to be read again.
fn put_line(page: &mut String, name: &str, labels: [Option<&str>; 2], value: f64) {
    let labels: Vec<&str> = labels.into_iter().flatten().collect();
    let labels = if labels.is_empty() { String::new() } else { format!("{{{}}}", labels.join(",")) };
    let _ = writeln!(page, "{name}{labels} {value}");
}

/// The text with a backslash before these characters; a new line is `\n`.
fn escaped(text: &str, special: &[char]) -> String {
    let mut out = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '\n' if special.contains(&'\n') => out.push_str("\\n"),
            _ if special.contains(&letter) => out.extend(['\\', letter]),
            _ => out.push(letter),
        }
    }
    out
}
