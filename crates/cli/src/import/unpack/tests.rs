use std::io::{Cursor, Write};

use super::*;

fn read(bytes: Vec<u8>) -> io::Result<String> {
    let mut text = String::new();
    lined(unpacked(Cursor::new(bytes))?)?.read_to_string(&mut text)?;
    Ok(text)
}

fn zstd(text: &str) -> Vec<u8> {
    ruzstd::encoding::compress_to_vec(text.as_bytes(), ruzstd::encoding::CompressionLevel::Fastest)
}

fn bzip2(text: &str) -> Vec<u8> {
    let mut packed = bzip2::write::BzEncoder::new(Vec::new(), bzip2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[test]
fn packed_files_are_unpacked_to_their_last_member() {
    let long = "a,1\n".repeat(100_000);
    for pack in [zstd, bzip2, gzip] {
        assert_eq!(read(pack(&long)).unwrap(), long);
        assert_eq!(read([pack("a\n"), pack("b\n"), pack("")].concat()).unwrap(), "a\nb\n");
    }
    let skipped = [zstd("a\n"), vec![0x53, 0x2a, 0x4d, 0x18, 3, 0, 0, 0, 1, 2, 3], zstd("b\n")].concat();
    assert_eq!(read(skipped).unwrap(), "a\nb\n");
}

#[test]
fn zeros_behind_a_member_of_gzip_are_passed_over() {
    let padded = |zeros: usize| [gzip("a\n"), vec![0; zeros]].concat();
    for zeros in [1, 7, 512, 3 * BUFFER_BYTES] {
        assert_eq!(read(padded(zeros)).unwrap(), "a\n");
        assert_eq!(read([padded(zeros), gzip("b\n"), vec![0; 9]].concat()).unwrap(), "a\nb\n");
        assert!(read([padded(zeros), b"x".to_vec()].concat()).is_err(), "anything else is damage");
    }
}

/// A reader that has two bytes at a time, and nothing in between.
struct Slow {
    bytes: Cursor<Vec<u8>>,
    has_some: bool,
}

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let len = self.fill_buf()?.len().min(buffer.len());
        buffer[..len].copy_from_slice(&self.fill_buf()?[..len]);
        self.consume(len);
        Ok(len)
    }
}

impl BufRead for Slow {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if !self.has_some {
            self.has_some = true;
            return Err(io::ErrorKind::WouldBlock.into());
        }
        let rest = self.bytes.fill_buf()?;
        Ok(&rest[..rest.len().min(2)])
    }

    fn consume(&mut self, bytes: usize) {
        self.bytes.consume(bytes);
        self.has_some &= bytes == 0;
    }
}

#[test]
fn members_of_gzip_arrive_in_any_pieces() {
    let packed = [gzip("a,1\n"), vec![0; 3], gzip("b,2\n"), vec![0; 2]].concat();
    let mut content = unpacked(Slow { bytes: Cursor::new(packed), has_some: true }).unwrap();
    let (mut text, mut buffer) = (Vec::new(), [0; 3]);
    loop {
        match content.read(&mut buffer) {
            Ok(0) => break,
            Ok(len) => text.extend_from_slice(&buffer[..len]),
            Err(error) => assert_eq!(error.kind(), io::ErrorKind::WouldBlock),
        }
    }
    assert_eq!(text, b"a,1\nb,2\n");
}

#[test]
fn files_that_are_cut_off_are_errors() {
    let long: String = (0..50_000).map(|n| format!("{n}\n")).collect();
    for pack in [zstd, bzip2, gzip] {
        let mut packed = pack(&long);
        packed.truncate(packed.len() / 2);
        assert!(read(packed).is_err());
    }
    assert!(read(b"[{\"a\":1},{\"a\":".to_vec()).is_err());
}

#[test]
fn the_elements_of_an_array_are_lines() {
    let text = "\u{feff} [\n {\"a\": [1,\n2], \"b\": \"],}\\\"\"},{\"a\":{}} ]\n";
    let lines = read(text.as_bytes().to_vec()).unwrap();
    let lines: Vec<&str> = lines.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines[0].trim_start_matches('\u{feff}').trim(), "{\"a\": [1, 2], \"b\": \"],}\\\"\"}");
    assert_eq!(lines[1], "{\"a\":{}}");
    assert_eq!(read(b"[2013-01-01] text\n".to_vec()).unwrap(), "[2013-01-01] text\n");
    for none in ["[]", "\u{feff} [\n]\n", "[ ]"] {
        let lines = read(none.as_bytes().to_vec()).unwrap();
        assert_eq!(lines.trim_start_matches('\u{feff}').trim(), "", "{none}");
    }
}

/// What is said of a file of which nothing else is known.
fn told(head: &[u8]) -> Option<(&'static str, &'static str)> {
    other_kind(head).or_else(|| other_text(head))
}

#[test]
fn texts_of_another_kind_are_told_from_other_files() {
    for text in [&b"<?xml version=\"1.0\"?><a/>"[..], b"---\nk,n\n", b"{\n", b"\x01\x02\xff\0\xfe,"] {
        assert_eq!(other_kind(text), None, "{text:?}");
        assert!(other_text(text).is_some(), "{text:?}");
    }
    for packed in [zstd("---\n"), bzip2("---\n"), gzip("---\n")] {
        assert_eq!(other_text(&packed), None);
    }
}

#[test]
fn other_kinds_of_files_are_named() {
    assert_eq!(told(b"PAR1\x15\x04").unwrap().0, "a Parquet file");
    assert_eq!(told(b"PAR1,PAR2\n1,2\n"), None);
    assert_eq!(read(b"BZh,n\n".to_vec()).unwrap(), "BZh,n\n");
    assert_eq!(told(b"k,n\n"), None);
    for pack in [zstd, bzip2, gzip] {
        assert_eq!(told(&pack("k,n\n1,2\n")), None);
    }
    for (head, what) in [
        (&b"ORC\x0a\x05\x00"[..], "an ORC file"),
        (b"\x89PNG\r\n\x1a\n\0", "a picture"),
        (b"\xff\xd8\xff\xe0\0", "a picture"),
        (b"\x7fELF\x02\x01\x01\0", "a program"),
        (b"Obj\x01", "an Avro file"),
        (b"SQLite format 3\0", "a SQLite database"),
        (b"%PDF-1.7\n", "a PDF document"),
        (b"\xfd7zXZ\0", "packed with xz"),
        (b"\xff\xfek\0", "UTF-16 text"),
        (b"<?xml version=\"1.0\"?><a/>", "an XML file"),
        (b"\n<!DOCTYPE HTML>\n<html>", "a page of HTML"),
        (b"---\n- k: a\n", "a YAML file"),
        (b"{\n  \"rows\": [", "an object of JSON on many lines"),
        (b"\x01\x02\xff\0\xfe,", "a file of another kind"),
    ] {
        assert_eq!(told(head).unwrap().0, what, "{head:?}");
    }
    for head in [&b"ORC,PNG\n1,2\n"[..], b"GIF89,n\n", b"<k>,n\n", b"---,n\n", b"{\"k\":1}\n", b"k\0,n\n"] {
        assert_eq!(told(head), None, "{head:?}");
    }
}

#[test]
fn an_object_on_many_lines_is_told_by_its_second_line() {
    let is_one =
        |text: &str| other_text(text.as_bytes()).is_some_and(|(what, _)| what.contains("many lines"));
    for text in ["{\"a\":1,\n \"b\":2}\n", "{\"rows\": [\n {\"a\":1}]}\n", "{\"a\": {\n\n\"b\": 1}}", "{\n"] {
        assert!(is_one(text), "{text}");
    }
    for text in ["{\"a\":1}\n{\"a\":2}\n", "{\"a\":1,\n{\"a\":2}\n", "{\"a\":1,", "{a,\nb,1\n"] {
        assert!(!is_one(text), "{text}");
    }
}

#[test]
fn a_packed_file_is_unpacked_by_its_own_program() {
    assert_eq!([program(&ZSTD_MAGIC), program(b"BZh9"), program(&GZIP_MAGIC)], ["zstd", "bzip2", "gzip"]);
}
