//! What an import reports: how many rows are in, which files, and what was wrong.

use std::collections::BTreeMap;
use std::io::IsTerminal;

use serde_json::{Value, json};

use crate::failure::Failure;
use crate::human;
use crate::import::bad_rows::BadRows;
use crate::import::delimited::{FIELD_LINES_MAX, Span};
use crate::import::ledger::Entry;
use crate::messages;
use crate::session::Session;

/// How many files are named that are in already, and how many that cannot be imported.
const FILES_LISTED_MAX: usize = 5;
pub(crate) const REFUSED_LISTED_MAX: usize = 10;

/// A file that cannot be imported, and why.
pub(crate) struct Refused {
    pub(crate) file: String,
    pub(crate) failure: Failure,
    /// What comes before is in.
    pub(crate) is_begun: bool,
}

/// The figures of an import, over all its files.
#[derive(Default)]
pub(crate) struct Totals {
    pub(crate) read: u64,
    pub(crate) written: u64,
    /// Rows that were read and not written, since the import stopped.
    pub(crate) left: u64,
    /// Rows that had nothing to fold.
    pub(crate) empty: u64,
    /// Rows of those that --where leaves out.
    pub(crate) unwanted: u64,
    /// Which fields no row of a file had, in words.
    pub(crate) missing: Vec<String>,
    /// Which fields some rows lacked, and how many.
    pub(crate) lacking: BTreeMap<String, u64>,
    /// How many rows had a field of many lines, or of some like rows; in which file the first of
    /// them is, and where.
    pub(crate) spans: Option<(u64, String, Span)>,
    /// How many files were named, and whether that is one, by its own name.
    pub(crate) files: usize,
    pub(crate) is_single: bool,
    /// How many of them were read.
    pub(crate) files_read: usize,
    /// Files that cannot be imported, or not to their ends.
    pub(crate) refused: Vec<Refused>,
    /// Files that are empty.
    pub(crate) blank: Vec<String>,
    /// Files that have grown before, and are in now up to a last line without an end.
    pub(crate) open_ended: Vec<String>,
    /// Files that were in already.
    pub(crate) passed: Vec<Entry>,
    /// Under which names those are in that have another one, by their own names.
    pub(crate) passed_as: BTreeMap<String, String>,
    /// Those that are small, and were written since: they may be others with the same content.
    pub(crate) passed_alike: Vec<String>,
    /// Those that another import has begun to count again, and has not ended.
    pub(crate) begun_again: Vec<String>,
    /// Files are counted again.
    pub(crate) is_again: bool,
    /// The options that make rows.
    pub(crate) how: String,
    /// Where reading went on in a file.
    pub(crate) went_on: Vec<Entry>,
    /// Files that were imported earlier, with other content.
    pub(crate) changed: Vec<Entry>,
    /// What was found out about files, in words, and in how many.
    pub(crate) notes: Vec<(String, u64)>,
    /// The table exists.
    pub(crate) has_table: bool,
    /// The file that was read can be gone on with.
    pub(crate) can_go_on: bool,
}

impl Totals {
    /// Adds what was found out about a file.
    pub(crate) fn note(&mut self, file: &str, notes: &[String]) {
        for note in notes {
            let said = format!("{file}: {note}");
            match self.notes.iter_mut().find(|(known, _)| known.ends_with(note.as_str())) {
                Some((_, files)) => *files += 1,
                None => self.notes.push((said, 1)),
            }
        }
    }

    /// Adds the fields of many lines of a file.
    pub(crate) fn add_spans(&mut self, file: &str, spans: Option<(u64, Span)>) {
        if let Some((rows, first)) = spans {
            self.spans.get_or_insert_with(|| (0, file.to_owned(), first)).0 += rows;
        }
    }

    /// Whether nothing is missing, as far as it is not of bad rows.
    pub(crate) fn is_all_in(&self) -> bool {
        self.missing.is_empty() && self.refused.is_empty()
    }

    /// The same, and a file has shown that it has what is asked for.
    pub(crate) fn is_all_read(&self) -> bool {
        self.is_all_in() && (self.files_read > 0 || !self.passed.is_empty())
    }

    /// How many rows were bad before this import went on, of which none has told that ended.
    pub(crate) fn bad_before(&self) -> u64 {
        self.went_on.iter().chain(&self.passed).map(Entry::untold).sum()
    }

    /// Prints the report: as JSON on the output, or on the error output for people.
    pub(crate) fn report(
        &self,
        session: &mut Session,
        table: &str,
        bad: &BadRows,
        (how, seconds): (&str, f64),
    ) -> Result<(), Failure> {
        if session.globals.json {
            return session.report(&self.json(table, bad, (how, seconds)), |_| Ok(()));
        }
        messages::print(&self.summary(table, bad, (how, seconds)));
        for line in bad.lines() {
            messages::print(&format!("  {line}"));
        }
        for (name, rows) in &self.lacking {
            let lack = if *rows == 1 { "has" } else { "have" };
            let rows = human::plural(*rows, "row");
            messages::print(&format!(
                "  {rows} {lack} no field `{name}` (if that is meant: --optional {name})"
            ));
        }
        if let Some((rows, file, first)) = &self.spans {
            let of_file = if self.files > 1 { format!(" of {file}") } else { String::new() };
            messages::print(&format!("  {}", long_field(*rows, &of_file, *first)));
        }
        if how.is_empty() {
            for missing in &self.missing {
                messages::print(&format!("  {missing} (if no row needs it: --optional FIELD)"));
            }
        }
        self.report_files();
        Ok(())
    }

    fn report_files(&self) {
        for (note, files) in &self.notes {
            let more = if *files > 1 {
                format!(" (and in {} more)", human::plural(files - 1, "file"))
            } else {
                String::new()
            };
            messages::print(&format!("  {note}{more}"));
        }
        for entry in &self.went_on {
            let row = human::count(entry.read + entry.skip + 1);
            messages::print(&format!("  {} went on from its row {row}; those before it are in", entry.file));
        }
        for file in &self.open_ended {
            messages::print(&format!(
                "  {file} ends without a line end, and its last row is in: if more comes on that line, nothing more \
                 of the file is imported"
            ));
        }
        for entry in &self.changed {
            let rows = human::plural(entry.rows, "row");
            messages::print(&format!(
                "  {} was imported earlier with other content ({rows}), and counts as another file",
                entry.file
            ));
        }
        for entry in self.passed.iter().take(FILES_LISTED_MAX) {
            let known = self.passed_as.get(&entry.file).map_or(String::new(), |known| format!(" as {known}"));
            messages::print(&format!("  {} is in already{known}, with {}", entry.file, what_is_in(entry)));
        }
        if let [file, rest @ ..] = &self.passed_alike[..] {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" (as {})", human::plural(more as u64, "more file")),
            };
            messages::print(&format!(
                "  {file}{more} was written since, and has the same content as then: if these are other rows, --again \
                 counts them"
            ));
        }
        let unlisted = self.passed.len().saturating_sub(FILES_LISTED_MAX);
        if unlisted > 0 {
            messages::print(&format!("  and {} more are in already", human::plural(unlisted as u64, "file")));
        }
        if let [file, rest @ ..] = &self.begun_again[..] {
            let more = match rest.len() {
                0 => String::new(),
                more => format!(" (and of {})", human::plural(more as u64, "more file")),
            };
            messages::print(&format!(
                "  an import of {file}{more} with --again was broken off: the same command goes on with that"
            ));
        }
        let others = self.by_other_options();
        others
            .iter()
            .take(FILES_LISTED_MAX)
            .for_each(|(how, files)| messages::print(&other_options(how, files)));
        match self.passed.iter().filter(|entry| entry.how == self.how).count() {
            0 => {}
            _ if self.is_again => messages::print(
                "  (--again counts each file once, under whatever names, also where it was broken off and goes on)",
            ),
            1 => messages::print("  (to count it again: --again)"),
            _ => messages::print("  (to count them again: --again)"),
        }
        self.report_refused();
    }

    /// Files of which something is in by other options, by these: what this import would have made
    /// of that is not in.
    fn by_other_options(&self) -> BTreeMap<&str, Vec<&str>> {
        let mut others: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for entry in self.passed.iter().chain(&self.went_on).filter(|entry| entry.how != self.how) {
            others.entry(&entry.how).or_default().push(&entry.file);
        }
        others
    }

    fn report_refused(&self) {
        match &self.blank[..] {
            [] => {}
            [file] => messages::print(&format!("  {file} is empty")),
            [file, rest @ ..] => {
                let more = human::plural(rest.len() as u64, "more file");
                messages::print(&format!("  {file} and {more} are empty"));
            }
        }
        for Refused { failure, is_begun, .. } in self.refused.iter().take(REFUSED_LISTED_MAX) {
            let how_far = if *is_begun { "not imported to the end" } else { "not imported" };
            messages::print(&format!("  {how_far}: {failure}"));
        }
        let unlisted = self.refused.len().saturating_sub(REFUSED_LISTED_MAX);
        if unlisted > 0 {
            messages::print(&format!("  not imported: {}", human::plural(unlisted as u64, "more file")));
        }
    }

    fn json(&self, table: &str, bad: &BadRows, (how, seconds): (&str, f64)) -> Value {
        let bad_rows = bad.listed.iter().map(|listed| {
            let mut row =
                json!({ "line": listed.line, "column": listed.bad.column, "reason": listed.bad.reason });
            if let Some(file) = &listed.file {
                row["file"] = file.as_str().into();
            }
            row
        });
        let names = |entries: &[Entry]| entries.iter().map(|entry| entry.file.clone()).collect::<Value>();
        json!({
            "table": table,
            "rows_read": self.read,
            "rows_imported": self.written,
            "rows_empty": self.empty - self.unwanted,
            "rows_left_out": self.unwanted,
            "rows_bad": bad.count,
            "rows_bad_before": self.bad_before(),
            "rows_left": self.left,
            "bad_rows": bad_rows.collect::<Value>(),
            "missing": (!self.missing.is_empty()).then(|| self.missing.join("; ")),
            "lacking": self.lacking,
            "long_fields": self.spans.as_ref().map_or(Value::Null, |(rows, file, first)| {
                let file = (self.files > 1).then_some(file);
                json!({ "rows": rows, "file": file, "line": first.line, "lines": first.lines })
            }),
            "files_read": self.files_read,
            "files_in_already": names(&self.passed),
            "files_gone_on_with": names(&self.went_on),
            "files_in_by_other_options": self.by_other_options().iter().flat_map(|(how, files)| {
                files.iter().map(move |file| json!({ "file": file, "how": how }))
            }).collect::<Value>(),
            "files_refused": self.refused.iter().map(|Refused { file, failure, is_begun }| {
                json!({ "file": file, "reason": failure.to_string(), "begun": is_begun })
            }).collect::<Value>(),
            "files_empty": self.blank,
            "whole": how.is_empty(),
            "seconds": seconds,
        })
    }

    fn summary(&self, table: &str, bad: &BadRows, (how, seconds): (&str, f64)) -> String {
        let mut text = format!("imported {}", human::plural(self.written, "row"));
        if self.has_table {
            text.push_str(&format!(" into {table}"));
        }
        if self.files > 1 {
            text.push_str(&format!(" from {}", human::plural(self.files_read as u64, "file")));
        }
        if std::io::stderr().is_terminal() {
            text.push_str(&format!(" in {seconds:.2} s"));
        }
        text.push_str(how);
        if !self.has_table {
            text.push_str(&format!("; no table {table} is made"));
        }
        if self.left > 0 && self.written > 0 {
            text.push_str(&format!("; {} read and not written", human::plural(self.left, "row")));
        }
        if !how.is_empty() && self.can_go_on {
            text.push_str("; the same command goes on from there");
        }
        let begun = self.refused.iter().filter(|refused| refused.is_begun).count();
        for (files, how_far) in [(self.refused.len() - begun, "not imported"), (begun, "not to the end")] {
            if files > 0 {
                text.push_str(&format!("; {} {how_far}", human::plural(files as u64, "file")));
            }
        }
        if self.unwanted > 0 {
            text.push_str(&format!("; {} left out by --where", human::plural(self.unwanted, "row")));
        }
        let empty = self.empty - self.unwanted;
        if empty > 0 {
            text.push_str(&format!("; {} had nothing to fold", human::plural(empty, "row")));
        }
        let before = self.bad_before();
        if before > 0 {
            let rows = human::plural(before, "bad row");
            text.push_str(&format!("; {rows} of an earlier run of this import not imported"));
        }
        if bad.count > 0 {
            text.push_str(&format!("; {} not imported:", human::plural(bad.count, "bad row")));
        }
        text
    }
}

/// The rows of a file that is in.
fn what_is_in(entry: &Entry) -> String {
    let mut text = human::plural(entry.rows, "row");
    if entry.bad > 0 {
        text.push_str(&format!(" and without {}", human::plural(entry.bad, "bad row")));
    }
    text
}

/// What is reported of files that are in by other options.
fn other_options(how: &str, files: &[&str]) -> String {
    let (files, were, them) = match files {
        [file] => ((*file).to_owned(), "was", "it"),
        [file, rest @ ..] => {
            (format!("{file} and {}", human::plural(rest.len() as u64, "more file")), "were", "them")
        }
        [] => return String::new(),
    };
    format!(
        "  {files} {were} imported with {how}: what is in of {them} from then is in by those options only (to \
         import {them} by the present ones, too: --again)"
    )
}

/// What is reported about fields of many lines, or of some that are like rows.
fn long_field(rows: u64, of_file: &str, Span { line, lines, is_of_rows }: Span) -> String {
    let place = format!("from line {line}{of_file} on");
    let what = match rows {
        1 => format!("a field spans {lines} lines, {place}"),
        _ => format!(
            "{} have a field of more than {FIELD_LINES_MAX} lines, or of lines like rows; the first spans {lines}, \
             {place}",
            human::plural(rows, "row")
        ),
    };
    match is_of_rows {
        true => format!("{what}, which are like rows: a quote may be stray (if they are text: --multiline)"),
        false => format!("{what}: if it is no text with line breaks, a quote is stray"),
    }
}
