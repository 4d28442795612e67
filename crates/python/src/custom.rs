//! Folds written in Python: named, versioned, and checked on samples before they are accepted.
//!
//! They are slow: each fold takes the lock of the interpreter, also on the threads of the store.

use std::sync::Arc;

use folddb::codec::ValueCodec;
use folddb::{Datum, Fold, FoldFailure, Outcome, datum, law};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyList};

use crate::calls;
use crate::convert::{bytes, datum_of, python_of};
use crate::errors::{detached, invalid};
use crate::rules;

struct PythonFold {
    name: String,
    version: u32,
    codec: ValueCodec,
    function: Py<PyAny>,
}

impl PythonFold {
    fn value<'py>(&self, py: Python<'py>, value: &[u8]) -> Result<Bound<'py, PyAny>, FoldFailure> {
        if self.codec == ValueCodec::Bytes {
            return Ok(PyBytes::new(py, value).into_any());
        }
        let shown = self.codec.show(value).map_err(|cause| FoldFailure::new(cause.to_string()))?;
        python_of(py, &shown).map_err(failure)
    }

    fn call(&self, earlier: &[u8], later: &[u8], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let fold = || {
            Python::try_attach(|py| {
                let (earlier, later) = (self.value(py, earlier)?, self.value(py, later)?);
                let folded = self.function.bind(py).call1((earlier, later)).map_err(failure)?;
                self.encode(&folded, out)
            })
        };
        let called = calls::called("a fold", fold); // there is no interpreter once it ends
        called.unwrap_or_else(|| Err(FoldFailure::new("the interpreter of Python has ended")))
    }

    fn encode(&self, value: &Bound<'_, PyAny>, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        if self.codec == ValueCodec::Bytes {
            let given = bytes(value).ok().flatten();
            let given = given.ok_or_else(|| FoldFailure::new("the fold does not return bytes"))?;
            out.extend_from_slice(&given);
            return Ok(());
        }
        self.read(&datum_of(value).map_err(failure)?, out)
    }
}

/// What was raised, as the failure of a fold. It becomes the cause of the exception of the call
/// around it.
fn failure(raised: PyErr) -> FoldFailure {
    let failure = FoldFailure::new(raised.to_string());
    calls::keep_raised(raised);
    failure
}

impl Fold for PythonFold {
    fn spec(&self) -> String {
        self.name.clone()
    }

    fn version(&self) -> u32 {
        self.version
    }

    fn fold(
        &self,
        _key: &[u8],
        earlier: &[u8],
        later: &[u8],
        out: &mut Vec<u8>,
    ) -> Result<Outcome, FoldFailure> {
        self.call(earlier, later, out).map(|()| Outcome::Value)
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        self.codec.check(value).map_err(|cause| FoldFailure::new(cause.to_string()))
    }

    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        match self.codec {
            ValueCodec::Bytes => Ok(Datum::Bytes(value.to_vec())),
            codec => codec.show(value).map_err(|cause| FoldFailure::new(cause.to_string())),
        }
    }

    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let read = match (self.codec, datum) {
            (ValueCodec::Json, Datum::Text(_)) => {
                self.codec.encode(&Datum::Text(datum::json::text_of(datum)), out)
            }
            (ValueCodec::Bytes, Datum::Text(_)) => return Err(FoldFailure::new("the value is not bytes")),
            (codec, datum) => codec.encode(datum, out),
        };
        read.map_err(|cause| FoldFailure::new(cause.to_string()))
    }
}

/// A fold that is written in Python: made by the decorator `folddb.fold`, given to `open` or
/// `create` in `folds`, and to `table` as `fold`.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct CustomFold(Arc<PythonFold>);

impl CustomFold {
    pub(crate) fn as_fold(&self) -> Arc<dyn Fold> {
        Arc::clone(&self.0) as Arc<dyn Fold>
    }
}

#[pymethods]
impl CustomFold {
    /// Makes a fold of a function of two values, the earlier and the later. The laws of folds are
    /// checked on the samples first.
    #[new]
    fn new(
        function: Py<PyAny>,
        name: String,
        version: u32,
        value: &Bound<'_, PyAny>,
        samples: &Bound<'_, PyList>,
    ) -> PyResult<CustomFold> {
        let fold = PythonFold { name, version, codec: rules::value(value)?, function };
        let py = samples.py();
        let encode = |sample: Bound<'_, PyAny>| {
            let mut bytes = Vec::new();
            let encoded = fold.encode(&sample, &mut bytes);
            encoded.map_err(|why| invalid(format!("fold `{}`: a sample does not fit: {why}", fold.name)))?;
            Ok(bytes)
        };
        let samples = samples.iter().map(encode).collect::<PyResult<Vec<_>>>()?;
        if samples.is_empty() {
            return Err(invalid(format!("fold `{}`: give samples, on which its law is checked", fold.name)));
        }
        let report = detached(py, || Ok(law::check(&fold, b"key", &samples)))?;
        if !report.holds() {
            return Err(invalid(format!(
                "fold `{}` breaks the law of folds on its samples:\n{report}",
                fold.name
            )));
        }
        Ok(CustomFold(Arc::new(fold)))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn version(&self) -> u32 {
        self.0.version
    }

    /// Calls the function itself with two values.
    fn __call__<'py>(
        &self,
        earlier: &Bound<'py, PyAny>,
        later: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.0.function.bind(earlier.py()).call1((earlier, later))
    }

    fn __repr__(&self) -> String {
        format!("<folddb.CustomFold `{}` version {}>", self.0.name, self.0.version)
    }
}
