//! The content of files that are packed, or that are a JSON array, as plain lines.

use std::io::{self, BufRead, BufReader, Read};

use bzip2::bufread::MultiBzDecoder;
use flate2::bufread::GzDecoder;
use ruzstd::decoding::StreamingDecoder;

use crate::import::row::without_mark;

const BUFFER_BYTES: usize = 1 << 18;
/// The beginning of packed files.
pub(crate) const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
const BZIP2_MAGIC: &[u8] = b"BZh";
/// What follows it, after a digit: a block, or the end.
const BZIP2_NEXT: [[u8; 6]; 2] = [[0x31, 0x41, 0x59, 0x26, 0x53, 0x59], [0x17, 0x72, 0x45, 0x38, 0x50, 0x90]];

#[cfg(not(feature = "parquet"))]
const PARQUET_ADVICE: &str = "convert it: duckdb -c \"copy 'FILE' to '/dev/stdout' (format csv)\" | folddb import … -; or \
                              build folddb with --features parquet";
#[cfg(not(feature = "parquet"))]
const ARROW_ADVICE: &str =
    "convert it to CSV, as with pyarrow.csv.write_csv; or build folddb with --features parquet";
#[cfg(feature = "parquet")]
const PARQUET_ADVICE: &str = "it is cut off, packed, or comes from a pipe: name one that is whole";
#[cfg(feature = "parquet")]
const ARROW_ADVICE: &str = PARQUET_ADVICE;

/// Files of other kinds, by their first bytes: what they are, and what to do.
const OTHERS: [(&[u8], &str, &str); 15] = [
    (b"PAR1", "a Parquet file", PARQUET_ADVICE),
    (b"ARROW1", "an Arrow file", ARROW_ADVICE),
    (b"Obj\x01", "an Avro file", "convert it to lines of JSON: avro-tools tojson FILE"),
    (b"PK\x03\x04", "a zip archive or a spreadsheet", "unzip it, or save the sheet as CSV"),
    (
        b"SQLite format 3\0",
        "a SQLite database",
        "export a table: sqlite3 -csv -header FILE 'select * from …'",
    ),
    (b"%PDF", "a PDF document", "it has no rows"),
    (b"ORC", "an ORC file", "convert it to lines of JSON: orc-contents FILE | folddb import … -"),
    (b"\x89PNG", "a picture", "it has no rows"),
    (b"\xff\xd8\xff", "a picture", "it has no rows"),
    (b"GIF8", "a picture", "it has no rows"),
    (b"\x7fELF", "a program", "it has no rows; import what it prints: PROGRAM | folddb import … -"),
    (b"\xfd7zXZ\0", "packed with xz", "unpack it: xz -dc FILE | folddb import … -"),
    (b"\x04\x22\x4d\x18", "packed with lz4", "unpack it: lz4 -dc FILE | folddb import … -"),
    (b"\xff\xfe", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE | folddb import … -"),
    (b"\xfe\xff", "UTF-16 text", "convert it: iconv -f UTF-16 -t UTF-8 FILE | folddb import … -"),
];

/// What a file is that has no rows of text, if it begins like one, and what to do.
pub(crate) fn other_kind(head: &[u8]) -> Option<(&'static str, &'static str)> {
    // A header of CSV may begin with letters like these.
    let is_text = !head.iter().take(64).any(|byte| *byte < b'\t') && !head.starts_with(b"%PDF");
    let found = OTHERS
        .iter()
        .find(|(magic, ..)| head.starts_with(magic) && !(is_text && magic.iter().all(u8::is_ascii_graphic)));
    let is_tar = head.get(257..262) == Some(b"ustar");
    let tar = is_tar.then_some(("a tar archive", "unpack it, and import the directory"));
    found.map(|(_, what, advice)| (*what, *advice)).or(tar)
}

/// What a text is that has its rows otherwise than in lines, and what to do; or what is no text.
pub(crate) fn other_text(head: &[u8]) -> Option<(&'static str, &'static str)> {
    if is_packed(head) {
        return None;
    }
    let text = without_mark(head).trim_ascii_start();
    let begins = |with: &[u8]| text.get(..with.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(with));
    let first = text.split(|byte| matches!(byte, b'\n')).next().unwrap_or_default().trim_ascii_end();
    let near = &head[..head.len().min(1024)];
    let is_cut = |error: std::str::Utf8Error| error.error_len().is_none();
    if begins(b"<!doctype html") || begins(b"<html") {
        Some(("a page of HTML", "save its table as CSV"))
    } else if begins(b"<?xml") {
        Some((
            "an XML file",
            "convert it to lines of JSON: yq -p xml -o json -I 0 '.ROWS[]' FILE | folddb import … -",
        ))
    } else if first == b"---" || begins(b"%yaml") {
        Some(("a YAML file", "convert it to lines of JSON: yq -o json -I 0 '.[]' FILE | folddb import … -"))
    } else if first == b"{" || is_object_on_lines(text, first) {
        let advice = "make a line of each row: jq -c '.ROWS[]' FILE | folddb import … -; or, of several objects, jq -c . FILE";
        Some(("an object of JSON on many lines", advice))
    } else if is_array_of_lists(text) {
        let advice = "make an object of each list: jq -c '.[] | {a: .[0], b: .[1]}' FILE | folddb import … -";
        Some(("an array of lists of JSON", advice))
    } else if near.contains(&0) && !std::str::from_utf8(near).map_or_else(is_cut, |_| true) {
        Some(("a file of another kind", "its bytes are no text; convert it to CSV or to lines of JSON"))
    } else {
        None
    }
}

/// Whether a text begins as an array of lists of JSON does, and as no log that has brackets.
fn is_array_of_lists(text: &[u8]) -> bool {
    let inner = text.strip_prefix(b"[").and_then(|rest| rest.trim_ascii_start().strip_prefix(b"["));
    inner
        .and_then(|rest| rest.trim_ascii_start().first())
        .is_some_and(|byte| b"\"-0123456789[".contains(byte))
}

/// Whether the first line of a text is the beginning of an object of JSON that goes on in the next
/// one.
fn is_object_on_lines(text: &[u8], first: &[u8]) -> bool {
    let mut lines = text.split(|&byte| byte == b'\n').map(<[u8]>::trim_ascii).filter(|line| !line.is_empty());
    let next = lines.nth(1).unwrap_or_default();
    first.starts_with(b"{")
        && matches!(first.last(), Some(b',' | b'{' | b'[' | b':'))
        && next.starts_with(b"\"")
        || first.starts_with(b"{") && first.ends_with(b"[") && next.starts_with(b"{")
}

/// Whether a file that begins like this is packed.
pub(crate) fn is_packed(head: &[u8]) -> bool {
    head.starts_with(&GZIP_MAGIC) || head.starts_with(&ZSTD_MAGIC) || head.starts_with(BZIP2_MAGIC)
}

/// The program that unpacks a file that begins like this.
pub(crate) fn program(head: &[u8]) -> &'static str {
    match head {
        head if head.starts_with(&ZSTD_MAGIC) => "zstd",
        head if head.starts_with(BZIP2_MAGIC) => "bzip2",
        _ => "gzip",
    }
}

/// The unpacked content, by the first bytes.
pub(crate) fn unpacked(mut packed: impl BufRead + 'static) -> io::Result<Box<dyn BufRead>> {
    let head = packed.fill_buf()?;
    let unpacked: Box<dyn Read> = if head.starts_with(&GZIP_MAGIC) {
        Box::new(Members::Member(Box::new(GzDecoder::new(packed))))
    } else if head.starts_with(&ZSTD_MAGIC) {
        Box::new(Frames {
            between: Some(Ahead { head: Vec::new(), rest: Box::new(Patient(packed)) }),
            frame: None,
        })
    } else if head.starts_with(BZIP2_MAGIC)
        && BZIP2_NEXT.iter().any(|next| head.get(4..).is_some_and(|rest| rest.starts_with(next)))
    {
        Box::new(MultiBzDecoder::new(Patient(packed)))
    } else {
        return Ok(Box::new(packed));
    };
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, unpacked)))
}

/// The content as lines: the elements of an array of objects are lines.
pub(crate) fn lined(mut content: Box<dyn BufRead>) -> io::Result<Box<dyn BufRead>> {
    if !is_array(content.fill_buf()?) {
        return Ok(content);
    }
    let elements = Elements { content, depth: 0, in_text: false, is_escaped: false, is_ended: false };
    Ok(Box::new(BufReader::with_capacity(BUFFER_BYTES, elements)))
}

/// Whether what begins like this is an array of objects.
pub(crate) fn is_array(head: &[u8]) -> bool {
    let head = without_mark(head).trim_ascii_start();
    head.strip_prefix(b"[").is_some_and(|rest| is_of_objects(rest.trim_ascii()))
}

/// A reader that waits where another one has nothing yet.
struct Patient<R>(R);

impl<R: BufRead> Read for Patient<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            match self.0.read(buffer) {
                Err(error) if is_to_repeat(&error) => {}
                done => return done,
            }
        }
    }
}

impl<R: BufRead> BufRead for Patient<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        while matches!(self.0.fill_buf(), Err(error) if is_to_repeat(&error)) {}
        self.0.fill_buf()
    }

    fn consume(&mut self, bytes: usize) {
        self.0.consume(bytes);
    }
}

fn is_to_repeat(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted)
}

/// The members of a file packed with gzip, one after the other. Zeros behind a member are passed
/// over, as gzip does: some writers fill a last block with them.
enum Members<R> {
    Member(Box<GzDecoder<R>>),
    /// Behind a member.
    Between(R),
    End,
}

impl<R: BufRead> Read for Members<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if buffer.is_empty() {
            return Ok(0);
        }
        loop {
            let has_more = match self {
                Members::Member(member) => match member.read(buffer)? {
                    0 => true,
                    len => return Ok(len),
                },
                Members::Between(rest) => pass_zeros(rest)?,
                Members::End => return Ok(0),
            };
            *self = match std::mem::replace(self, Members::End) {
                Members::Member(member) => Members::Between(member.into_inner()),
                Members::Between(rest) if has_more => Members::Member(Box::new(GzDecoder::new(rest))),
                Members::Between(_) | Members::End => Members::End,
            };
        }
    }
}

/// Passes zeros; whether anything follows.
fn pass_zeros(reader: &mut impl BufRead) -> io::Result<bool> {
    loop {
        let read = reader.fill_buf()?;
        let zeros = read.iter().take_while(|&&byte| byte == 0).count();
        let (is_ended, has_more) = (read.is_empty(), zeros < read.len());
        reader.consume(zeros);
        if is_ended || has_more {
            return Ok(has_more);
        }
    }
}

/// A reader of which the next bytes were read ahead.
struct Ahead {
    head: Vec<u8>,
    rest: Box<dyn BufRead>,
}

impl Read for Ahead {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.head.is_empty() {
            return self.rest.read(buffer);
        }
        let len = self.head.len().min(buffer.len());
        buffer[..len].copy_from_slice(&self.head[..len]);
        self.head.drain(..len);
        Ok(len)
    }
}

/// The frames of a file packed with zstd, one after the other.
struct Frames {
    between: Option<Ahead>,
    frame: Option<StreamingDecoder<Ahead, ruzstd::decoding::FrameDecoder>>,
}

impl Read for Frames {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if let Some(frame) = &mut self.frame {
                let len = frame.read(buffer)?;
                if len > 0 || buffer.is_empty() {
                    return Ok(len);
                }
                self.end_frame()?;
            }
            if !self.begin_frame()? {
                return Ok(0);
            }
        }
    }
}

impl Frames {
    fn end_frame(&mut self) -> io::Result<()> {
        let Some(frame) = self.frame.take() else { return Ok(()) };
        let (rest, decoder) = frame.into_parts();
        self.between = Some(rest);
        match (decoder.get_checksum_from_data(), decoder.get_calculated_checksum()) {
            (Some(noted), Some(found)) if noted != found => {
                Err(io::Error::other("the checksum of a zstd frame does not match"))
            }
            _ => Ok(()),
        }
    }

    /// Begins the next frame; false if there is none. Frames without content are passed over.
    fn begin_frame(&mut self) -> io::Result<bool> {
        let Some(mut between) = self.between.take() else { return Ok(false) };
        loop {
            if between.rest.fill_buf()?.is_empty() {
                return Ok(false);
            }
            let mut magic = [0; 4];
            between.rest.read_exact(&mut magic)?;
            if magic[1..] == [0x2a, 0x4d, 0x18] && magic[0] & 0xf0 == 0x50 {
                let mut len = [0; 4];
                between.rest.read_exact(&mut len)?;
                let len = u64::from(u32::from_le_bytes(len));
                io::copy(&mut between.rest.by_ref().take(len), &mut io::sink())?;
                continue;
            }
            between.head = magic.to_vec();
            let frame = StreamingDecoder::new(between);
            self.frame = Some(frame.map_err(|error| io::Error::other(format!("no zstd frame: {error}")))?);
            return Ok(true);
        }
    }
}

/// Whether what follows the first bracket of a text may be an array of objects: the first one, or
/// the end of the array.
fn is_of_objects(rest: &[u8]) -> bool {
    rest.starts_with(b"{") || rest == b"]"
}

/// The elements of a JSON array, each on a line of its own. Blanks around them are left out: they
/// move when a file is written anew with more elements, whose content would not begin as before.
struct Elements {
    content: Box<dyn BufRead>,
    depth: u64,
    in_text: bool,
    is_escaped: bool,
    /// The array has ended.
    is_ended: bool,
}

impl Read for Elements {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            let read = self.content.fill_buf()?;
            let len = read.len().min(buffer.len());
            if len == 0 {
                let is_cut = !self.is_ended && !buffer.is_empty();
                return if is_cut {
                    Err(io::Error::other("the JSON array does not end: the file is cut off"))
                } else {
                    Ok(0)
                };
            }
            buffer[..len].copy_from_slice(&read[..len]);
            self.content.consume(len);
            let mut given = 0;
            for at in 0..len {
                if let Some(byte) = self.lined(buffer[at]) {
                    buffer[given] = byte;
                    given += 1;
                }
            }
            if given > 0 {
                return Ok(given);
            }
        }
    }
}

impl Elements {
    /// What stands for a byte: brackets and commas of the array are line ends, and its own line
    /// ends are none. Nothing stands for blanks outside of elements.
    fn lined(&mut self, byte: u8) -> Option<u8> {
        if self.in_text {
            self.in_text = self.is_escaped || byte != b'"';
            self.is_escaped = !self.is_escaped && byte == b'\\';
            return Some(byte);
        }
        match byte {
            b'"' => self.in_text = true,
            b'[' | b'{' => {
                self.depth += 1;
                if self.depth == 1 {
                    return Some(b' ');
                }
            }
            b']' | b'}' => {
                self.depth = self.depth.saturating_sub(1);
                if self.depth == 0 {
                    self.is_ended = true;
                    return Some(b'\n');
                }
            }
            b',' if self.depth == 1 => return Some(b'\n'),
            b' ' | b'\t' | b'\n' | b'\r' if self.depth < 2 => return None,
            b'\n' | b'\r' => return Some(b' '),
            _ => {}
        }
        Some(byte)
    }
}

#[cfg(test)]
#[path = "unpack/tests.rs"]
mod tests;
