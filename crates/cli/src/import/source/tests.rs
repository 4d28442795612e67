use std::io::Write;

use super::*;

fn gzip(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

#[test]
fn the_open_file_is_checked_whatever_has_its_name_by_now() {
    let place = tempfile::tempdir().unwrap();
    let (name, other) = (place.path().join("rows.csv.gz"), place.path().join("other"));
    let whole = gzip("k,n\na,1\n");
    let mut damaged = gzip("k,n\nb,2\n");
    let checksum = damaged.len() - 8;
    damaged[checksum] ^= 1;
    for (first, then, is_whole) in [(&whole, &damaged, true), (&damaged, &whole, false)] {
        std::fs::write(&name, first).unwrap();
        let mut source = open(name.to_str().unwrap(), Said::NOTHING).unwrap();
        std::fs::write(&other, then).unwrap();
        std::fs::rename(&other, &name).unwrap();
        let packed = source.packed.take().unwrap();
        assert_eq!(packed.check().is_ok(), is_whole);
        let mut text = String::new();
        let read = source.reader.read_to_string(&mut text);
        assert_eq!(read.is_ok(), is_whole, "the check has not moved the place where it is read");
        assert!(!is_whole || text == "k,n\na,1\n", "{text}");
    }
}

#[test]
fn plain_files_and_pipes_are_not_checked() {
    let place = tempfile::tempdir().unwrap();
    let name = place.path().join("rows.csv");
    std::fs::write(&name, "k,n\na,1\n").unwrap();
    let source = open(name.to_str().unwrap(), Said::NOTHING).unwrap();
    assert!(source.packed.is_none() && source.inode.is_some());
    let pipe = unpack(Box::new(Cursor::new(gzip("k,n\n"))), "stdin", None, Said::NOTHING).unwrap();
    assert!(pipe.packed.is_none() && pipe.inode.is_none() && pipe.is_packed);
}
