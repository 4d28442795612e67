//! The bytes of files as values, and values as files: of any length, with at most one piece in
//! memory.
//!
//! A table that takes no streams (its values are inline, or checked as a whole) gets the whole
//! value, up to the longest that it allows; if folding could have made a longer one, as operands
//! that fold to it.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::Path;

use folddb::codec::CodecError;
use folddb::{AsOf, BytesTable, Datum, Seq, WriteOp};
use indicatif::ProgressBar;

use crate::failure::Failure;

/// Longest value that is held to be written as operands that fold to it, in bytes.
const HELD_BYTES_MAX: usize = 256 << 20;

/// A source that reports its progress to a bar.
struct Counted<'a, R>(R, &'a ProgressBar, u64);

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, buf: &mut [u8]) -> io::Result<usize> {
        let read = self.0.read(buf)?;
        self.1.inc(read as u64);
        self.2 += read as u64;
        Ok(read)
    }
}

/// Puts everything that `from` gives; `name` is its source. Returns the seq, and the number of
/// bytes.
pub(crate) fn put(
    table: &BytesTable,
    (op, key): (WriteOp, &[u8]),
    from: impl Read,
    name: &str,
    bar: &ProgressBar,
) -> Result<(Seq, u64), Failure> {
    let mut from = Counted(from, bar, 0);
    let of_file = |error: folddb::Error| Failure::Store(error.context(name));
    let seq = if table.takes_streams() || !folds(table) {
        let mut writer = table.writer(op, key)?;
        let mut piece = vec![0; 256 << 10];
        loop {
            match from.read(&mut piece) {
                Ok(0) => break writer.finish().map_err(of_file)?,
                Ok(read) => {
                    writer.write_all(&piece[..read]).map_err(|error| of_stream(name, "store", error))?
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(cannot_read(name, &error)),
            }
        }
    } else {
        let mut value = Vec::new();
        let read = from.by_ref().take(HELD_BYTES_MAX as u64 + 1).read_to_end(&mut value);
        read.map_err(|error| cannot_read(name, &error))?;
        if value.len() > HELD_BYTES_MAX {
            let table = table.name();
            return Err(Failure::Usage(format!(
                "{name} is longer than what is held of a value of table `{table}`, which folds: {HELD_BYTES_MAX} bytes; \
                 use a table with a separation threshold and `append`, or one of bytes"
            )));
        }
        let value = as_stored(table, value).map_err(|cause| of_file(cause.into()))?;
        table.write_whole(op, key, &value).map_err(of_file)?
    };
    Ok((seq, from.2))
}

/// The bytes of a file as the table stores them: merged JSON has one form there, but may have
/// others in a file.
fn as_stored(table: &BytesTable, bytes: Vec<u8>) -> Result<Vec<u8>, CodecError> {
    if table.rules().as_table_rules().fold.spec() != "json-merge" {
        return Ok(bytes);
    }
    let mut value = Vec::with_capacity(bytes.len());
    let text = String::from_utf8(bytes)
        .map_err(|_| CodecError::new("expected JSON, found bytes that are not text"))?;
    table.rules().read_value(&Datum::Text(text), &mut value)?;
    Ok(value)
}

/// Whether a value is an operand, which may need parsing, and may be longer than one op.
fn folds(table: &BytesTable) -> bool {
    table.rules().as_table_rules().fold.spec() != "replace"
}

/// Writes the value of `key` to `to`, which has this name. Returns its length; none if the key has
/// no value, and then nothing was opened.
pub(crate) fn get<W: Write>(
    table: &BytesTable,
    key: &[u8],
    to: impl FnOnce() -> Result<W, Failure>,
    name: &str,
    bar: &ProgressBar,
) -> Result<Option<u64>, Failure> {
    let Some(reader) = table.read(key)? else { return Ok(None) };
    bar.set_length(reader.len_bytes());
    write(reader, to, name, bar).map(Some)
}

/// The same for the value that the key had at a past moment, which is read as a whole.
pub(crate) fn get_at<W: Write>(
    (table, as_of): (&BytesTable, AsOf),
    key: &[u8],
    to: impl FnOnce() -> Result<W, Failure>,
    name: &str,
    bar: &ProgressBar,
) -> Result<Option<u64>, Failure> {
    let Some(value) = table.get_at(key, as_of)? else { return Ok(None) };
    bar.set_length(value.len() as u64);
    write(&value[..], to, name, bar).map(Some)
}

fn write<W: Write>(
    from: impl Read,
    to: impl FnOnce() -> Result<W, Failure>,
    name: &str,
    bar: &ProgressBar,
) -> Result<u64, Failure> {
    let mut from = Counted(from, bar, 0);
    let mut to = to()?;
    let mut piece = vec![0; 256 << 10];
    loop {
        match from.read(&mut piece) {
            Ok(0) => break,
            Ok(read) => to.write_all(&piece[..read]).map_err(|error| cannot_write(name, &error))?,
            Err(error) => return Err(of_stream(name, "read the value for", error)),
        }
    }
    to.flush().map_err(|error| cannot_write(name, &error))?;
    Ok(from.2)
}

/// Opens a file for reading, with its length if it has one; `-` is the standard input.
pub(crate) fn open(name: &str) -> Result<(Box<dyn Read>, Option<u64>), Failure> {
    if name == "-" {
        return Ok((Box::new(io::stdin().lock()), None));
    }
    let file = File::open(name).map_err(|error| cannot_read(name, &error))?;
    let facts = file.metadata().map_err(|error| cannot_read(name, &error))?;
    if facts.is_dir() {
        return Err(Failure::Usage(format!("{name} is a directory; `import-dir` takes one")));
    }
    Ok((Box::new(file), facts.is_file().then_some(facts.len())))
}

/// Creates a file that must not exist yet.
pub(crate) fn create(path: &Path) -> Result<File, Failure> {
    File::create_new(path).map_err(|error| cannot_write(&path.display().to_string(), &error))
}

fn cannot_read(name: &str, error: &io::Error) -> Failure {
    Failure::file("read", name, error)
}

fn cannot_write(name: &str, error: &io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::BrokenPipe => Failure::OutputClosed,
        _ => Failure::file("write", name, error),
    }
}

/// The failure of the store behind one of a reader or a writer.
fn of_stream(name: &str, doing: &str, error: io::Error) -> Failure {
    let message = format!("cannot {doing} {name}: {error}");
    match error.into_inner().map(|inner| inner.downcast::<folddb::Error>()) {
        Some(Ok(error)) => Failure::Store(error.context(name)),
        _ => Failure::Refused(message),
    }
}
