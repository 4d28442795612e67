//! Charts: bars of throughput, the slowest commits over time, throughput in each tenth of the run,
//! and what gets take beside a writer.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};
use plotters::coord::Shift;
use plotters::prelude::*;
use serde_json::Value;

use super::figures::{MEASURES, medians_of, spread};
use super::standings::Standing;
use super::table::number;

const SIZE: (u32, u32) = (900, 480);
/// Of a line chart; the names are to the right of it.
const PLOT_WIDTH: u32 = 710;
const FONT: (&str, u32) = ("sans-serif", 16);
/// FoldDB's color, then the others'.
const COLORS: [RGBColor; 10] = [
    RGBColor(208, 48, 48),
    RGBColor(70, 110, 180),
    RGBColor(90, 160, 90),
    RGBColor(150, 110, 190),
    RGBColor(220, 150, 50),
    RGBColor(60, 170, 180),
    RGBColor(140, 100, 70),
    RGBColor(220, 120, 180),
    RGBColor(120, 120, 120),
    RGBColor(180, 180, 60),
];

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;

/// A line of a chart: a name, and points.
type Line = (String, Vec<(f64, f64)>);

/// What the axes of a chart of lines show.
struct Axes {
    x_name: &'static str,
    x_label: fn(&f64) -> String,
    y_label: fn(&f64) -> String,
}

/// Plain numbers on both axes.
const fn plain(x_name: &'static str) -> Axes {
    Axes { x_name, x_label: |&value| number(value), y_label: |&value| number(value) }
}

/// Places of a distribution: their names, and the figures of them.
const PLACES: [(&str, &str); 5] =
    [("p50", "p50_us"), ("p90", "p90_us"), ("p99", "p99_us"), ("p99.9", "p99_9_us"), ("max", "max_us")];

/// A distribution of latencies: places from left to right, powers of ten upwards.
const DISTRIBUTION: Axes = Axes {
    x_name: "",
    x_label: |&place| {
        let is_one = place.fract() == 0.0 && place >= 0.0;
        is_one.then(|| PLACES.get(place as usize)).flatten().map_or(String::new(), |one| one.0.to_owned())
    },
    y_label: |&power| number(10f64.powf(power)),
};

/// Writes the charts that there are figures for, and returns their paths.
pub(super) fn write(out: &Path, name: &str, standings: &[Standing]) -> Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    let mut draw = |kind: &str, chart: &dyn Fn(&Area<'_>) -> Result<()>| -> Result<()> {
        let path = out.join(format!("{name}-{kind}.svg"));
        let area = SVGBackend::new(&path, SIZE).into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        chart(&area)?;
        area.present().map_err(failed)?;
        drop(area);
        paths.push(path);
        Ok(())
    };
    let speeds = speeds(standings);
    if !speeds.is_empty() {
        draw("throughput", &|area| bars(area, &format!("{name}: rows a second, settled"), &speeds))?;
    }
    let tenths = lines(standings, tenths);
    if !tenths.is_empty() {
        let title = format!("{name}: rows a second by the tenth of the run");
        draw("tenths", &|area| plot(area, &title, &plain("tenth"), &tenths))?;
    }
    let slowest = lines(standings, |run| by_second(run, "p99_us"));
    if !slowest.is_empty() {
        let title = format!("{name}: p99 of a commit in each second, µs");
        draw("p99", &|area| plot(area, &title, &plain("second"), &slowest))?;
    }
    for (kind, says, phase) in [
        ("reader", "gets of a reader that pauses, beside the load, µs", "reader"),
        ("beside", "gets one after the other beside a writer, µs", "read_while_writing"),
    ] {
        let gets = lines(standings, |run| distribution(&run[phase]["gets"]));
        if !gets.is_empty() {
            draw(kind, &|area| plot(area, &format!("{name}: {says}"), &DISTRIBUTION, &gets))?;
        }
    }
    Ok(paths)
}

/// Drawing fails only if a file cannot be written. Its errors hold only a text.
fn failed(error: impl std::fmt::Display) -> anyhow::Error {
    anyhow!("a chart: {error}")
}

/// Rows per second including settling, or of the load alone if nothing settles.
fn speeds(standings: &[Standing]) -> Vec<(String, f64)> {
    let measure = |name: &str| MEASURES.iter().find(|measure| measure.name == name);
    let ways = [measure("load and settle, rows/s"), measure("load, rows/s"), measure("puts, rows/s")];
    let of = |standing| ways.iter().flatten().find_map(|measure| Some(spread(measure, standing)?.median));
    standings.iter().filter_map(|standing| Some((standing.rival.clone(), of(standing)?))).collect()
}

fn lines(standings: &[Standing], of: impl Fn(&Value) -> Option<Vec<(f64, f64)>>) -> Vec<Line> {
    standings
        .iter()
        .filter_map(|standing| Some((standing.rival.clone(), of(&medians_of(standing)?)?)))
        .filter(|(_, points)| !points.is_empty())
        .collect()
}

fn tenths(run: &Value) -> Option<Vec<(f64, f64)>> {
    let speeds = run["load"]["rows_per_s_by_tenth"].as_array()?;
    Some(
        speeds
            .iter()
            .enumerate()
            .filter_map(|(place, speed)| Some((place as f64 + 1.0, speed.as_f64()?)))
            .collect(),
    )
}

fn by_second(run: &Value, figure: &str) -> Option<Vec<(f64, f64)>> {
    let seconds = run["commits_by_second"].as_array()?;
    Some(
        seconds
            .iter()
            .filter_map(|second| Some((second["second"].as_f64()?, second[figure].as_f64()?)))
            .collect(),
    )
}

/// The powers of ten of latencies, at the places of a distribution.
fn distribution(latencies: &Value) -> Option<Vec<(f64, f64)>> {
    let at = |(place, (_, figure)): (usize, &(&str, &str))| {
        Some((place as f64, latencies[*figure].as_f64()?.max(0.01).log10()))
    };
    PLACES.iter().enumerate().map(at).collect()
}

/// A bar for each rival, the first on top.
fn bars(area: &Area<'_>, title: &str, bars: &[(String, f64)]) -> Result<()> {
    let highest = bars.iter().map(|(_, value)| *value).fold(0.0, f64::max) * 1.1;
    let row = |place: usize| bars.len() - 1 - place;
    let mut chart = ChartBuilder::on(area)
        .caption(title, FONT)
        .margin(16)
        .x_label_area_size(32)
        .y_label_area_size(160)
        .build_cartesian_2d(0.0..highest.max(1.0), (0..(bars.len() - 1).max(1)).into_segmented())
        .map_err(failed)?;
    chart
        .configure_mesh()
        .disable_y_mesh()
        .label_style(FONT)
        .x_label_formatter(&|value| number(*value))
        .y_labels(bars.len() + 1)
        .y_label_formatter(&|place| match place {
            SegmentValue::CenterOf(place) if *place < bars.len() => bars[row(*place)].0.clone(),
            _ => String::new(),
        })
        .draw()
        .map_err(failed)?;
    let rectangle = |(place, (_, value)): (usize, &(String, f64))| {
        let (low, high) = (SegmentValue::Exact(row(place)), SegmentValue::Exact(row(place) + 1));
        let color = COLORS[place % COLORS.len()].filled();
        let mut bar = Rectangle::new([(0.0, low), (*value, high)], color);
        bar.set_margin(6, 6, 0, 0);
        bar
    };
    chart.draw_series(bars.iter().enumerate().map(rectangle)).map_err(failed)?;
    Ok(())
}

/// A line for each rival, with their names to the right.
fn plot(area: &Area<'_>, title: &str, axes: &Axes, lines: &[Line]) -> Result<()> {
    let (left, names) = area.split_horizontally(PLOT_WIDTH);
    let points = || lines.iter().flat_map(|(_, points)| points);
    let start = points().map(|point| point.0).fold(f64::INFINITY, f64::min);
    let end = points().map(|point| point.0).fold(start + 1.0, f64::max);
    let top = points().map(|point| point.1).fold(1.0, f64::max) * 1.1;
    let bottom = points().map(|point| point.1).fold(0.0, f64::min);
    let mut chart = ChartBuilder::on(&left)
        .caption(title, FONT)
        .margin(16)
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d(start..end, bottom..top)
        .map_err(failed)?;
    chart
        .configure_mesh()
        .light_line_style(WHITE)
        .x_desc(axes.x_name)
        .x_label_formatter(&|value| (axes.x_label)(value))
        .y_label_formatter(&|value| (axes.y_label)(value))
        .label_style(FONT)
        .draw()
        .map_err(failed)?;
    for (place, (name, points)) in lines.iter().enumerate() {
        let color = COLORS[place % COLORS.len()];
        let line = LineSeries::new(points.iter().copied(), color.stroke_width(2));
        chart.draw_series(line).map_err(failed)?;
        let y = 60 + 24 * place as i32;
        let sample = PathElement::new([(0, y + 6), (20, y + 6)], color.stroke_width(3));
        names.draw(&sample).map_err(failed)?;
        names.draw(&Text::new(name.clone(), (28, y), FONT)).map_err(failed)?;
    }
    Ok(())
}
