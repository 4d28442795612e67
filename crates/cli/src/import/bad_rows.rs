//! Bad rows: counted, the first of them reported, all of them written to a file on request. None is
//! dropped silently.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};

use crate::failure::Failure;
use crate::human;
use crate::import::row::BadRow;

/// How many are reported.
const LISTED_MAX: usize = 10;

/// What other programs write for missing values.
const USUAL_NULLS: [&str; 7] = ["NA", "N/A", "NULL", "null", "None", "\\N", "-"];

/// The bad rows of an import.
pub(crate) struct BadRows {
    /// How many there were.
    pub(crate) count: u64,
    /// The first of them: file, line, and what is wrong.
    pub(crate) listed: Vec<Listed>,
    /// The present file: its number, and its name, if there are several.
    file: (usize, Option<String>),
    aside: Option<Aside>,
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

struct Aside {
    writer: csv::Writer<File>,
    name: String,
    /// The columns of the first file, and how those of the present one are put in their order.
    header: Vec<String>,
    order: Order,
    /// The file, if it was created: it is removed if no row was bad.
    made: Option<PathBuf>,
}

/// How the fields of a row are put in the order of the columns of another file.
enum Order {
    Same,
    /// By their places in the row.
    By(Vec<usize>),
    /// It has other columns.
    Other,
}

impl Order {
    fn of(columns: &[String], wanted: &[String]) -> Order {
        if columns == wanted {
            return Order::Same;
        }
        let place = |name: &String| columns.iter().position(|column| column == name);
        match wanted.iter().map(place).collect::<Option<Vec<usize>>>() {
            Some(places) if columns.len() == wanted.len() => Order::By(places),
            _ => Order::Other,
        }
    }
}

impl BadRows {
    /// Counts bad rows, and writes them to a file if one is named, which must not exist yet: line,
    /// reason, and the row as it was.
    pub(crate) fn new(file: Option<&Path>, header: &[String]) -> Result<BadRows, Failure> {
        let aside = file.map(|path| Aside::create(path, header)).transpose()?;
        Ok(BadRows { count: 0, listed: Vec::new(), file: (0, None), aside })
    }

    /// What follows are rows of the next file, which is named if there are several.
    pub(crate) fn begin_file(&mut self, name: Option<&str>, columns: &[String]) {
        self.file = (self.file.0 + 1, name.map(str::to_owned));
        if let Some(aside) = &mut self.aside {
            aside.order = Order::of(columns, &aside.header);
        }
    }

    /// Whether rows are needed as they were in the file.
    pub(crate) fn takes_raw(&self) -> bool {
        self.aside.is_some()
    }

    /// Notes a bad row. Some are found after later ones: those that the store refuses.
    pub(crate) fn add(&mut self, line: u64, raw: &[Vec<u8>], bad: BadRow) -> Result<(), Failure> {
        self.count += 1;
        if let Some(aside) = &mut self.aside {
            let file = self.file.1.as_deref().unwrap_or("the file");
            aside.write(file, line, raw, &bad)?;
        }
        let (number, file) = self.file.clone();
        let at = self.listed.partition_point(|listed| (listed.number, listed.line) <= (number, line));
        self.listed.insert(at, Listed { number, file, line, bad });
        self.listed.truncate(LISTED_MAX);
        Ok(())
    }

    /// Passes the file of bad rows to the operating system; an empty one is removed.
    pub(crate) fn finish(&mut self) -> Result<(), Failure> {
        let Some(aside) = &mut self.aside else { return Ok(()) };
        if let (0, Some(made)) = (self.count, &aside.made) {
            return fs::remove_file(made).map_err(|error| Failure::file("remove", &aside.name, &error));
        }
        aside.writer.flush().map_err(|error| Failure::file("write", &aside.name, &error))
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

impl Aside {
    fn create(path: &Path, header: &[String]) -> Result<Aside, Failure> {
        let name = path.display().to_string();
        let is_file_or_none = fs::metadata(path).map_or(true, |facts| facts.is_file() || facts.is_dir());
        let mut how = OpenOptions::new();
        let file = how.write(true).create_new(is_file_or_none).open(path);
        let file = file.map_err(|error| Failure::file("create", &name, &error))?;
        let made = is_file_or_none.then(|| path.to_owned());
        let writer = csv::WriterBuilder::new().flexible(true).from_writer(file);
        let mut aside = Aside { writer, name, header: header.to_vec(), order: Order::Same, made };
        let header = ["line", "reason"].into_iter().chain(header.iter().map(String::as_str));
        aside.writer.write_record(header).map_err(|error| aside.failed(error))?;
        Ok(aside)
    }

    fn write(&mut self, file: &str, line: u64, raw: &[Vec<u8>], bad: &BadRow) -> Result<(), Failure> {
        let (line, bad) = (line.to_string(), bad.to_string());
        let field = |place: usize| raw.get(place).map_or(&[][..], Vec::as_slice);
        let fields: Vec<&[u8]> = match &self.order {
            Order::Same => raw.iter().map(Vec::as_slice).collect(),
            Order::By(places) => places.iter().copied().chain(places.len()..raw.len()).map(field).collect(),
            Order::Other => {
                return Err(Failure::Refused(format!(
                    "{file} has other columns than the first file, by which {} is written: import it by itself",
                    self.name
                )));
            }
        };
        let record = [line.as_bytes(), bad.as_bytes()].into_iter().chain(fields);
        self.writer.write_record(record).map_err(|error| self.failed(error))
    }

    fn failed(&self, error: csv::Error) -> Failure {
        Failure::Refused(format!("cannot write {}: {error}", self.name))
    }
}
