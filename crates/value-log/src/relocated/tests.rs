use std::path::Path;
use std::sync::Arc;

use folddb_base::pointer::Pointer;
use folddb_base::{FileNumber, Result, TableId, ValuePlace};
use folddb_host::{AppendMode, Files, Host};
use folddb_layout::values::put_record;

use super::*;
use crate::segment::ValuesEnd;
use crate::value_log::{ValueLog, ValueOptions};

const SEGMENT_BYTES: u64 = 2 << 20;

fn value(at: u32) -> Vec<u8> {
    let len = if at == 7 { 700_000 } else { 100 + at as usize * 13 % 900 };
    (0..len).map(|byte| (byte as u32 * 7 + at) as u8).collect()
}

fn key(at: u32) -> Vec<u8> {
    format!("key-{at:05}").into_bytes()
}

/// A segment with the values from `from` to `upto`, where each is, and where it ends.
fn segment(dir: &Path, number: u64, from: u32, upto: u32) -> (Vec<u32>, ValuesEnd) {
    let options = ValueOptions { segment_bytes_max: SEGMENT_BYTES, append_mode: AppendMode::Written };
    let tail = ValueLog::new(&Host::real(), dir, options, Arc::new(move || FileNumber(number)));
    tail.adopt(tail.make(0, 8 * SEGMENT_BYTES).unwrap(), 0);
    let put = |at: u32| {
        let mut record = Vec::new();
        put_record(&mut record, TableId(1), &key(at), &value(at));
        tail.append(&record).unwrap().unwrap().unit
    };
    let units = (from..upto).map(put).collect();
    let (ends, _) = tail.close().unwrap();
    (units, ends[0])
}

fn pointer(segment: u32, unit: u32, at: u32) -> Pointer<'static> {
    let place = ValuePlace { segment, unit };
    let hash = folddb_base::pointer::value_hash(&key(at), &value(at));
    Pointer { place, time_ms: 0, hash, len: value(at).len() as u64, head: &[] }
}

fn read(file: &RelocatedFile, segment: u32, unit: u32, at: u32) -> Result<Vec<u8>> {
    let mut record = Vec::new();
    let page_at = |offset| file.read_page(offset);
    Ok(file.value((TableId(1), &key(at)), &pointer(segment, unit, at), &mut record, page_at)?.to_vec())
}

#[test]
fn every_third_value_of_two_segments_moves_and_moves_on() {
    let dir = tempfile::tempdir().unwrap();
    let files = &*Host::real().files;
    let (first, first_end) = segment(dir.path(), 3, 0, 600);
    let (second, second_end) = segment(dir.path(), 5, 600, 1200);
    let mut writer = RelocatedWriter::create(files, dir.path(), FileNumber(9)).unwrap();
    for (number, units, end) in [(3, &first, first_end), (5, &second, second_end)] {
        let mut source = Source::segment(files, dir.path(), end).unwrap();
        writer.begin_segment(number);
        let bytes: u64 = units
            .iter()
            .skip(1)
            .step_by(3)
            .map(|&unit| source.copy(unit, unit, &mut writer).unwrap().0)
            .sum();
        let (copied, dropped) = source.finish();
        assert_eq!((copied, copied + dropped), (bytes, end.end - 4096));
    }
    let bytes = writer.finish().unwrap();
    let moved = RelocatedFile::open(files, dir.path(), FileNumber(9)).unwrap();
    assert_eq!((moved.file_bytes(), moved.carried().len()), (bytes, 2));
    for at in 0..600 {
        let (kept, other) =
            (read(&moved, 3, first[at as usize], at), read(&moved, 5, second[at as usize], at + 600));
        if at % 3 == 1 {
            assert_eq!((kept.unwrap(), other.unwrap()), (value(at), value(at + 600)));
        } else {
            assert!(kept.unwrap_err().is_lacking() || other.is_err());
        }
    }

    // Some of it is relocated again: pointers are still those of the segments.
    let mut writer = RelocatedWriter::create(files, dir.path(), FileNumber(12)).unwrap();
    let mut source = moved.source();
    writer.begin_segment(5);
    let mut at = 0;
    moved
        .moves(5, &mut |one| {
            at += 1;
            if at % 2 == 0 {
                source.copy(one.new, one.old, &mut writer).unwrap();
            }
            Ok(())
        })
        .unwrap();
    source.finish();
    writer.finish().unwrap();
    let on = RelocatedFile::open(files, dir.path(), FileNumber(12)).unwrap();
    assert_eq!(read(&on, 5, second[4], 604).unwrap(), value(604));
    assert!(read(&on, 5, second[1], 601).is_err() && read(&on, 3, first[1], 1).is_err());
}

/// If any byte of the records, the map, the top or the footer is wrong, a read returns the right
/// value or reports damage.
#[test]
fn no_flip_gives_a_wrong_value() {
    let dir = tempfile::tempdir().unwrap();
    let files = &*Host::real().files;
    let (units, end) = segment(dir.path(), 3, 0, 6);
    let mut writer = RelocatedWriter::create(files, dir.path(), FileNumber(9)).unwrap();
    let mut source = Source::segment(files, dir.path(), end).unwrap();
    writer.begin_segment(3);
    units.iter().for_each(|&unit| assert!(source.copy(unit, unit, &mut writer).unwrap().0 > 0));
    assert_eq!(source.finish().1, 0);
    writer.finish().unwrap();
    let path = relocated_path(dir.path(), FileNumber(9));
    let whole = std::fs::read(&path).unwrap();
    let mut seen = 0;
    for offset in (0..whole.len()).filter(|at| at % 23 == 0 || *at > 4096 && at % 4096 < 200) {
        let mut flipped = whole.clone();
        flipped[offset] ^= 1 << (offset % 8);
        std::fs::write(&path, &flipped).unwrap();
        let opened = RelocatedFile::open(files, dir.path(), FileNumber(9));
        let all = opened.and_then(|file| {
            (0..6).zip(&units).try_for_each(|(at, &unit)| {
                assert_eq!(read(&file, 3, unit, at)?, value(at), "byte {offset}");
                Ok(())
            })
        });
        seen += usize::from(all.is_err());
    }
    assert!(seen > 300, "{seen}");
    for len in (0..whole.len()).step_by(97) {
        std::fs::write(&path, &whole[..len]).unwrap();
        assert!(RelocatedFile::open(files, dir.path(), FileNumber(9)).is_err(), "{len} bytes");
    }
}

#[test]
fn what_is_copied_is_checked() {
    let dir = tempfile::tempdir().unwrap();
    let files = &*Host::real().files;
    let (units, end) = segment(dir.path(), 3, 0, 9);
    let path = crate::segment::values_path(dir.path(), FileNumber(3));
    let whole = std::fs::read(&path).unwrap();
    let copy = |bytes: &[u8], number: u64, units: &[u32]| {
        std::fs::write(&path, bytes).unwrap();
        let mut writer = RelocatedWriter::create(files, dir.path(), FileNumber(number)).unwrap();
        let mut source = Source::segment(files, dir.path(), end).unwrap();
        writer.begin_segment(3);
        units.iter().try_for_each(|&unit| source.copy(unit, unit, &mut writer).map(drop))
    };
    assert!(copy(&whole, 20, &units).is_ok());
    let seventh = units[7] as usize * 16;
    for (number, at) in [(21, seventh), (22, seventh + 30), (23, seventh + 40), (24, seventh + 600_000)] {
        let mut flipped = whole.clone();
        flipped[at] ^= 4;
        assert!(matches!(copy(&flipped, number, &units), Err(CopyFault::Source(_))), "byte {at}");
        assert!(copy(&flipped, number + 10, &units[..7]).is_ok(), "what is not copied is not looked at");
    }
    assert!(matches!(copy(&whole, 40, &[units[0], units[0]]), Err(CopyFault::Source(_))), "one in another");
    assert!(matches!(copy(&whole, 41, &[units[0] + 1]), Err(CopyFault::Source(_))), "no record begins there");
    assert!(matches!(copy(&whole[..seventh], 42, &units), Err(CopyFault::Source(_))), "the file ends");
}

/// What is done to the bytes of a file.
type Damage<'a> = dyn Fn(&mut Vec<u8>) + 'a;

/// What a damaged file leads to after it was rewritten: each value, or an error.
fn mended(files: &dyn Files, dir: &Path, damage: &Damage<'_>) -> Result<(RelocatedFile, u64)> {
    let (path, to) = (relocated_path(dir, FileNumber(9)), tempfile::tempdir().unwrap());
    let whole = std::fs::read(&path).unwrap();
    let mut bytes = whole.clone();
    damage(&mut bytes);
    std::fs::write(&path, bytes).unwrap();
    assert!(RelocatedFile::open(files, dir, FileNumber(9)).is_err() || damage_is_in_a_page(files, dir));
    let written = open_damaged(files, dir, FileNumber(9))
        .and_then(|file| write_salvaged(&file, files, to.path()))
        .and_then(|(bytes, lost)| Ok((RelocatedFile::open(files, to.path(), FileNumber(9))?, bytes, lost)));
    std::fs::write(&path, whole).unwrap();
    let (file, bytes, lost) = written?;
    assert_eq!(file.file_bytes(), bytes);
    Ok((file, lost))
}

fn damage_is_in_a_page(files: &dyn Files, dir: &Path) -> bool {
    let file = RelocatedFile::open(files, dir, FileNumber(9)).unwrap();
    file.carried().iter().any(|one| file.moves(one.segment, &mut |_| Ok(())).is_err())
}

#[test]
fn the_map_of_relocated_values_is_rebuilt_from_its_intact_pages() {
    let dir = tempfile::tempdir().unwrap();
    let files = &*Host::real().files;
    let mut writer = RelocatedWriter::create(files, dir.path(), FileNumber(9)).unwrap();
    let mut of = Vec::new();
    for (number, from, upto) in [(3, 0, 1200), (5, 1200, 1300)] {
        let (units, end) = segment(dir.path(), number, from, upto);
        let mut source = Source::segment(files, dir.path(), end).unwrap();
        writer.begin_segment(number as u32);
        for &unit in &units {
            source.copy(unit, unit, &mut writer).unwrap();
        }
        of.extend(units.into_iter().zip(from..).map(|(unit, at)| (number as u32, unit, at)));
    }
    writer.finish().unwrap();
    let moved = RelocatedFile::open(files, dir.path(), FileNumber(9)).unwrap();
    let pages: Vec<usize> = moved.top.pages(3).chain(moved.top.pages(5)).map(|at| at as usize).collect();
    assert_eq!(pages.len(), 4);
    let end = moved.top.map_end() as usize;
    let found = |file: &RelocatedFile| -> Vec<u32> {
        let whole = |&(segment, unit, at): &(u32, u32, u32)| match read(file, segment, unit, at) {
            Ok(found) => {
                assert_eq!(found, value(at));
                Some(at)
            }
            Err(error) => {
                assert!(error.damage().is_some(), "{error}");
                None
            }
        };
        of.iter().filter_map(whole).collect()
    };
    let all: Vec<u32> = (0..1300).collect();
    let framing: [&Damage<'_>; 6] = [
        &|bytes| bytes[20] ^= 1,
        &|bytes| bytes[end] ^= 1,
        &|bytes| *bytes.last_mut().unwrap() ^= 1,
        &|bytes| bytes.truncate(end),
        &|bytes| bytes.truncate(end + 3),
        &|bytes| bytes[end..].fill(0),
    ];
    for damage in framing {
        let (file, lost) = mended(files, dir.path(), damage).unwrap();
        assert_eq!((found(&file), lost), (all.clone(), 0));
    }
    // A lost page costs what it had, with or without the top: 510 values.
    let of_page = [0..510, 510..1020, 1020..1200, 1200..1300];
    for (page, gone) in pages.iter().zip(of_page) {
        for has_top in [true, false] {
            let cut = |bytes: &mut Vec<u8>| {
                bytes[page + 30] ^= 1;
                bytes.truncate(if has_top { bytes.len() } else { end });
            };
            let (file, _) = mended(files, dir.path(), &cut).unwrap();
            let left: Vec<u32> = all.iter().copied().filter(|at| !gone.contains(at)).collect();
            assert_eq!(found(&file), left, "without the page of {gone:?}, with the top {has_top}");
        }
    }
    let none = mended(files, dir.path(), &|bytes| bytes.truncate(pages[0])).map(|_| ()).unwrap_err();
    assert!(none.message().contains("no page of its map is whole"), "{none}");
    assert!(mended(files, dir.path(), &|bytes| bytes.truncate(10)).is_err());
}
