//! Loads a separated value by its pointer: one read for each piece, each with its hash checked.

use folddb_base::{Error, ErrorKind, Piece, Pointer, Result, Rope};
use folddb_layout::frame;

use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use folddb_value_log::SegmentMap;

// ---- loading ------------------------------------------------------------------------------------

/// Reads the value that a pointer of `key`, or a rope, leads to, into `record`.
///
/// # Errors
/// Damage, naming table, key, file and offset; a failed read.
pub(crate) fn load_value<'r>(
    engine: &Engine,
    of: Option<&SegmentMap>,
    table: &TableCore,
    key: &[u8],
    pointer: &[u8],
    record: &'r mut Vec<u8>,
) -> Result<&'r [u8]> {
    let present; // a search that met no pointer, in a table without pointers
    let of = match of {
        Some(of) => of,
        None => {
            present = engine.values.files.present();
            &present
        }
    };
    let rope = rope(table, key, pointer)?;
    match rope.as_pointer() {
        Some(pointer) => load_piece(engine, of, table, key, &pointer, record),
        None => load_pieces(engine, of, table, key, &rope, record),
    }
}

/// Reads a value in one piece, or one piece of a value, into `record`.
pub(crate) fn load_piece<'r>(
    engine: &Engine,
    of: &SegmentMap,
    table: &TableCore,
    key: &[u8],
    pointer: &Pointer<'_>,
    record: &'r mut Vec<u8>,
) -> Result<&'r [u8]> {
    engine.counters.value_reads.add(1);
    let opened = engine.values.files.open(of, pointer.place.segment);
    let read = opened.and_then(|opened| opened.value((table.id, key), pointer, record).map(<[u8]>::len));
    let len = read.map_err(|error| of_key(table, key, error))?;
    Ok(&record[record.len() - len..])
}

/// Reads all pieces of a value into `value`.
#[cold]
pub(crate) fn load_pieces<'r>(
    engine: &Engine,
    of: &SegmentMap,
    table: &TableCore,
    key: &[u8],
    rope: &Rope<'_>,
    value: &'r mut Vec<u8>,
) -> Result<&'r [u8]> {
    value.clear();
    let mut record = Vec::new();
    for piece in rope.iter() {
        match (piece, piece.pointer()) {
            (_, Some(pointer)) => {
                value.extend_from_slice(load_piece(engine, of, table, key, &pointer, &mut record)?);
            }
            (Piece::Inline(bytes), None) => value.extend_from_slice(bytes),
            (Piece::Separated { .. }, None) => {} // cannot be
        }
    }
    Ok(value)
}

/// The rope in the payload of an op whose value is separated.
pub fn rope<'p>(table: &TableCore, key: &[u8], payload: &'p [u8]) -> Result<Rope<'p>> {
    Rope::decode(payload).map_err(|cause| {
        of_key(table, key, Error::new(ErrorKind::Corruption, format!("its pointer: {cause}")))
    })
}

/// Adds the key of the value to an error.
#[cold]
pub(crate) fn of_key(table: &TableCore, key: &[u8], error: Error) -> Error {
    let key = table.rules.rules.key_codec().show_line(key);
    error.context(format!("the value of key {key} of table `{}`", table.name))
}

/// The values that a record of the log points to, if it does.
pub fn rope_of<'a>(record: &frame::FrameRecord<'a>) -> Option<Rope<'a>> {
    Rope::decode(record.pointer()?).ok()
}
