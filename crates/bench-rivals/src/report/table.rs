//! The table: a line for each figure, a column for each rival, and the ratio of FoldDB to the best
//! of the others.

use comfy_table::{Cell, CellAlignment, Table, presets};
use serde_json::Value;

use super::figures::{MEASURES, ratio_to_best, spread};
use super::standings::Standing;

/// The table as text, with the settings of the contest above it, and the settings of each rival, or
/// why it failed, below it.
pub(super) fn render(name: &str, settings: &Value, standings: &[Standing]) -> String {
    let mut table = Table::new();
    table.load_style(presets::ASCII_MARKDOWN);
    let names = standings.iter().map(|standing| standing.rival.as_str());
    table.set_header(["figure (median)"].into_iter().chain(names).chain(["FoldDB to best"]));
    for measure in MEASURES {
        let median = |standing| Some(spread(measure, standing)?.median);
        let values: Vec<Option<f64>> = standings.iter().map(median).collect();
        if values.iter().all(Option::is_none) {
            continue;
        }
        let ratio = ratio_to_best(measure, standings)
            .map_or(String::new(), |(ratio, best)| format!("{ratio:.2}x ({best})"));
        let numbers = values.iter().map(|value| value.map_or("-".to_owned(), number));
        let cells = numbers.map(|text| Cell::new(text).set_alignment(CellAlignment::Right));
        table.add_row([Cell::new(measure.name)].into_iter().chain(cells).chain([Cell::new(ratio)]));
    }
    let notes: Vec<String> = standings.iter().map(note).collect();
    let space: Vec<String> = standings.iter().filter_map(space_over_time).collect();
    let space = if space.is_empty() { String::new() } else { format!("{}\n\n", space.join("\n")) };
    format!("{name}: {settings}\n\n{table}\n\n{space}{}\n", notes.join("\n"))
}

/// The disk space of a run, second by second: while it served, or while it loaded.
fn watched_bytes(run: &Value) -> Option<&Vec<Value>> {
    run["serve"]["disk_bytes_by_second"].as_array().or(run["disk_bytes_by_second"].as_array())
}

/// This many moments of a run are reported.
const MOMENTS: usize = 10;

/// What a store took on the disk, at moments of equal distance, in the first round that reports it.
fn space_over_time(standing: &Standing) -> Option<String> {
    let runs = standing.runs.as_ref().ok()?;
    let bytes: Vec<f64> = runs.iter().find_map(watched_bytes)?.iter().filter_map(Value::as_f64).collect();
    let moments = MOMENTS.min(bytes.len());
    let at = |moment: usize| bytes[(moment + 1) * bytes.len() / moments - 1];
    let shown: Vec<String> = (0..moments).map(|moment| number((at(moment) / 1e6).round())).collect();
    let (name, seconds) = (&standing.rival, bytes.len());
    (moments > 0).then(|| format!("space of {name} over {seconds} s, MB: {}", shown.join(", ")))
}

fn note(standing: &Standing) -> String {
    let text = |run: &Value, name: &str| run[name].as_str().unwrap_or("?").to_owned();
    match &standing.runs {
        Ok(runs) => {
            let run = runs.first().unwrap_or(&Value::Null);
            format!("{} {}: {}", standing.rival, text(run, "version"), text(run, "settings"))
        }
        Err(why) => format!("{}: FAILED: {why}", standing.rival),
    }
}

/// Three significant digits; large numbers in thousands and millions.
pub(super) fn number(value: f64) -> String {
    let (value, unit) = match value.abs() {
        size if size >= 1e7 => (value / 1e6, " M"),
        size if size >= 1e4 => (value / 1e3, " K"),
        _ => (value, ""),
    };
    match value.abs() {
        size if size >= 100.0 || value.fract() == 0.0 => format!("{value:.0}{unit}"),
        size if size >= 10.0 => format!("{value:.1}{unit}"),
        _ => format!("{value:.2}{unit}"),
    }
}

#[cfg(test)]
#[path = "table/tests.rs"]
mod tests;
