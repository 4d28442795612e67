//! The tiers of a table as a picture: one line per run. The bar is as long as the run is large, and
//! is cut where the parts of the run end.
//!
//! ```text
//! tier 0  run 9  ▆▆                            1 part     40.0 KiB     1,024 records
//! tier 1  run 4  ▆▆▆▆▆▆▆▆▆▆▆▆▆▆▏▆▆▆▆▆▆▆▆▆▆▆▆▆  2 parts  560.1 KiB    14,336 records
//! ```

use std::io::{self, Write};

use folddb::{RunInfo, TableStats};

use crate::human;

/// Width of the longest bar, in characters.
const BAR_WIDTH: usize = 40;

/// Draws a table.
pub(crate) fn write(out: &mut dyn Write, table: &TableStats) -> io::Result<()> {
    writeln!(
        out,
        "{}: {}, {} in {}; {} in memtables",
        table.name,
        human::plural(table.records, "record"),
        human::bytes(table.disk_bytes),
        human::plural(table.runs.len() as u64, "run"),
        human::bytes(table.memtable_bytes),
    )?;
    let bytes_max = table.runs.iter().map(RunInfo::bytes).max().unwrap_or(0);
    let lines: Vec<[String; 6]> = table.runs.iter().map(|run| line(run, bytes_max)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..6).map(width).collect();
    for [tier, run, bar, parts, bytes, records] in &lines {
        writeln!(
            out,
            "  {tier:a$}  {run:b$}  {bar:c$}  {parts:d$}  {bytes:>e$}  {records:>f$}",
            a = widths[0],
            b = widths[1],
            c = widths[2],
            d = widths[3],
            e = widths[4],
            f = widths[5],
        )?;
    }
    Ok(())
}

fn line(run: &RunInfo, bytes_max: u64) -> [String; 6] {
    let parts: Vec<u64> = run.parts.iter().map(|part| part.bytes).collect();
    [
        format!("tier {}", run.tier),
        format!("run {}", u64::from(run.id)),
        bar(&parts, bytes_max),
        human::plural(parts.len() as u64, "part"),
        human::bytes(run.bytes()),
        human::plural(run.records(), "record"),
    ]
}

/// A bar for the parts of a run, where `bytes_max` fills the width. Parts too small for a cell of
/// their own share one.
pub(crate) fn bar(parts: &[u64], bytes_max: u64) -> String {
    let mut text = String::new();
    let (mut bytes_before, mut filled) = (0u64, 0usize);
    for bytes in parts {
        bytes_before = bytes_before.saturating_add(*bytes);
        let end = (bytes_before as f64 / bytes_max.max(1) as f64 * BAR_WIDTH as f64).round() as usize;
        let end = end.clamp(usize::from(text.is_empty()), BAR_WIDTH);
        if end <= filled {
            continue;
        }
        if !text.is_empty() {
            text.push('▏');
            filled += 1;
        }
        text.extend(std::iter::repeat_n('▆', end.saturating_sub(filled)));
        filled = end.max(filled);
    }
    text
}

#[cfg(test)]
#[path = "tiers/tests.rs"]
mod tests;
