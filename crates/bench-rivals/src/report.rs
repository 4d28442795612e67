//! The results: the medians of the runs of each rival, a table with the ratio of FoldDB to the best
//! of the others, a JSON file with everything, and charts.

mod standings;
mod figures;
mod table;
mod page;
mod charts;

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::outcome::{Outcome, Runs};
use crate::report::standings::Standing;

/// Prints the table; writes `NAME.json` and the charts into a directory.
pub(crate) fn write(out: &Path, name: &str, runs: &[Runs], settings: &Value) -> Result<()> {
    let standings: Vec<Standing> = runs.iter().map(standing).collect();
    println!("{}", table::render(name, settings, &standings));
    let path = out.join(format!("{name}.json"));
    let text = serde_json::to_string_pretty(&as_json(runs, &standings, settings))?;
    std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
    println!("{}", path.display());
    for chart in charts::write(out, name, &standings)? {
        println!("{}", chart.display());
    }
    Ok(())
}

/// The table of kept results for docs/BENCHMARKS.md, with a column of older ones if they are given.
pub(crate) fn page(results: &Path, before: Option<&Path>) -> Result<String> {
    page::render(&read(results)?, before.map(read).transpose()?.as_ref())
}

/// Draws the charts of kept results, beside them.
pub(crate) fn redraw(results: &Path) -> Result<()> {
    let kept = read(results)?;
    let all = kept["runs"].as_object().context("these results have no `runs`")?;
    let standing = |(rival, runs): (&String, &Value)| {
        let done = runs.as_array().into_iter().flatten().filter(|run| run.get("failed").is_none());
        Standing { rival: rival.clone(), runs: Ok(done.cloned().collect()) }
    };
    let standings: Vec<Standing> = all.iter().map(standing).collect();
    let name = results.file_stem().map(|stem| stem.to_string_lossy()).unwrap_or_default();
    for chart in charts::write(results.parent().unwrap_or(Path::new("")), &name, &standings)? {
        println!("{}", chart.display());
    }
    Ok(())
}

fn read(path: &Path) -> Result<Value> {
    let text = std::fs::read_to_string(path).with_context(|| format!("read {}", path.display()))?;
    serde_json::from_str(&text).with_context(|| format!("{} is no JSON", path.display()))
}

/// The runs, if all of them succeeded; a rival with a failed run has failed.
fn standing(runs: &Runs) -> Standing {
    let mut done = Vec::new();
    let mut failed = None;
    for outcome in &runs.outcomes {
        match outcome {
            Outcome::Done(figures) => done.push(figures.clone()),
            Outcome::Failed(why) => failed = failed.or(Some(why.clone())),
        }
    }
    Standing { rival: runs.rival.clone(), runs: failed.map_or(Ok(done), Err) }
}

fn as_json(runs: &[Runs], standings: &[Standing], settings: &Value) -> Value {
    let of_outcome = |outcome: &Outcome| match outcome {
        Outcome::Done(figures) => figures.clone(),
        Outcome::Failed(why) => json!({ "failed": why }),
    };
    let all: Map<String, Value> = runs
        .iter()
        .map(|runs| (runs.rival.clone(), runs.outcomes.iter().map(of_outcome).collect::<Value>()))
        .collect();
    let medians: Map<String, Value> = standings
        .iter()
        .filter_map(|standing| Some((standing.rival.clone(), figures::medians_of(standing)?)))
        .collect();
    let spreads: Map<String, Value> = standings.iter().map(spreads).collect();
    let ratios: Map<String, Value> = figures::MEASURES
        .iter()
        .filter_map(|measure| {
            let (ratio, best) = figures::ratio_to_best(measure, standings)?;
            Some((measure.name.to_owned(), json!({ "ratio": ratio, "best_rival": best })))
        })
        .collect();
    json!({ "contest": settings, "folddb_to_best": ratios, "figures": spreads, "medians": medians, "runs": all })
}

/// Each figure of the table, with the least and the greatest of the rounds.
fn spreads(standing: &Standing) -> (String, Value) {
    let of = |measure: &figures::Measure| {
        let figures::Spread { median, min, max } = figures::spread(measure, standing)?;
        Some((measure.name.to_owned(), json!({ "median": median, "min": min, "max": max })))
    };
    (standing.rival.clone(), Value::Object(figures::MEASURES.iter().filter_map(of).collect()))
}
