//! `folddb export STORE TABLE [--to FILE]`: the rows of a table as CSV, TSV, NDJSON, Markdown
//! or SQL.

use crate::args::{ExportArgs, OutputFormat, RangeArgs};
use crate::failure::Failure;
use crate::file_names;
use crate::human;
use crate::interrupt;
use crate::messages;
use crate::out_file;
use crate::render::print_rows;
use crate::session::Session;

pub(crate) fn run(args: &ExportArgs, session: &mut Session) -> Result<(), Failure> {
    let named = args.to.as_deref().or(args.file.as_deref());
    if named.is_none() {
        check_range(&args.rows.range)?;
    }
    let file = named.unwrap_or("-");
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    let format = args.format.or_else(|| format_of(file)).unwrap_or(match session.globals.json {
        true => OutputFormat::Ndjson,
        false => OutputFormat::Csv,
    });
    let begun = session.transaction.as_ref();
    let deadlines = match file {
        "-" => print_rows::print(&mut session.out, &table, &args.rows, format, begun)?,
        file => {
            let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
            out_file::write_new(file, |out| print_rows::print(out, &table, &args.rows, format, begun))?
        }
    };
    let says_another = args.format.is_none() && format_of(file).is_none();
    if let (true, Some(ending)) = (says_another && file != "-", file_names::form(file)) {
        let written = if format == OutputFormat::Csv { "CSV" } else { "NDJSON" };
        messages::print(&format!(
            "{file} is {written}: .{ending} says no format that is written (--format names one)"
        ));
    }
    if deadlines > 0 {
        let values = human::plural(deadlines, "value");
        messages::print(&format!("the deadlines of {values} are left out (dump keeps them)"));
    }
    Ok(())
}

/// Refuses a range that includes the name of a file: options of keys take all words that follow.
fn check_range(range: &RangeArgs) -> Result<(), Failure> {
    let bounds = [
        ("--prefix", &range.prefix),
        ("--from", &range.from),
        ("--after", &range.after),
        ("--before", &range.before),
        ("--through", &range.through),
    ];
    for (option, words) in bounds {
        if let [_, .., file] = words.as_slice()
            && (file_names::packing(file).is_some() || format_of(file).is_some())
        {
            return Err(Failure::Usage(format!(
                "`{file}` would be taken as part of the key of {option}: name the file with --to, or say --to - for stdout"
            )));
        }
    }
    Ok(())
}

/// The format of a file of this name, if the name shows it.
fn format_of(file: &str) -> Option<OutputFormat> {
    match file_names::form(file).as_deref() {
        Some("ndjson" | "jsonl" | "json") => Some(OutputFormat::Ndjson),
        Some("tsv" | "tab") => Some(OutputFormat::Tsv),
        Some("csv") => Some(OutputFormat::Csv),
        Some("md" | "markdown") => Some(OutputFormat::Markdown),
        Some("sql") => Some(OutputFormat::Sql),
        _ => None,
    }
}
