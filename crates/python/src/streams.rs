//! Long values as streams; `folddb.streams` makes file-like objects of them.

use std::io::{Read, Seek, SeekFrom, Write};
use std::sync::{Mutex, PoisonError};

use folddb::{Error, ErrorKind, ValueReader, ValueWriter};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::errors::{invalid, raise};
use crate::forks::Guarded;

/// The reader of a value.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct RawReader {
    reader: Mutex<Guarded<ValueReader>>,
    #[pyo3(get)]
    len_bytes: u64,
}

impl RawReader {
    pub(crate) fn new(reader: ValueReader) -> RawReader {
        let len_bytes = reader.len_bytes();
        RawReader { reader: Mutex::new(Guarded::new(reader)), len_bytes }
    }

    fn with<T: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut ValueReader) -> std::io::Result<T> + Send,
    ) -> PyResult<T> {
        py.detach(|| {
            let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
            work(reader.get_mut()?).map_err(|error| raise(Error::from(error)))
        })
    }
}

/// So many bytes are read at once at most.
const READ_BYTES_MAX: usize = 1 << 20;

#[pymethods]
impl RawReader {
    /// The next bytes, at most so many; none at the end.
    fn read<'py>(&self, py: Python<'py>, bytes_max: usize) -> PyResult<Bound<'py, PyBytes>> {
        let bytes = self.with(py, |reader| {
            let mut bytes = vec![0; bytes_max.min(READ_BYTES_MAX)];
            let len = reader.read(&mut bytes)?;
            bytes.truncate(len);
            Ok(bytes)
        })?;
        Ok(PyBytes::new(py, &bytes))
    }

    /// Moves to a place, from the beginning (0), from here (1), or from the end (2).
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

/// The writer of a value, which is there when it is finished.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct RawWriter(Mutex<Option<Guarded<Option<ValueWriter>>>>);

impl RawWriter {
    pub(crate) fn new(writer: ValueWriter) -> RawWriter {
        RawWriter(Mutex::new(Some(Guarded::new(Some(writer)))))
    }
}

fn over() -> PyErr {
    raise(Error::new(ErrorKind::Closed, "this writer is closed").advise("open another"))
}

#[pymethods]
impl RawWriter {
    /// Appends bytes.
    fn write(&self, py: Python<'_>, bytes: &Bound<'_, PyBytes>) -> PyResult<usize> {
        let bytes = bytes.as_bytes();
        py.detach(|| {
            let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            let writer = held.as_mut().ok_or_else(over)?.get_mut()?.as_mut().ok_or_else(over)?;
            writer.write_all(bytes).map_err(|error| raise(Error::from(error)))?;
            Ok(bytes.len())
        })
    }

    /// Makes what was written the value. Returns its seq.
    fn finish(&self, py: Python<'_>) -> PyResult<u64> {
        py.detach(|| {
            let held = self.0.lock().unwrap_or_else(PoisonError::into_inner).take();
            let writer = held.ok_or_else(over)?.get_mut()?.take().ok_or_else(over)?;
            writer.finish().map(u64::from).map_err(raise)
        })
    }

    /// Forgets what was written.
    fn forget(&self, py: Python<'_>) {
        py.detach(|| drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
