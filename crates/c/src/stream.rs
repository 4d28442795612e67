//! Values of any length, written and read piece by piece.

use std::ffi::c_int;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::ptr::null_mut;

use folddb::{Error, ErrorKind, Result, ValueReader, ValueWriter, WriteOp};

use crate::errors::{guard, guard_silently};
use crate::exclusive::Exclusive;
use crate::handles::{self, Object};
use crate::memory::{Buffer, Bytes, ErrPtr};
use crate::table::TableObject;

/// Writes one value, piece by piece. One thread uses it at a time.
pub struct WriterObject(Exclusive<Option<ValueWriter>>);

/// Reads one value, piece by piece. One thread uses it at a time.
pub struct ReaderObject(Exclusive<ValueReader>);

impl Object for WriterObject {
    const NAME: &'static str = "folddb_writer";
}

impl Object for ReaderObject {
    const NAME: &'static str = "folddb_reader";
}

/// How a value is written.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamOp {
    /// It becomes the value of the key.
    Put = 0,
    /// It becomes the value of the key, if that is absent.
    PutIfAbsent = 1,
    /// It is folded onto the value of the key.
    Fold = 2,
}

fn write_op(number: c_int) -> Result<WriteOp> {
    match number {
        n if n == StreamOp::Put as c_int => Ok(WriteOp::Put),
        n if n == StreamOp::PutIfAbsent as c_int => Ok(WriteOp::PutIfAbsent),
        n if n == StreamOp::Fold as c_int => Ok(WriteOp::Fold),
        n => Err(Error::invalid(format!("{n} is not one of folddb_stream_op"))),
    }
}

/// The error of the library, taken out of the error of a standard stream.
fn cause(error: io::Error) -> Error {
    match error.downcast::<Error>() {
        Ok(error) => error,
        Err(error) => Error::new(ErrorKind::Io, error.to_string()),
    }
}

/// A writer of the value of a key, as `op` says, one of folddb_stream_op. Nothing is visible before
/// folddb_writer_finish. NULL where it fails. Destroy it with folddb_writer_destroy.
///
/// Errors: InvalidInput for a key that the table does not accept, and for a table in a transaction;
/// ReadOnly, Closed.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_writer_create(
    table: *mut TableObject,
    op: c_int,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> *mut WriterObject {
    guard(errptr, null_mut(), || {
        let table = handles::get(table)?;
        let (op, key) = (write_op(op)?, key.get(key_len, "the key")?);
        let writer = table.itself()?.writer(op, key)?;
        handles::give(WriterObject(Exclusive::new(Some(writer))))
    })
}

fn finished() -> Error {
    Error::invalid("this folddb_writer is finished")
}

/// Appends the next bytes of the value. Returns whether it did; a writer that has failed stays
/// failed.
///
/// Errors: InvalidInput for a value that is too long; NoSpace, Poisoned, Closed; a failed write.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_writer_write(
    writer: *mut WriterObject,
    data: Bytes,
    data_len: usize,
    errptr: ErrPtr<'_>,
) -> bool {
    guard(errptr, false, || {
        let writer = handles::get(writer)?;
        let mut writer = writer.0.lock::<WriterObject>()?;
        let data = data.get(data_len, "the data")?;
        writer.as_mut().ok_or_else(finished)?.write_all(data).map_err(cause)?;
        Ok(true)
    })
}

/// Ends the value and commits it. Returns whether it did. Afterwards the writer can only be
/// destroyed.
///
/// Errors: as folddb_writer_write; NotDurable.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_writer_finish(writer: *mut WriterObject, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || {
        let writer = handles::get(writer)?;
        let writer = writer.0.lock::<WriterObject>()?.take().ok_or_else(finished)?;
        writer.finish().map(|_| true)
    })
}

/// Destroys the handle. NULL is ignored. A value that was not finished was not written.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_writer_destroy(writer: *mut WriterObject) {
    guard_silently(|| handles::take(writer).map(drop));
}

/// A reader of the value of a key. NULL where the key is absent, and where it fails. Destroy it
/// with folddb_reader_destroy; while it lives, the store keeps its value.
///
/// Errors: as folddb_get.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_reader_create(
    table: *mut TableObject,
    key: Bytes,
    key_len: usize,
    errptr: ErrPtr<'_>,
) -> *mut ReaderObject {
    guard(errptr, null_mut(), || {
        let table = handles::get(table)?;
        let key = key.get(key_len, "the key")?;
        let reader = match table.at()? {
            None => table.table.read(key)?,
            Some(table) => table.read(key)?,
        };
        reader.map_or(Ok(null_mut()), |reader| handles::give(ReaderObject(Exclusive::new(reader))))
    })
}

/// How many bytes the value has; 0 where it fails, too.
///
/// Errors: only a wrong handle.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_reader_len(reader: *mut ReaderObject, errptr: ErrPtr<'_>) -> u64 {
    guard(errptr, 0, || Ok(handles::get(reader)?.0.lock::<ReaderObject>()?.len_bytes()))
}

/// Reads at most this many bytes into `buffer`, and returns how many; 0 at the end, and where it
/// fails.
///
/// Errors: Corruption; a failed read.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_reader_read(
    reader: *mut ReaderObject,
    buffer: Buffer,
    buffer_len: usize,
    errptr: ErrPtr<'_>,
) -> usize {
    guard(errptr, 0, || {
        let reader = handles::get(reader)?;
        reader.0.lock::<ReaderObject>()?.read(buffer.get(buffer_len)?).map_err(cause)
    })
}

/// Goes to this byte of the value. Returns whether it did.
///
/// Errors: only a wrong handle. Beyond the end nothing is read.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_reader_seek(reader: *mut ReaderObject, at: u64, errptr: ErrPtr<'_>) -> bool {
    guard(errptr, false, || {
        let reader = handles::get(reader)?;
        reader.0.lock::<ReaderObject>()?.seek(SeekFrom::Start(at)).map_err(cause)?;
        Ok(true)
    })
}

/// Destroys the handle. NULL is ignored.
#[unsafe(no_mangle)]
pub extern "C" fn folddb_reader_destroy(reader: *mut ReaderObject) {
    guard_silently(|| handles::take(reader).map(drop));
}
