//! What several stores share: a memory budget, a cache, threads, and a limit on their background
//! writes.

use folddb::Shared;
use pyo3::prelude::*;

use crate::errors::detached;
use crate::forks::Guarded;

/// A memory budget, a cache, three background threads, and a limit on what these write, for all
/// stores that are opened with it: `folddb.open(path, shared=folddb.Shared(64 << 20))`. It lives as
/// long as a store uses it.
#[pyclass(frozen, module = "folddb", name = "Shared")]
pub(crate) struct SharedOf(Guarded<Shared>);

impl SharedOf {
    pub(crate) fn shared(&self) -> PyResult<&Shared> {
        self.0.get()
    }
}

#[pymethods]
impl SharedOf {
    /// A budget of this many bytes for memtables, the cache and merges of all stores, at least
    /// 4 MiB.
    #[new]
    fn new(py: Python<'_>, memory_bytes: usize) -> PyResult<SharedOf> {
        detached(py, || Ok(Shared::new(memory_bytes))).map(|shared| SharedOf(Guarded::new(shared)))
    }

    /// Sets how many bytes per second background work of all stores may write; None, the default,
    /// is no limit. Flushes count, and never wait.
    #[pyo3(signature = (bytes))]
    fn set_background_bytes_per_s(&self, py: Python<'_>, bytes: Option<u64>) -> PyResult<()> {
        let shared = self.shared()?;
        detached(py, || {
            shared.set_background_bytes_per_s(bytes);
            Ok(())
        })
    }

    /// The budget, in bytes.
    #[getter]
    fn memory_bytes(&self) -> PyResult<usize> {
        Ok(self.shared()?.memory_bytes())
    }

    /// Bytes that memtables and the cache of all stores hold now.
    #[getter]
    fn used_bytes(&self, py: Python<'_>) -> PyResult<u64> {
        let shared = self.shared()?;
        detached(py, || Ok(shared.used_bytes()))
    }

    /// How many stores share it now.
    #[getter]
    fn stores(&self, py: Python<'_>) -> PyResult<usize> {
        let shared = self.shared()?;
        detached(py, || Ok(shared.stores()))
    }

    fn __repr__(&self) -> PyResult<String> {
        let shared = self.shared()?;
        Ok(format!("<folddb.Shared of {} bytes, {} stores>", shared.memory_bytes(), shared.stores()))
    }
}
