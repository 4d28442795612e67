//! `folddb check-fold`: looks for operands that break a law of a fold, among samples from a file or
//! among the operands of a table. A search, not a proof.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

use folddb::folds::FoldSpec;
use folddb::law::{self, LawReport, LawResult};
use folddb::{BytesTable, Datum, Fold, datum};

use crate::args::CheckFoldArgs;
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::keys;
use crate::render::json::{Json, object};
use crate::session::Session;

/// Samples if neither a file nor a table gives any: most folds read some of them.
const USUAL_SAMPLES: [&str; 12] =
    ["0", "1", "2", "3", "-1", "-7", "0.1", "0.2", "1e100", "-1e100", "abc", "{\"a\": 1}"];

pub(crate) fn run(args: &CheckFoldArgs, session: &mut Session) -> Result<(), Failure> {
    let report = match (&args.spec, &args.store, &args.table) {
        (_, Some(store), Some(table)) => {
            let store = session.read(store)?;
            of_table(&store.known_table(table)?, args.limit)?
        }
        (Some(spec), _, _) => of_spec(spec, args)?,
        _ => return Err(Failure::Usage("name a fold, or --store and --table".to_owned())),
    };
    session.report(&as_json(&report), |out| write!(out, "{report}"))?;
    if report.holds() { Ok(()) } else { Err(Failure::Reported(ExitCode::Refused)) }
}

fn of_spec(spec: &str, args: &CheckFoldArgs) -> Result<LawReport, Failure> {
    let fold = spec.parse::<FoldSpec>().map_err(|error| Failure::Usage(error.to_string()))?;
    let fold = &**fold.as_fold();
    let samples = match &args.samples {
        Some(file) => samples_in(file, fold, args.hex)?,
        None => usual_samples(fold),
    };
    if samples.is_empty() {
        return Err(Failure::Usage(
            "there are no samples; name a file with an operand on each line by --samples".to_owned(),
        ));
    }
    Ok(law::check(fold, b"", &samples))
}

fn usual_samples(fold: &dyn Fold) -> Vec<Vec<u8>> {
    let read = |text: &&str| {
        let mut bytes = Vec::new();
        let datum = keys::value_datum(&fold.spec(), text).ok()?;
        fold.read(&datum, &mut bytes).is_ok().then_some(bytes)
    };
    USUAL_SAMPLES.iter().filter_map(read).collect()
}

/// The operands in a file, one per line.
fn samples_in(file: &Path, fold: &dyn Fold, hex: bool) -> Result<Vec<Vec<u8>>, Failure> {
    let name = file.display().to_string();
    let opened = File::open(file).map_err(|error| Failure::file("open", &name, &error))?;
    let mut samples = Vec::new();
    for (index, line) in BufReader::new(opened).lines().enumerate() {
        let line = line.map_err(|error| Failure::file("read", &name, &error))?;
        if line.is_empty() {
            continue;
        }
        let place = |cause: &str| Failure::Usage(format!("{name}, line {}: {cause}", index + 1));
        let mut bytes = Vec::new();
        if hex {
            bytes =
                datum::from_hex(line.trim()).ok_or_else(|| place("expected pairs of hexadecimal digits"))?;
        } else {
            let datum = keys::value_datum(&fold.spec(), &line).map_err(|cause| place(&cause))?;
            fold.read(&datum, &mut bytes).map_err(|cause| place(cause.message()))?;
        }
        samples.push(bytes);
    }
    Ok(samples)
}

fn of_table(table: &BytesTable, limit: usize) -> Result<LawReport, Failure> {
    table.rules().check_writable()?;
    let Some(fold) = table.rules().fold() else {
        return Err(Failure::Refused(format!(
            "this program does not have the fold of table `{}`",
            table.name()
        )));
    };
    let fold: Arc<dyn Fold> = Arc::clone(fold);
    let mut samples = Vec::new();
    let mut rows = table.scan().limit(limit).rows()?;
    let mut first_key = None;
    while let Some((key, _)) = rows.next_row()? {
        first_key.get_or_insert_with(|| key.to_vec());
        for op in table.operands(key)? {
            samples.extend(op.values().map(<[u8]>::to_vec));
        }
        if samples.len() >= limit {
            break;
        }
    }
    if samples.is_empty() {
        return Err(Failure::Absent(format!("table `{}` holds no operands to check", table.name())));
    }
    Ok(law::check(&*fold, &first_key.unwrap_or_default(), &samples))
}

fn as_json(report: &LawReport) -> Json {
    let operand = |(name, datum): &(&'static str, Datum)| ((*name).to_owned(), datum.clone());
    let law = |result: &LawResult| {
        object! {
            "law": result.law.to_string(),
            "tried": result.tried,
            "counter_example": result.counter_example.as_ref().map(|case| object! {
                "finding": case.finding.as_str(),
                "operands": Json(Datum::Map(case.operands.iter().map(operand).collect())),
            }),
        }
    };
    object! {
        "fold": report.spec.as_str(),
        "holds": report.holds(),
        "approximate": report.approximate,
        "samples": report.samples,
        "samples_malformed": report.samples_malformed,
        "laws": report.laws.iter().map(law).collect::<Vec<_>>(),
    }
}
