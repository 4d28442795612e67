//! Bad rows: counted, the first of them reported, all of them kept in a file on request. None is
//! dropped silently.
//!
//! **Kept before they are passed.** What is to be kept of the rows of a batch is in the file before
//! the batch is committed, whose record says that they were read. With it the record says how long
//! the file is then, and the hash of that ([`Kept`]). So after a kill the same command finds the
//! file as its record has it, cuts what came after, which is not in the record, and goes on there.
//! A file that has changed meanwhile, as by mending, is refused. Where all that is named is in, the
//! file is not touched, and not refused before there is a row to keep.
//!
//! A file that no record knows is that of an import of which nothing is in, if its first lines say
//! so: then what is found again must be what is there.
//!
//! **Of several kinds.** Rows with other columns than those of the first file, or of another form,
//! are kept in files of their own (`aside.rs`). The record of a file has the place in the one that
//! keeps its rows.

use crate::failure::Failure;
use crate::human;
use crate::import::aside::{Aside, Asked, Order};
use crate::import::kept::Form;
use crate::import::ledger::Kept;
use crate::import::row::BadRow;
use crate::import::tape::Tape;

/// How many are reported.
const LISTED_MAX: usize = 10;

/// How much waits to be written.
const WAITING_BYTES: usize = 1 << 20;

/// What other programs write for missing values.
const USUAL_NULLS: [&str; 7] = ["NA", "N/A", "NULL", "null", "None", "\\N", "-"];

/// The bad rows of an import.
#[derive(Default)]
pub(crate) struct BadRows {
    /// How many there were.
    pub(crate) count: u64,
    /// How many lines behind their first ones quoted fields have taken with them.
    lines: u64,
    /// The first of them: file, line, and what is wrong.
    pub(crate) listed: Vec<Listed>,
    /// The present file: its number, its name, and whether there are several.
    file: (usize, String, bool),
    /// What is asked for, if they are to be kept.
    asked: Option<Asked>,
    /// The files that keep them, one for each kind of rows; the first one is asked for by its name.
    asides: Vec<Aside>,
    /// The form and the columns of the present file, and which of those keeps its rows, in which
    /// order of their fields; none before the first bad row of that kind.
    kind: Option<(Form, Vec<String>)>,
    present: Option<(usize, Order)>,
    /// Which of them was written last, if they are one pipe.
    last: usize,
}

/// A bad row that is reported.
pub(crate) struct Listed {
    number: usize,
    /// The file, if there are several.
    pub(crate) file: Option<String>,
    pub(crate) line: u64,
    pub(crate) bad: BadRow,
}

impl Listed {
    /// Where it is, in words.
    pub(crate) fn place(&self) -> String {
        match &self.file {
            Some(file) => format!("{file} line {}", self.line),
            None => format!("line {}", self.line),
        }
    }
}

/// Where the files end that keep them.
pub(crate) type Places = Vec<Tape>;

impl BadRows {
    /// Counts bad rows, and keeps them if that is asked for, those of the first kind in the file
    /// that is named.
    pub(crate) fn new(asked: Option<Asked>, form: &Form, header: &[String]) -> Result<BadRows, Failure> {
        let first = asked.as_ref().map(|asked| Aside::open(asked, form, header)).transpose()?;
        Ok(BadRows { asked, asides: first.into_iter().collect(), ..BadRows::default() })
    }

    /// What follows are rows of the next file; whether it is one of several.
    pub(crate) fn begin_file(
        &mut self,
        name: &str,
        is_one_of_several: bool,
        form: &Form,
        columns: &[String],
    ) {
        self.file = (self.file.0 + 1, name.to_owned(), is_one_of_several);
        if self.asked.is_some() {
            self.kind = Some((form.clone(), columns.to_vec()));
            self.present = self.place_of(form, columns);
        }
    }

    /// Which file keeps rows of a kind.
    fn place_of(&self, form: &Form, columns: &[String]) -> Option<(usize, Order)> {
        let mut asides = self.asides.iter().enumerate();
        asides.find_map(|(at, aside)| Some((at, aside.order(form, columns)?)))
    }

    /// Whether rows are needed as they were in the file.
    pub(crate) fn takes_raw(&self) -> bool {
        self.asked.is_some()
    }

    /// Whether so many wait to be kept that they should be.
    pub(crate) fn is_full(&self) -> bool {
        self.asides.iter().map(Aside::waiting_bytes).sum::<usize>() >= WAITING_BYTES
    }

    /// Notes a bad row, by its number among all rows of the file, and its line. Some are found
    /// after later ones: those that the store refuses.
    pub(crate) fn add(
        &mut self,
        (number, line): (u64, u64),
        raw: &[Vec<u8>],
        bad: BadRow,
    ) -> Result<(), Failure> {
        let kept = self.put((number, line), raw, &bad);
        self.count(line, bad);
        kept
    }

    /// Counts a bad row.
    pub(crate) fn count(&mut self, line: u64, bad: BadRow) {
        (self.count, self.lines) = (self.count + 1, self.lines + bad.lines_later);
        let (number, file, is_one_of_several) = self.file.clone();
        let at = self.listed.partition_point(|listed| (listed.number, listed.line) <= (number, line));
        let file = is_one_of_several.then_some(file);
        self.listed.insert(at, Listed { number, file, line, bad });
        self.listed.truncate(LISTED_MAX);
    }

    /// Keeps a bad row, if that is asked for. It is in the file after [`BadRows::keep`].
    pub(crate) fn put(
        &mut self,
        (number, line): (u64, u64),
        raw: &[Vec<u8>],
        bad: &BadRow,
    ) -> Result<(), Failure> {
        let (Some(asked), Some((form, columns))) = (&self.asked, &self.kind) else { return Ok(()) };
        if self.present.is_none() {
            let another = Aside::beside(&self.asides, asked, form, columns)?;
            self.present = another.order(form, columns).map(|order| (self.asides.len(), order));
            self.asides.push(another);
        }
        if let Some((at, order)) = &self.present {
            let place = format!("{} line {line}", shown(&self.file.1));
            self.asides[*at].put((number, &place), (raw, form, order), bad);
        }
        Ok(())
    }

    /// Passes what is kept to the disk, up to the row of this number of the present file, before
    /// these rows are committed; where the file ends then that keeps them. A pipe cannot take back
    /// what it was given: see [`BadRows::flush`].
    pub(crate) fn keep(&mut self, up_to: u64) -> Result<Option<Kept>, Failure> {
        let present = self.present.as_ref().map(|(at, _)| *at);
        for (at, aside) in self.asides.iter_mut().enumerate().filter(|(_, aside)| !aside.is_pipe()) {
            // Those of other files were passed on when these ended.
            aside.write(if Some(at) == present { up_to } else { u64::MAX }, false)?;
            aside.sync()?;
        }
        Ok(present.and_then(|at| self.asides[at].kept()))
    }

    /// Where the file ends that keeps rows of a kind, if there is one.
    pub(crate) fn kept_of(&self, form: &Form, columns: &[String]) -> Option<Kept> {
        let (at, _) = self.place_of(form, columns)?;
        self.asides[at].kept()
    }

    /// Passes on all that is kept, to a pipe too: the rows are committed.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        for (at, aside) in self.asides.iter_mut().enumerate() {
            if aside.is_pipe() && aside.waiting_bytes() > 0 {
                aside.write(u64::MAX, self.last != at)?;
                self.last = at;
            }
        }
        self.keep(u64::MAX).map(drop)
    }

    /// Where the files end, to come back to.
    pub(crate) fn place(&self) -> Places {
        self.asides.iter().map(Aside::place).collect()
    }

    /// Forgets what was kept since: these rows come again.
    pub(crate) fn go_back(&mut self, places: Places) -> Result<(), Failure> {
        let mut asides = self.asides.iter_mut().enumerate();
        asides.try_for_each(|(at, aside)| aside.go_back(places.get(at)))
    }

    /// How many there were, and how many lines behind their first ones they have taken with them.
    pub(crate) fn counts(&self) -> (u64, u64) {
        (self.count, self.lines)
    }

    /// Forgets those of the present file, before which there were so many.
    pub(crate) fn forget_file(&mut self, counts: (u64, u64), places: Places) -> Result<(), Failure> {
        let number = self.file.0;
        (self.count, self.lines) = counts;
        self.listed.retain(|listed| listed.number != number);
        self.go_back(places)
    }

    /// Takes back what was kept since by one call of [`BadRows::keep`]: it waits again.
    pub(crate) fn take_back(&mut self, places: &Places) -> Result<(), Failure> {
        let mut asides = self.asides.iter_mut().enumerate();
        asides.try_for_each(|(at, aside)| aside.take_back(places.get(at)))
    }

    /// Passes the files of bad rows to the disk; empty ones are removed.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        self.flush()?;
        self.asides.iter().try_for_each(Aside::finish)
    }

    /// The lines that report them.
    pub(crate) fn lines(&self) -> Vec<String> {
        let mut lines: Vec<String> =
            self.listed.iter().map(|listed| format!("{}: {}", listed.place(), listed.bad)).collect();
        let unlisted = self.count - self.listed.len() as u64;
        if unlisted > 0 {
            lines.push(format!("and {} more", human::count(unlisted)));
        }
        if let Some(null) = self.likely_null() {
            lines.push(format!("if `{null}` means a missing value, say so: --null '{null}'"));
        }
        if self.listed.iter().any(|listed| listed.bad.reason.contains("not UTF-8")) {
            let advice = "if the file is in Latin-1: iconv -f LATIN1 -t UTF-8 FILE | folddb import … -";
            lines.push(advice.to_owned());
        }
        let has_rows = |aside: &&Aside| aside.kept().is_some_and(|kept| kept.bytes > 0);
        let beside = self.asides.iter().skip(1).filter(has_rows);
        let beside: Vec<&str> = beside.map(Aside::name).collect();
        if !beside.is_empty() {
            let files = beside.join(", ");
            lines.push(format!("rows with other columns, or of another format, are kept in {files}"));
        }
        lines
    }

    /// A text that other programs write for missing values, if it made rows bad.
    fn likely_null(&self) -> Option<&'static str> {
        let blamed = |null: &&str| {
            let quoted = [format!("`{null}`"), format!("{null:?}")];
            self.listed.iter().any(|listed| quoted.iter().any(|quoted| listed.bad.reason.contains(quoted)))
        };
        USUAL_NULLS.into_iter().find(blamed)
    }
}

fn shown(file: &str) -> &str {
    if file == "-" { "stdin" } else { file }
}
