//! The values of a store that is not open: for tools that read its files without the engine, and
//! for opening itself.
//!
//! Called by `recovery`, and by the modules of `maintenance`.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;
use std::sync::Arc;

use folddb_base::limits::VALUE_BYTES_MAX;
use folddb_base::pointer::VALUE_ALIGN;
use folddb_base::{ErrorKind, FileNumber, Piece, Pointer, Result, Rope, TableId, ValuePlace};
use folddb_host::Files;
use folddb_journal::ReplayFrame;
use folddb_layout::file_name::FileName;
use folddb_layout::frame;
use folddb_manifest::State;
use folddb_value_log::relocated::RelocatedFile;

use crate::values::hashed_record::is_long;
use crate::values::load::rope_of;
use folddb_value_log::ValueFile;

/// The values of a store that is not open, or is being opened.
pub struct ValuesAtRest<'a> {
    files: &'a Arc<dyn Files>,
    dir: &'a Path,
    state: &'a State,
    /// The file that was read last: consecutive values are usually in one file.
    last: RefCell<Option<(FileNumber, Rc<ValueFile>)>>,
}

impl<'a> ValuesAtRest<'a> {
    /// The values of the store in `dir`, as its manifest lists them.
    pub fn new(files: &'a Arc<dyn Files>, dir: &'a Path, state: &'a State) -> ValuesAtRest<'a> {
        ValuesAtRest { files, dir, state, last: RefCell::default() }
    }

    /// Reads a piece of a value.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub fn piece(&self, of: (TableId, &[u8]), pointer: &Pointer<'_>) -> Result<Vec<u8>> {
        let mut record = Vec::new();
        let value = self.open(pointer.place.segment)?.value(of, pointer, &mut record)?.len();
        record.drain(..record.len() - value);
        Ok(record)
    }

    /// Reads the record of such a piece: all of its bytes in the file.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub fn record(&self, of: (TableId, &[u8]), pointer: &Pointer<'_>) -> Result<Vec<u8>> {
        let mut record = Vec::new();
        self.open(pointer.place.segment)?.value(of, pointer, &mut record)?;
        record.resize(record.len().next_multiple_of(VALUE_ALIGN as usize), 0);
        Ok(record)
    }

    /// Reads a value; if it is too long to hold in memory, only checks that its pieces are whole.
    ///
    /// # Errors
    /// Damage, a failed read.
    pub fn value(&self, of: (TableId, &[u8]), rope: &Rope<'_>) -> Result<Option<Vec<u8>>> {
        if let Some(pointer) = rope.as_pointer() {
            return self.piece(of, &pointer).map(Some);
        }
        let is_held = rope.len <= VALUE_BYTES_MAX as u64;
        let mut value = Vec::new();
        for piece in rope.iter() {
            let read = piece.pointer().map(|pointer| self.piece(of, &pointer)).transpose()?;
            match (&read, piece) {
                (Some(bytes), _) if is_held => value.extend_from_slice(bytes),
                (None, Piece::Inline(bytes)) if is_held => value.extend_from_slice(bytes),
                _ => {}
            }
        }
        Ok(is_held.then_some(value))
    }

    /// The name of the file that a pointer leads to, unless its value was relocated.
    pub fn name_of(&self, place: ValuePlace) -> FileName {
        let segment = FileNumber(u64::from(place.segment));
        match self.state.is_directory(segment) {
            true => FileName::ValueFile(segment, place.unit),
            false => FileName::Values(segment),
        }
    }

    fn open(&self, segment: u32) -> Result<Rc<ValueFile>> {
        let segment = FileNumber(u64::from(segment));
        let moved = self.state.relocated.get(&segment).copied();
        let number = moved.unwrap_or(segment);
        let mut last = self.last.borrow_mut();
        if let Some((_, open)) = last.as_ref().filter(|(open, _)| *open == number) {
            return Ok(Rc::clone(open));
        }
        let opened = Rc::new(match moved {
            Some(number) => {
                ValueFile::Relocated(Box::new(RelocatedFile::open(&**self.files, self.dir, number)?), None)
            }
            None => ValueFile::named(self.files, self.dir, self.state.values_name(segment))?,
        });
        *last = Some((number, Rc::clone(&opened)));
        Ok(opened)
    }

    /// Whether the values that a frame of the log points to exist and are intact.
    ///
    /// # Errors
    /// A failed read, which proves nothing.
    pub fn has(&self, frame: &ReplayFrame<'_>) -> Result<bool> {
        for one in frame::records(frame.payload).flatten() {
            let Some(rope) = rope_of(&one) else { continue };
            // A long value of a hashed table was durable before the log pointed to it.
            for pointer in rope.pointers().filter(|pointer| !is_long(pointer.len)) {
                match self.piece((one.table, one.key), &pointer) {
                    Ok(_) => {}
                    Err(error) if error.kind() == ErrorKind::Corruption => return Ok(false),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(true)
    }
}
