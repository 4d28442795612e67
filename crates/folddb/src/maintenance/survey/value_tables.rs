//! Which tables have values in a value file: each record there names its table. Parts do not.
//!
//! Called where the list of tables is lost.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use folddb_base::{FileNumber, TableId};
use folddb_host::Files;
use folddb_layout::file_name::FileName;
use folddb_layout::values::{RECORD_HEAD_BYTES, RecordHead, VALUES_HEADER_BYTES};
use folddb_value_log::ValueFile;
use folddb_value_log::directories::value_files_in;
use folddb_value_log::relocated::RelocatedFile;

/// No more of a segment is read. In bytes.
const SEARCHED_BYTES: u64 = 1 << 20;

/// A record's head and the longest key.
const FRONT_BYTES: u64 = (RECORD_HEAD_BYTES + u16::MAX as usize) as u64;

/// At most this many files of a directory are examined, or records of relocated values.
const FILES_MAX: usize = 1000;

/// The tables that the first records of a segment, or of a value directory, name. Unreadable ones
/// are skipped.
pub(super) fn tables_in(files: &Arc<dyn Files>, dir: &Path, name: FileName) -> BTreeSet<TableId> {
    match name {
        FileName::Values(_) => in_segment(&**files, &dir.join(name.to_string())).unwrap_or_default(),
        FileName::ValueDirectory(_) => in_directory(files, dir, name).unwrap_or_default(),
        FileName::Relocated(number) => in_moved(&**files, dir, number).unwrap_or_default(),
        _ => BTreeSet::new(),
    }
}

fn in_segment(files: &dyn Files, path: &Path) -> std::io::Result<BTreeSet<TableId>> {
    let file = files.open(path)?;
    let begin = VALUES_HEADER_BYTES as u64;
    let len_bytes = file.len_bytes()?.saturating_sub(begin).min(SEARCHED_BYTES);
    let mut bytes = vec![0; len_bytes as usize];
    file.read_exact_at(begin, &mut bytes)?;
    let (mut tables, mut rest) = (BTreeSet::new(), &bytes[..]);
    while let Some(head) = head_of(rest) {
        tables.insert(head.table);
        let Some(next) = usize::try_from(head.record_bytes()).ok().and_then(|len| rest.get(len..)) else {
            break;
        };
        rest = next;
    }
    Ok(tables)
}

fn in_directory(
    files: &Arc<dyn Files>,
    dir: &Path,
    name: FileName,
) -> folddb_base::Result<BTreeSet<TableId>> {
    let FileName::ValueDirectory(number) = name else { return Ok(BTreeSet::new()) };
    let directory = ValueFile::named(files, dir, name)?;
    let (mut tables, mut front) = (BTreeSet::new(), Vec::new());
    for unit in value_files_in(&**files, dir, number).unwrap_or_default().into_iter().take(FILES_MAX) {
        if directory.front(unit, FRONT_BYTES, &mut front).is_ok() {
            tables.extend(head_of(&front).map(|head| head.table));
        }
    }
    Ok(tables)
}

/// In a file of relocated values, by the places that its map leads to.
fn in_moved(files: &dyn Files, dir: &Path, number: FileNumber) -> folddb_base::Result<BTreeSet<TableId>> {
    let file = RelocatedFile::open(files, dir, number)?;
    let mut units = Vec::new();
    for carried in file.carried() {
        file.moves(carried.segment, &mut |one| {
            units.extend((units.len() < FILES_MAX).then_some(one.new));
            Ok(())
        })?;
    }
    let file = ValueFile::Relocated(Box::new(file), None);
    let (mut tables, mut front) = (BTreeSet::new(), Vec::new());
    for unit in units {
        if file.front(unit, FRONT_BYTES, &mut front).is_ok() {
            tables.extend(head_of(&front).map(|head| head.table));
        }
    }
    Ok(tables)
}

/// The head of the record with which these bytes begin, if its key, too, is there.
fn head_of(bytes: &[u8]) -> Option<RecordHead> {
    let head = RecordHead::decode(bytes).ok()?;
    let key = bytes.get(RECORD_HEAD_BYTES..)?.get(..usize::from(head.key_len))?;
    head.is_of(key).then_some(head)
}
