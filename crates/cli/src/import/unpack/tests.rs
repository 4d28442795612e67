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
}

#[test]
fn other_kinds_of_files_are_named() {
    assert_eq!(other_kind(b"PAR1\x15\x04").unwrap().0, "a Parquet file");
    assert_eq!(other_kind(b"PAR1,PAR2\n1,2\n"), None);
    assert_eq!(read(b"BZh,n\n".to_vec()).unwrap(), "BZh,n\n");
    assert_eq!(other_kind(b"k,n\n"), None);
}
