//! Long values as streams; `folddb.streams` makes file-like objects of them.

use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::Mutex;

use folddb::{Error, ErrorKind, ValueReader, ValueWriter};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::invalid;
use crate::forks::Guarded;

/// The reader of a value.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct RawReader {
    reader: Guarded<Mutex<ValueReader>>,
    #[pyo3(get)]
    len_bytes: u64,
}

impl RawReader {
    pub(crate) fn new(reader: ValueReader) -> RawReader {
        let len_bytes = reader.len_bytes();
        RawReader { reader: Guarded::new(Mutex::new(reader)), len_bytes }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut ValueReader) -> std::io::Result<T> + Send,
    ) -> PyResult<T> {
        self.reader.with(py, |reader| work(reader).map_err(Error::from))
    }
}

/// The most bytes that are read at once.
const READ_BYTES_MAX: usize = 1 << 20;

#[pymethods]
impl RawReader {
    /// The next bytes, at most `bytes_max`; none at the end.
    fn read<'py>(&self, py: Python<'py>, bytes_max: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |reader| {
            let mut bytes = vec![0; bytes_max.min(READ_BYTES_MAX)];
            let len = reader.read(&mut bytes)?;
            bytes.truncate(len);
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Moves to a place, counted from the beginning (0), the present place (1), or the end (2).
    #[pyo3(signature = (offset, whence = 0))]
    fn seek(&self, py: Python<'_>, offset: i64, whence: u8) -> PyResult<u64> {
        let to = match (whence, u64::try_from(offset)) {
            (0, Ok(offset)) => SeekFrom::Start(offset),
            (1, _) => SeekFrom::Current(offset),
            (2, _) => SeekFrom::End(offset),
            _ => return Err(invalid(format!("there is no place {offset} from {whence}"))),
        };
        self.with(py, |reader| reader.seek(to))
    }
}

/// The writer of a value. The value exists once the writer is finished.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct RawWriter(Guarded<Mutex<Option<ValueWriter>>>);

impl RawWriter {
    pub(crate) fn new(writer: ValueWriter) -> RawWriter {
        RawWriter(Guarded::new(Mutex::new(Some(writer))))
    }
}

fn over() -> Error {
    Error::new(ErrorKind::Closed, "this writer is closed").advise("open another")
}

#[pymethods]
impl RawWriter {
    /// Appends bytes.
    fn write(&self, py: Python<'_>, bytes: &Bound<'_, PyBytes>) -> PyResult<usize> {
        let bytes = bytes.as_bytes();
        self.0.with(py, |writer| {
            writer.as_mut().ok_or_else(over)?.write_all(bytes)?;
            Ok(bytes.len())
        })
    }

    /// Makes what was written the value of the key. Returns its seq.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        self.0.with(py, |writer| writer.take().ok_or_else(over)?.finish().map(u64::from))
    }

    /// Discards what was written. Python may call this at any time, also in a fold and in a child
    /// that was forked since.
    fn forget(&self) {
        let Some(writer) = self.0.look() else { return };
        let writer = match writer.try_lock() {
            Ok(mut writer) => writer.take(),
            Err(_) => None, // another thread writes: it goes with its last handle
        };
        drop(writer.map(Guarded::new));
    }
}
