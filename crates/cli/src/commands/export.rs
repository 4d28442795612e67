//! `folddb export STORE TABLE [FILE]`: the rows of a table as CSV or NDJSON.

use std::fs::OpenOptions;
use std::io::{BufWriter, Write};
use std::path::Path;

use crate::args::{ExportArgs, OutputFormat};
use crate::commands::scan;
use crate::failure::Failure;
use crate::session::Session;

pub(crate) fn run(args: &ExportArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let format = args.format.unwrap_or_else(|| format_of(&args.file, session.globals.json));
    if args.file == "-" {
        return scan::print(&mut session.out, &table, &args.rows, format);
    }
    let file = OpenOptions::new().write(true).create_new(true).open(&args.file);
    let file = file.map_err(|error| Failure::file("create", &args.file, &error))?;
    let mut file = BufWriter::new(file);
    scan::print(&mut file, &table, &args.rows, format)?;
    file.flush().map_err(|error| Failure::file("write", &args.file, &error))
}

fn format_of(file: &str, json: bool) -> OutputFormat {
    match Path::new(file).extension().and_then(|extension| extension.to_str()) {
        Some("ndjson" | "jsonl" | "json") => OutputFormat::Ndjson,
        None if json => OutputFormat::Ndjson,
        _ => OutputFormat::Csv,
    }
}
