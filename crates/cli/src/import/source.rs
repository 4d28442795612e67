//! Files of rows: a path or stdin, unpacked by its first bytes, with its bytes counted.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::args::InputFormat;
use crate::failure::Failure;
use crate::file_names;
use crate::import::lines::Pattern;
use crate::import::unpack;

const BUFFER_BYTES: usize = 1 << 18;
/// How much of a pipe is read at once, and how many chunks may wait.
const CHUNK_BYTES: usize = 1 << 16;
const CHUNKS_AHEAD: usize = 4;
/// After this time without data a reader of a pipe is notified.
const PATIENCE: Duration = Duration::from_millis(100);
pub(crate) use unpack::GZIP_MAGIC;

/// An open file of rows.
pub(crate) struct Source {
    /// Its decompressed contents.
    pub(crate) reader: Box<dyn BufRead>,
    /// Its name, for messages.
    pub(crate) name: String,
    /// Bytes of the compressed file; none for a pipe.
    pub(crate) bytes_total: Option<u64>,
    /// Bytes read from the file so far.
    pub(crate) bytes_read: Arc<AtomicU64>,
}

/// Opens a file; `-` is stdin.
pub(crate) fn open(path: &str) -> Result<Source, Failure> {
    if path == "-" {
        return unpack(Box::new(Pipe::of(io::stdin())), "stdin", None);
    }
    let file = File::open(path).map_err(|error| Failure::file("open", path, &error))?;
    let facts = file.metadata().map_err(|error| Failure::file("read", path, &error))?;
    if facts.is_dir() {
        return Err(Failure::Usage(format!("{path} is a directory; name a file")));
    }
    match facts.is_file() {
        true => unpack(Box::new(file), path, Some(facts.len())),
        false => unpack(Box::new(Pipe::of(file)), path, None),
    }
}

fn unpack(file: Box<dyn Read>, name: &str, bytes_total: Option<u64>) -> Result<Source, Failure> {
    let bytes_read = Arc::new(AtomicU64::new(0));
    let counted = Counted { file, bytes_read: Arc::clone(&bytes_read) };
    let mut buffered = BufReader::with_capacity(BUFFER_BYTES, counted);
    while matches!(buffered.fill_buf(), Err(error) if error.kind() == io::ErrorKind::WouldBlock) {}
    let failed = |error: io::Error| Failure::file("read", name, &error);
    refuse_other_kinds(name, buffered.fill_buf().map_err(failed)?)?;
    let mut content = unpack::unpacked(buffered).map_err(failed)?;
    wait_for(&mut content);
    refuse_other_kinds(name, content.fill_buf().map_err(failed)?)?;
    let reader = unpack::lined(content).map_err(failed)?;
    Ok(Source { reader, name: name.to_owned(), bytes_total, bytes_read })
}

/// Waits for the first bytes.
fn wait_for(reader: &mut dyn BufRead) {
    while matches!(reader.fill_buf(), Err(error) if error.kind() == io::ErrorKind::WouldBlock) {}
}

/// Names a file of another kind, and what to do.
fn refuse_other_kinds(name: &str, head: &[u8]) -> Result<(), Failure> {
    match unpack::other_kind(head) {
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
/// and lines of access logs are known.
pub(crate) fn by_content(path: &str, source: &mut Source) -> Result<InputFormat, Failure> {
    match stated_by_name(path) {
        Some(format) => Ok(format),
        None if source.begins_with(b'{')? => Ok(InputFormat::Ndjson),
        None => {
            let line = source.first_line()?;
            Ok(match line.as_str() {
                line if Pattern::combined().fits(line) => InputFormat::Combined,
                line if Pattern::common().fits(line) => InputFormat::Common,
                _ => InputFormat::Csv,
            })
        }
    }
}

fn stated_by_name(path: &str) -> Option<InputFormat> {
    match file_names::form(path).as_deref() {
        Some("csv") => Some(InputFormat::Csv),
        Some("tsv" | "tab") => Some(InputFormat::Tsv),
        Some("ndjson" | "jsonl" | "json") => Some(InputFormat::Ndjson),
        _ => None,
    }
}

impl Source {
    /// The first line that is not empty, of what is read at once.
    pub(crate) fn first_line(&mut self) -> Result<String, Failure> {
        wait_for(&mut self.reader);
        let head = self.reader.fill_buf().map_err(|error| Failure::file("read", &self.name, &error))?;
        let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head).trim_ascii_start();
        let line = head.split(|byte| matches!(byte, b'\n' | b'\r')).next().unwrap_or_default();
        Ok(String::from_utf8_lossy(line).into_owned())
    }

    /// Whether this is the first byte that is neither blank nor a byte order mark, of those that
    /// are read at once. Waits for the first bytes of a pipe.
    fn begins_with(&mut self, byte: u8) -> Result<bool, Failure> {
        while matches!(self.reader.fill_buf(), Err(error) if error.kind() == io::ErrorKind::WouldBlock) {}
        let head = self.reader.fill_buf().map_err(|error| Failure::file("read", &self.name, &error))?;
        let head = head.strip_prefix("\u{feff}".as_bytes()).unwrap_or(head);
        Ok(head.trim_ascii_start().first() == Some(&byte))
    }
}

/// The data of a pipe, read by its own thread. If nothing arrives for [`PATIENCE`], a read fails
/// with `WouldBlock` and may be retried, so that the reader can do something else in between.
struct Pipe {
    chunks: Receiver<io::Result<Vec<u8>>>,
    chunk: Cursor<Vec<u8>>,
}

impl Pipe {
    fn of(mut file: impl Read + Send + 'static) -> Pipe {
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
        Pipe { chunks, chunk: Cursor::default() }
    }
}

impl Read for Pipe {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.chunk.position() == self.chunk.get_ref().len() as u64 {
            self.chunk = match self.chunks.recv_timeout(PATIENCE) {
                Ok(chunk) => Cursor::new(chunk?),
                Err(RecvTimeoutError::Timeout) => return Err(io::ErrorKind::WouldBlock.into()),
                Err(RecvTimeoutError::Disconnected) => return Ok(0),
            };
        }
        self.chunk.read(buffer)
    }
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
