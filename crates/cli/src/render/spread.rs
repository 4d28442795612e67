//! How the numbers of a value are spread: a histogram of each sketch, and a line for each `stats`.

use std::io::Write;

use folddb::DynamicRules;
use folddb::folds::{FoldSpec, Record};

use crate::failure::Failure;
use crate::render::look::Look;
use crate::render::sorted::number;
use crate::render::{plot, quantiles};

/// Draws all fields of a value that have numbers to draw.
pub(crate) fn write(out: &mut dyn Write, rules: &DynamicRules, value: &[u8]) -> Result<(), Failure> {
    let width = Look::of_terminal().width.unwrap_or(plot::WIDTH_USUAL);
    let lines = of_field("", rules.as_table_rules().fold.spec(), value, width);
    if lines.is_empty() {
        let why =
            "the value has no numbers to draw: stats and quantiles have (with a column, --plot draws bars)";
        return Err(Failure::Usage(why.to_owned()));
    }
    Ok(lines.iter().try_for_each(|line| writeln!(out, "{line}"))?)
}

/// The picture of a field, under its name.
fn of_field(name: &str, spec: &str, value: &[u8], width: usize) -> Vec<String> {
    if let Ok(record) = spec.parse::<Record>() {
        let names: Vec<String> = record.names().map(str::to_owned).collect();
        let field = |(index, field): (usize, String)| {
            let spec = record.field_fold(index)?.spec();
            let value = record.field(value, &field).ok().flatten()?;
            let name = if name.is_empty() { field } else { format!("{name}.{field}") };
            Some(of_field(&name, &spec, value, width))
        };
        return names.into_iter().enumerate().filter_map(field).flatten().collect();
    }
    let Ok(fold) = spec.parse::<FoldSpec>() else { return Vec::new() };
    let Ok(shown) = fold.as_fold().show(value) else { return Vec::new() };
    let figure = |part: &str| shown.field(part).and_then(number);
    let drawn = if quantiles::is_of(spec) {
        histogram(&fold, value, figure("count"), width)
    } else {
        let ends = || Some((figure("min")?, figure("mean")?, figure("max")?));
        let deviation = figure("variance").map_or(0.0, f64::sqrt);
        ends().map(|ends| plot::spread(ends, deviation, width).to_vec()).unwrap_or_default()
    };
    let title = (!name.is_empty() && !drawn.is_empty()).then(|| format!("{name}:"));
    title.into_iter().chain(drawn).collect()
}

fn histogram(fold: &FoldSpec, value: &[u8], count: Option<f64>, width: usize) -> Vec<String> {
    let Ok(Some(_)) = fold.quantile(value, 0.5) else { return Vec::new() };
    let quantile = |q: f64| fold.quantile(value, q).ok().flatten().unwrap_or(f64::NAN);
    plot::histogram(count.map_or(0, |count| count as u64), quantile, width)
}
