//! What came out: the medians of each rival's runs, a table with the ratio of FoldDB to the best of the others, a JSON
//! file with everything, and charts.

mod figures;
mod table;
mod charts;

use std::path::Path;

use anyhow::{Context, Result};
use serde_json::{Map, Value, json};

use crate::contest::{Outcome, Runs};

/// A rival with the medians of its runs, or the sentence why it has none.
pub(crate) struct Standing {
    pub(crate) rival: String,
    pub(crate) medians: Result<Value, String>,
}

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

/// The medians of the runs that were done; a rival of which one failed has failed.
fn standing(runs: &Runs) -> Standing {
    let mut done = Vec::new();
    let mut failed = None;
    for outcome in &runs.outcomes {
        match outcome {
            Outcome::Done(figures) => done.push(figures),
            Outcome::Failed(why) => failed = failed.or(Some(why.clone())),
        }
    }
    let medians = match failed {
        Some(why) => Err(why),
        None => Ok(figures::medians(&done)),
    };
    Standing { rival: runs.rival.clone(), medians }
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
        .filter_map(|standing| Some((standing.rival.clone(), standing.medians.as_ref().ok()?.clone())))
        .collect();
    let ratios: Map<String, Value> = figures::MEASURES
        .iter()
        .filter_map(|measure| {
            let (ratio, best) = figures::ratio_to_best(measure, standings)?;
            Some((measure.name.to_owned(), json!({ "ratio": ratio, "best_rival": best })))
        })
        .collect();
    json!({ "contest": settings, "folddb_to_best": ratios, "medians": medians, "runs": all })
}
