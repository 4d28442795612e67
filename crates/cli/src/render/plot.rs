//! Figures as pictures of characters: bars, sparklines, histograms. Pure functions, which print.

use crate::human;
use crate::render::figures;

/// Eighths of a cell, from the left.
const EIGHTHS: [char; 8] = ['▏', '▎', '▍', '▌', '▋', '▊', '▉', '█'];

/// Heights of a sign of a sparkline.
const HEIGHTS: [char; 8] = ['▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// The width where none is known.
pub(crate) const WIDTH_USUAL: usize = 80;

/// Most bins of a histogram.
const BINS: usize = 20;

/// From which ratio of the largest to the smallest on bins grow by a factor.
const WIDE: f64 = 100.0;

/// A bar of a share of so many cells. What is more than nothing is seen.
pub(crate) fn bar(share: f64, cells: usize) -> String {
    let eighths = (share.clamp(0.0, 1.0) * (cells * 8) as f64).round() as usize;
    let eighths = eighths.max(usize::from(share > 0.0));
    let rest = (eighths % 8).checked_sub(1).map(|eighth| EIGHTHS[eighth]);
    std::iter::repeat_n('█', eighths / 8).chain(rest).collect()
}

/// A line of bars with labels and figures: to the right of an axis, and to its left what is below
/// zero. What is infinite has an arrow and no share in the scale.
pub(crate) fn bars(rows: &[(String, Option<f64>)], width: usize) -> Vec<String> {
    let widest =
        |texts: &mut dyn Iterator<Item = &str>| texts.map(console::measure_text_width).max().unwrap_or(0);
    let figures: Vec<String> =
        rows.iter().map(|(_, value)| value.map_or(String::new(), figures::rounded)).collect();
    let labels = widest(&mut rows.iter().map(|(label, _)| label.as_str())).min(width / 2);
    let figure_width = widest(&mut figures.iter().map(String::as_str));
    let cells = width.saturating_sub(labels + figure_width + 4).max(8);
    let scale = Scale::of(rows.iter().filter_map(|(_, value)| *value), cells);
    let line = |((label, value), figure): (&(String, Option<f64>), &String)| {
        let label = console::truncate_str(label, labels, "…").into_owned();
        let pad = " ".repeat(labels - console::measure_text_width(&label));
        format!("{label}{pad}  {figure:>figure_width$}  {}", scale.bar(*value)).trim_end().to_owned()
    };
    rows.iter().zip(&figures).map(line).collect()
}

/// How long bars are on both sides of an axis, which is there if something is below zero.
struct Scale {
    /// What a cell is worth.
    unit: f64,
    /// Cells to the left of the axis, and to its right.
    left: usize,
    right: usize,
}

impl Scale {
    fn of(values: impl Iterator<Item = f64> + Clone, cells: usize) -> Scale {
        let finite = || values.clone().filter(|value| value.is_finite());
        let (least, largest) = (finite().fold(0.0, f64::min), finite().fold(0.0, f64::max));
        if !values.clone().any(|value| value < 0.0) {
            return Scale { unit: largest / cells as f64, left: 0, right: cells };
        }
        let sides = cells.saturating_sub(1).max(2); // the axis has a cell
        let share = match -least / 2.0 + largest / 2.0 {
            0.0 => 0.5, // only infinities
            half => -least / 2.0 / half,
        };
        let left = ((share * sides as f64).round() as usize).clamp(1, sides - 1);
        let right = sides - left;
        Scale { unit: (-least / left as f64).max(largest / right as f64), left, right }
    }

    fn bar(&self, value: Option<f64>) -> String {
        let &Scale { unit, left, right } = self;
        let value = value.unwrap_or(0.0);
        let cells = if unit > 0.0 { value.abs() / unit } else { 0.0 };
        let to_right = match value {
            f64::INFINITY => format!("{}▶", "┄".repeat(right.saturating_sub(1))),
            value if value > 0.0 => bar(cells / right as f64, right),
            _ => String::new(),
        };
        if left == 0 {
            return to_right;
        }
        let to_left = match value {
            f64::NEG_INFINITY => format!("◀{}", "┄".repeat(left - 1)),
            value if value < 0.0 => bar_to_left(cells, left),
            _ => String::new(),
        };
        format!("{to_left:>left$}│{to_right}")
    }
}

/// A bar that ends at the axis to its right; fonts have but halves for that. What is less than
/// nothing is seen.
fn bar_to_left(cells: f64, most: usize) -> String {
    let halves = ((cells * 2.0).round() as usize).clamp(1, most * 2);
    let half = if halves % 2 == 1 { "▐" } else { "" };
    format!("{half}{}", "█".repeat(halves / 2))
}

/// One sign for each value, or for the mean of a few where there are more than cells. What is
/// missing is a space, and what is infinite an arrow, which has no share in the scale.
pub(crate) fn sparkline(values: &[Option<f64>], cells: usize) -> String {
    let per_cell = values.len().div_ceil(cells.max(1)).max(1);
    let mean = |few: &[Option<f64>]| {
        let known: Vec<f64> = few.iter().flatten().copied().filter(|value| !value.is_nan()).collect();
        let share = 1.0 / known.len() as f64;
        // Each share by itself: the sum of all may be more than a number can be.
        (!known.is_empty()).then(|| known.iter().map(|value| value * share).sum::<f64>())
    };
    let means: Vec<Option<f64>> = values.chunks(per_cell).map(mean).collect();
    let finite = || means.iter().flatten().copied().filter(|value| value.is_finite());
    let least = finite().fold(f64::INFINITY, f64::min).min(0.0);
    let largest = finite().fold(f64::NEG_INFINITY, f64::max);
    let sign = |value: &Option<f64>| match *value {
        Some(f64::INFINITY) => '↑',
        Some(f64::NEG_INFINITY) => '↓',
        Some(value) if value.is_finite() && largest > least => {
            let share = (value / 2.0 - least / 2.0) / (largest / 2.0 - least / 2.0);
            HEIGHTS[(share * 7.0).round() as usize]
        }
        Some(value) if value.is_finite() => HEIGHTS[0],
        _ => ' ',
    };
    means.iter().map(sign).collect()
}

/// The least and the largest of some values, in words; of those that are finite, if any are.
pub(crate) fn span(values: &[Option<f64>]) -> String {
    let is_finite = |value: &f64| value.is_finite();
    let has_finite = values.iter().flatten().any(is_finite);
    let known = || values.iter().flatten().copied().filter(|value| is_finite(value) || !has_finite);
    match (known().reduce(f64::min), known().reduce(f64::max)) {
        (Some(least), Some(largest)) => {
            format!("{} to {}", figures::rounded(least), figures::rounded(largest))
        }
        _ => String::new(),
    }
}

/// A histogram of numbers of which any quantile is known. Bins are equally wide, or grow by a
/// factor where the numbers span several orders of magnitude; what is infinite has its own.
pub(crate) fn histogram(count: u64, quantile: impl Fn(f64) -> f64, width: usize) -> Vec<String> {
    // Between which two shares of the numbers those begin that are not below a value.
    let around = |value: f64| {
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..40 {
            let middle = 0.5 * (low + high);
            if quantile(middle) < value { low = middle } else { high = middle }
        }
        (low, high)
    };
    let first = if quantile(0.0) < f64::MIN { around(f64::MIN).1 } else { 0.0 };
    let last = if quantile(1.0) > f64::MAX { around(f64::INFINITY).0 } else { 1.0 };
    let number_of = |share: f64| Some((share * count as f64).round().max(0.0));
    let mut rows = Vec::new();
    if first > 0.0 {
        rows.push(("-inf".to_owned(), number_of(first)));
    }
    let (least, largest) = (quantile(first), quantile(last));
    if least.is_finite() && largest.is_finite() {
        let edges = edges(least, largest, (last - first) * count as f64);
        let mut before = first;
        for (bin, two) in edges.windows(2).enumerate() {
            let share = if bin + 2 == edges.len() { last } else { around(two[1]).1 };
            let label = format!("{} to {}", figures::rounded(two[0]), figures::rounded(two[1]));
            rows.push((label, number_of(share - before)));
            before = share;
        }
    }
    if last < 1.0 {
        rows.push(("inf".to_owned(), number_of(1.0 - last)));
    }
    bars(&rows, width)
}

/// Where the bins of so many finite numbers begin, and where the last one ends.
fn edges(least: f64, largest: f64, count: f64) -> Vec<f64> {
    let bins = if least < largest { BINS.min(count.round() as usize).max(1) } else { 1 };
    let grows = least > 0.0 && largest / least > WIDE;
    let edge = |bin: usize| {
        let share = bin as f64 / bins as f64;
        match largest - least {
            _ if bin == bins => largest,
            _ if grows => least * (largest / least).powf(share),
            range if range.is_finite() => least + range * share,
            _ => least * (1.0 - share) + largest * share,
        }
    };
    (0..=bins).map(edge).collect()
}

/// What `stats` knows of how numbers are spread: from the smallest to the largest a line, a box of
/// one standard deviation around the mean, and the mean.
pub(crate) fn spread((least, mean, largest): (f64, f64, f64), deviation: f64, width: usize) -> [String; 2] {
    let cells = width.saturating_sub(2).clamp(20, 100);
    let place = |value: f64| match (value / 2.0 - least / 2.0) / (largest / 2.0 - least / 2.0) {
        _ if largest <= least => 0,
        _ if value >= largest => cells - 1, // also where both are infinite
        share => (share * (cells - 1) as f64).round().clamp(0.0, (cells - 1) as f64) as usize,
    };
    let around = if deviation.is_nan() { 0.0 } else { deviation };
    let (low, high) = (place(mean - around), place(mean + around));
    let sign = |cell: usize| match cell {
        cell if cell == place(mean) => '●',
        cell if (low..=high).contains(&cell) => '█',
        0 => '├',
        cell if cell == cells - 1 => '┤',
        _ => '─',
    };
    let words = format!(
        "{} to {}, mean {}, deviation {}",
        figures::rounded(least),
        figures::rounded(largest),
        figures::rounded(mean),
        figures::rounded(deviation)
    );
    [(0..cells).map(sign).collect(), words]
}

/// How many rows a sign of a sparkline stands for, in words; nothing for one.
pub(crate) fn density(signs: usize, cells: usize, what: &str) -> String {
    match signs.div_ceil(cells.max(1)) {
        0 | 1 => String::new(),
        per_cell => format!("; each sign is the mean of {}", human::plural(per_cell as u64, what)),
    }
}

#[cfg(test)]
#[path = "plot/tests.rs"]
mod tests;
