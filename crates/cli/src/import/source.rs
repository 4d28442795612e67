//! Files of rows: a path or stdin, unpacked by its first bytes, with its bytes counted.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Seek};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use folddb::text::size_text;

use crate::args::InputFormat;
use crate::failure::Failure;
use crate::file_names;
#[cfg(feature = "parquet")]
use crate::import::columnar;
use crate::import::header;
use crate::import::kept::{self, Form};
use crate::import::ledger::Inode;
use crate::import::lines::Pattern;
use crate::import::row::without_mark;
use crate::import::spaced::{self, Begin};
use crate::import::unpack;
use crate::interrupt;

const BUFFER_BYTES: usize = 1 << 18;
/// How much of a pipe is read at once, and how many chunks may wait.
const CHUNK_BYTES: usize = 1 << 16;
const CHUNKS_AHEAD: usize = 4;
/// After this time without data a reader of a pipe is notified.
const PATIENCE: Duration = Duration::from_millis(100);
pub(crate) use unpack::GZIP_MAGIC;

/// What is said of a file before it is opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Said {
    /// What its lines are, which is believed. Else a text that has no rows in its lines is told by
    /// how it begins, and refused.
    pub(crate) format: bool,
    /// Whether its first line names the columns.
    pub(crate) header: bool,
}

impl Said {
    /// Nothing.
    pub(crate) const NOTHING: Said = Said { format: false, header: false };
    /// All that is found out by its first lines.
    pub(crate) const ALL: Said = Said { format: true, header: true };
}

/// An open file of rows.
pub(crate) struct Source {
    /// Its decompressed contents.
    pub(crate) reader: Box<dyn BufRead>,
    /// Its name, for messages.
    pub(crate) name: String,
    /// Which file it is; none if it is a pipe.
    pub(crate) inode: Option<Inode>,
    /// What is to be checked before a row is taken, if it is packed, and no pipe.
    pub(crate) packed: Option<Packed>,
    /// Bytes of the compressed file; none for a pipe.
    pub(crate) bytes_total: Option<u64>,
    /// Bytes read from the file so far.
    pub(crate) bytes_read: Arc<AtomicU64>,
    /// Its first bytes say that it is packed.
    pub(crate) is_packed: bool,
    /// They are elements of a JSON array.
    pub(crate) is_array: bool,
    /// It is a file that is not followed, and may be longer the next time.
    pub(crate) may_grow: bool,
    /// How its rows are read, if it has bad rows that were kept.
    pub(crate) kept: Option<Form>,
    /// Lines that begin with it are no rows.
    pub(crate) comment: Option<u8>,
}

/// Opens a file that grows: where it ends, a read fails with `WouldBlock`, until another file has
/// its name.
pub(crate) fn follow(path: &str, said: Said) -> Result<Source, Failure> {
    let failed = |error: io::Error| Failure::file("open", path, &error);
    let file = File::open(path).map_err(failed)?;
    if !file.metadata().map_err(failed)?.is_file() {
        return Err(Failure::Usage(format!("{path} is no file: only a file is followed")));
    }
    let mut head = [0; 4];
    let head_len = file.read_at(&mut head, 0).map_err(failed)?;
    if unpack::is_packed(&head[..head_len]) {
        return Err(Failure::Usage(format!("{path} is packed, and does not grow: leave --follow out")));
    }
    let facts = file.metadata().map_err(failed)?;
    let source = unpack(Box::new(Growing::of(path, file)), path, Some(facts.len()), said)?;
    Ok(Source { inode: Some(Inode::of(&facts)), ..source })
}

/// Opens the file that has come in the place of one that was followed, once there is one.
pub(crate) fn follow_next(path: &str, said: Said) -> Result<Source, Failure> {
    loop {
        interrupt::check()?;
        match std::fs::metadata(path) {
            Ok(facts) if facts.len() > 0 => return follow(path, said),
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                return Err(Failure::file("open", path, &error));
            }
            _ => std::thread::sleep(PATIENCE),
        }
    }
}

/// How much of what was read is remembered, at the beginning and at the end.
const REMEMBERED_BYTES: usize = 4096;

/// A file that grows.
struct Growing {
    path: String,
    file: File,
    /// Another file has its name: it is read to its end once more.
    is_replaced: bool,
    /// It was emptied and filled again: what it has now is read from its beginning, as another one.
    is_refilled: bool,
    /// What was read first, and last.
    begin: Vec<u8>,
    last: Vec<u8>,
}

impl Growing {
    fn of(path: &str, file: File) -> Growing {
        let (begin, last) = (Vec::new(), Vec::new());
        Growing { path: path.to_owned(), file, is_replaced: false, is_refilled: false, begin, last }
    }

    /// Remembers what was read.
    fn remember(&mut self, read: &[u8]) {
        let wanted = (REMEMBERED_BYTES - self.begin.len()).min(read.len());
        self.begin.extend_from_slice(&read[..wanted]);
        self.last.extend_from_slice(&read[read.len().saturating_sub(REMEMBERED_BYTES)..]);
        self.last.drain(..self.last.len().saturating_sub(REMEMBERED_BYTES));
    }

    /// Whether it still has what was read of it, up to here. What copies a log and empties it
    /// leaves the same file, which may soon be longer than before.
    fn has_what_was_read(&self, up_to: u64) -> io::Result<bool> {
        let has = |wanted: &[u8], at: u64| -> io::Result<bool> {
            let mut there = vec![0; wanted.len()];
            match self.file.read_exact_at(&mut there, at) {
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
                read => read.map(|()| there == wanted),
            }
        };
        Ok(has(&self.begin, 0)? && has(&self.last, up_to - self.last.len() as u64)?)
    }

    /// Whether another file has its name, or it has been cut: nothing is added to it any more.
    fn is_left(&mut self) -> io::Result<bool> {
        let (facts, at) = (self.file.metadata()?, self.file.stream_position()?);
        Ok(match std::fs::metadata(&self.path) {
            Ok(named) => (named.dev(), named.ino()) != (facts.dev(), facts.ino()) || named.len() < at,
            // A file of its name is to come.
            Err(error) if error.kind() == io::ErrorKind::NotFound => false,
            Err(error) => return Err(error),
        })
    }
}

impl Read for Growing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.is_refilled {
            return Ok(0);
        }
        let up_to = self.file.stream_position()?;
        let len = self.file.read(buffer)?;
        self.is_refilled = !self.is_replaced && !self.has_what_was_read(up_to)?;
        if self.is_refilled {
            return Ok(0);
        }
        if len > 0 || self.is_replaced {
            self.remember(&buffer[..len]);
            return Ok(len);
        }
        self.is_replaced = self.is_left()?;
        if !self.is_replaced {
            std::thread::sleep(PATIENCE);
        }
        Err(io::ErrorKind::WouldBlock.into())
    }
}

/// Opens a file; `-` is stdin.
pub(crate) fn open(path: &str, said: Said) -> Result<Source, Failure> {
    if path == "-" {
        return unpack(Box::new(Pipe::of(io::stdin(), said)), "stdin", None, said);
    }
    let file = File::open(path).map_err(|error| Failure::file("open", path, &error))?;
    let facts = file.metadata().map_err(|error| Failure::file("read", path, &error))?;
    if facts.is_dir() {
        return Err(Failure::Usage(format!("{path} is a directory; name a file")));
    }
    if !facts.is_file() {
        return unpack(Box::new(Pipe::of(file, said)), path, None, said);
    }
    #[cfg(feature = "parquet")]
    if let Some(content) = columnar::open(&file, path, facts.len())? {
        let columnar::Content { reader, bytes_read } = content;
        let (name, inode, bytes_total) = (path.to_owned(), Some(Inode::of(&facts)), Some(facts.len()));
        return Ok(Source {
            reader,
            name,
            inode,
            packed: None,
            bytes_total,
            bytes_read,
            is_packed: false,
            is_array: false,
            may_grow: false,
            kept: None,
            comment: None,
        });
    }
    let file = Arc::new(file);
    let mut source = unpack(Box::new(Whole::of(&file)), path, Some(facts.len()), said)?;
    source.inode = Some(Inode::of(&facts));
    source.may_grow = true;
    source.packed = source.is_packed.then(|| Packed { file, name: path.to_owned() });
    Ok(source)
}

/// The same, to import its rows. A packed file that is damaged from its beginning on is named as
/// that.
pub(crate) fn open_rows(path: &str, said: Said) -> Result<Source, Failure> {
    open(path, said).map_err(|failure| match failure {
        Failure::Refused(_) => damage_of(path).unwrap_or(failure),
        other => other,
    })
}

/// What is wrong with a file, if it is packed.
fn damage_of(path: &str) -> Option<Failure> {
    let file = if Path::new(path).is_file() { Arc::new(File::open(path).ok()?) } else { return None };
    let mut head = [0; 4];
    file.read_exact_at(&mut head, 0).ok()?;
    let packed = Packed { file, name: path.to_owned() };
    unpack::is_packed(&head).then(|| packed.check().err()).flatten()
}

/// An open file from its beginning on. Several may read the same one.
struct Whole {
    file: Arc<File>,
    at: u64,
}

impl Whole {
    fn of(file: &Arc<File>) -> Whole {
        Whole { file: Arc::clone(file), at: 0 }
    }
}

impl Read for Whole {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read_at(buffer, self.at)?;
        self.at += len as u64;
        Ok(len)
    }
}

/// A packed file that is open.
pub(crate) struct Packed {
    file: Arc<File>,
    name: String,
}

impl Packed {
    /// Reads it to its end before a row of it is taken: its checksum comes last, and damaged data
    /// unpacks to other rows. It is the open file that is read, whatever has its name by now. A
    /// pipe cannot be read twice, and plain text has no checksum.
    ///
    /// # Errors
    /// The file is damaged or cut off.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        let mut packed = BufReader::with_capacity(BUFFER_BYTES, Whole::of(&self.file));
        let failed = |error: io::Error| Failure::file("read", &self.name, &error);
        let program = unpack::program(packed.fill_buf().map_err(failed)?);
        let mut content = unpack::unpacked(packed).map_err(failed)?;
        let mut bytes = 0;
        loop {
            interrupt::check()?;
            match content.fill_buf() {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(damaged(&self.name, program, bytes, &error)),
                Ok([]) => return Ok(()),
                Ok(read) => {
                    let len = read.len();
                    bytes += len as u64;
                    content.consume(len);
                }
            }
        }
    }
}

fn damaged(path: &str, program: &str, bytes: u64, error: &io::Error) -> Failure {
    Failure::Refused(format!(
        "{path} is damaged or cut off: {error} ({} of content were read before); no row is taken of what it \
         holds (what can be read of it: unpack it yourself, as with {program} -dc {path} | folddb import … -)",
        size_text(bytes)
    ))
}

fn unpack(file: Box<dyn Read>, name: &str, bytes_total: Option<u64>, said: Said) -> Result<Source, Failure> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    let counted = Counted { file, bytes_read: Arc::clone(&bytes_read) };
    let mut buffered = BufReader::with_capacity(BUFFER_BYTES, counted);
    wait_for(&mut buffered)?;
    let failed = |error: io::Error| Failure::file("read", name, &error);
    let head = buffered.fill_buf().map_err(failed)?;
    refuse_other_kinds(name, head, said)?;
    let is_packed = unpack::is_packed(head);
    let mut content = unpack::unpacked(buffered).map_err(failed)?;
    wait_for(&mut content)?;
    let head = content.fill_buf().map_err(failed)?;
    refuse_other_kinds(name, head, said)?;
    let kept = Form::of_head(head);
    let is_array = kept.is_none() && unpack::is_array(head);
    let reader = match kept {
        Some(_) => kept::rows(content),
        None => unpack::lined(content).map_err(failed)?,
    };
    let name = name.to_owned();
    let (inode, packed, comment, may_grow) = (None, None, None, false);
    Ok(Source {
        reader,
        name,
        inode,
        packed,
        bytes_total,
        bytes_read,
        is_packed,
        is_array,
        may_grow,
        kept,
        comment,
    })
}

/// What is unpacked from a pipe: rows are taken before its checksum is read, and where that is
/// wrong, the error says so.
struct Unchecked(Box<dyn BufRead>);

impl Unchecked {
    fn failed(error: io::Error) -> io::Error {
        match error.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => error,
            kind => io::Error::new(
                kind,
                format!(
                    "{error}; what a pipe packs is checked after its rows, so any that are in may be wrong: to take \
                     them back, drop the table and import it again, or import the packed file by its name, which is \
                     checked first"
                ),
            ),
        }
    }
}

impl Read for Unchecked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.0.read(buffer).map_err(Unchecked::failed)
    }
}

impl BufRead for Unchecked {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.0.fill_buf().map_err(Unchecked::failed)
    }

    fn consume(&mut self, bytes: usize) {
        self.0.consume(bytes);
    }
}

/// Waits for the first bytes.
fn wait_for(reader: &mut dyn BufRead) -> Result<(), Failure> {
    while matches!(reader.fill_buf(), Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
        interrupt::check()?;
    }
    Ok(())
}

/// Names a file of another kind, and what to do.
fn refuse_other_kinds(name: &str, head: &[u8], said: Said) -> Result<(), Failure> {
    let other_text = || if said.format { None } else { unpack::other_text(head) };
    match unpack::other_kind(head).or_else(other_text) {
        None => Ok(()),
        Some((what, advice)) => {
            let advice = advice.replace("FILE", name);
            Err(Failure::Usage(format!("{name} is {what}, and no text with rows ({advice})")))
        }
    }
}

/// The format of a file, by its name; CSV if that does not show it.
pub(crate) fn by_name(path: &str) -> InputFormat {
    stated_by_name(path).unwrap_or(InputFormat::Csv)
}

/// As [`by_name`]; if the name does not show the format, the first line does: `{` begins NDJSON,
/// and lines of logs are known. Words between spaces are known by the second line, too.
pub(crate) fn by_content(path: &str, source: &mut Source) -> Result<InputFormat, Failure> {
    match stated_by_name(path) {
        Some(format) => Ok(format),
        None if source.begins_with(b'{')? => Ok(InputFormat::Ndjson),
        None => {
            let line = source.first_line()?;
            Ok(match format_of_log(&line) {
                Some(format) => format,
                None if Begin::of(&source.head()?).is_spaced() => InputFormat::Spaces,
                None => InputFormat::Csv,
            })
        }
    }
}

fn stated_by_name(path: &str) -> Option<InputFormat> {
    match file_names::form(path).as_deref() {
        Some("csv") => Some(InputFormat::Csv),
        Some("tsv" | "tab") => Some(InputFormat::Tsv),
        Some("ndjson" | "jsonl" | "json") => Some(InputFormat::Ndjson),
        #[cfg(feature = "parquet")] // whose rows are made lines of JSON
        Some("parquet" | "arrow" | "feather") => Some(InputFormat::Ndjson),
        _ => None,
    }
}

impl Source {
    /// The same, whose errors say that rows that are in may be wrong, if nothing can check them
    /// before.
    pub(crate) fn of_rows(mut self) -> Source {
        if self.is_packed && self.packed.is_none() {
            self.reader = Box::new(Unchecked(self.reader));
        }
        self
    }

    /// What is read at once, without comments. Waits for the first bytes of a pipe.
    pub(crate) fn head(&mut self) -> Result<Cow<'_, [u8]>, Failure> {
        wait_for(&mut self.reader)?;
        let head = self.reader.fill_buf().map_err(|error| Failure::file("read", &self.name, &error))?;
        let Some(comment) = self.comment else { return Ok(Cow::Borrowed(head)) };
        let lines = without_mark(head).split_inclusive(|&byte| byte == b'\n');
        Ok(Cow::Owned(lines.filter(|line| line.first() != Some(&comment)).flatten().copied().collect()))
    }

    /// The first line that is not empty, of what is read at once.
    pub(crate) fn first_line(&mut self) -> Result<String, Failure> {
        let head = self.head()?;
        let head = without_mark(&head).trim_ascii_start();
        let line = head.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// Whether this is the first byte that is neither blank nor a byte order mark, of those that
    /// are read at once. Waits for the first bytes of a pipe.
    fn begins_with(&mut self, byte: u8) -> Result<bool, Failure> {
        let head = self.head()?;
        let head = without_mark(&head);
        Ok(head.trim_ascii_start().first() == Some(&byte))
    }
}

/// The data of a pipe, read by its own thread. If nothing arrives for [`PATIENCE`], a read fails
/// with `WouldBlock` and may be retried, so that the reader can do something else in between.
///
/// What is read first has a whole line, by which the form of rows is found, or two where it takes
/// these.
struct Pipe {
    said: Said,
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
    is_begun: bool,
}

impl Pipe {
    fn of(mut file: impl Read + Send + 'static, said: Said) -> Pipe {
        let (sender, chunks) = mpsc::sync_channel(CHUNKS_AHEAD);
        std::thread::spawn(move || {
            loop {
                let mut chunk = vec![0; CHUNK_BYTES];
                let read = match file.read(&mut chunk) {
                    Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                    read => read,
                };
                let is_last = !matches!(read, Ok(1..));
                let sent = sender.send(read.map(|len| {
                    chunk.truncate(len);
                    chunk
                }));
                if is_last || sent.is_err() {
                    return;
                }
            }
        });
        Pipe { said, chunks, chunk: Cursor::default(), is_begun: false }
    }

    /// Adds a chunk to those that do not tell yet what the rows are.
    fn begin(&mut self, chunk: Vec<u8>) {
        let is_last = chunk.is_empty();
        self.chunk.get_mut().extend(chunk);
        self.is_begun = is_last || tells_form(self.chunk.get_ref(), self.said);
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while !self.is_begun || self.chunk.position() == self.chunk.get_ref().len() as u64 {
            match self.chunks.recv_timeout(PATIENCE) {
                Ok(chunk) if !self.is_begun => self.begin(chunk?),
                Ok(chunk) => self.chunk = Cursor::new(chunk?),
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(RecvTimeoutError::Disconnected) if self.is_begun => return Ok(0),
                Err(RecvTimeoutError::Disconnected) => self.is_begun = true,
            }
            if self.chunk.get_ref().is_empty() && self.is_begun {
                return Ok(0);
            }
        }
        self.chunk.read(buffer)
    }
}

/// Whether the first bytes of a pipe say what its rows are: they are packed, or have a whole line,
/// or the beginning of an object or of an array of JSON.
fn tells_form(head: &[u8], said: Said) -> bool {
    let text = without_mark(head).trim_ascii_start();
    let in_array = text.strip_prefix(b"[").map(<[u8]>::trim_ascii_start);
    let is_line = |text: &[u8]| text.iter().any(|byte| matches!(byte, b'\n' | b'\r'));
    let is_told = match in_array {
        Some(rest) => rest.starts_with(b"{") || is_line(rest),
        None => text.starts_with(b"{") || is_line(text) && (said.header || lines_tell_form(text)),
    };
    is_told || unpack::is_packed(head) || head.len() >= CHUNK_BYTES
}

/// Whether the lines that have come whole, one at least, say what rows are. The first one does,
/// unless it may be a row itself, or the first of words between spaces: then the second one tells,
/// and nothing is lost by waiting for it, as a row would be that is taken for names.
fn lines_tell_form(text: &[u8]) -> bool {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    let whole = &text[..text.iter().rposition(is_end).unwrap_or(0)];
    let mut lines = whole.split(is_end).filter(|line| !line.trim_ascii().is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next());
    let first = String::from_utf8_lossy(first);
    let is_of_log = || format_of_log(&first).is_some();
    second.is_some() || !(header::may_be_row(&first) || spaced::may_be_words(&first)) || is_of_log()
}

/// The format of a log that has such a line.
fn format_of_log(line: &str) -> Option<InputFormat> {
    Some(match line {
        line if Pattern::combined().fits(line) => InputFormat::Combined,
        line if Pattern::common().fits(line) => InputFormat::Common,
        line if Pattern::vhost().fits(line) => InputFormat::Vhost,
        line if Pattern::syslog().fits(line) => InputFormat::Syslog,
        line if Pattern::logfmt().fits(line) => InputFormat::Logfmt,
        _ => return None,
    })
}

struct Counted {
    file: Box<dyn Read>,
    bytes_read: Arc<AtomicU64>,
}

impl Read for Counted {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.file.read(buffer)?;
        self.bytes_read.fetch_add(len as u64, Ordering::Relaxed);
        Ok(len)
    }
}

#[cfg(test)]
#[path = "source/tests.rs"]
mod tests;
