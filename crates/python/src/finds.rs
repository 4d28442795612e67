//! Finding records by their contents: hits of an index.

use std::ops;

use folddb::BytesFind;
use folddb::codec::tuple::Element;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::errors::{detached, raise};
use crate::forks::Guarded;
use crate::keys;
use crate::place::Placed;
use crate::records::pair;
use crate::typed::value_of;

/// The hits of an index: the records that have a term.
#[pyclass(frozen, module = "folddb")]
pub(crate) struct Find {
    table: Guarded<Placed>,
    find: Guarded<BytesFind>,
}

/// The terms of a query.
pub(crate) struct Asked<'py> {
    pub(crate) term: Option<Bound<'py, PyAny>>,
    pub(crate) prefix: Option<Bound<'py, PyAny>>,
    pub(crate) start: Option<Bound<'py, PyAny>>,
    pub(crate) before: Option<Bound<'py, PyAny>>,
}

impl Find {
    /// # Errors
    /// There is no such index, or it cannot have such a term.
    pub(crate) fn new(
        py: Python<'_>,
        table: &Placed,
        index: &str,
        asked: Asked<'_>,
        reverse: bool,
        limit: Option<usize>,
    ) -> PyResult<Find> {
        let mut find = detached(py, || table.find(index))?;
        let element = |term: &Bound<'_, PyAny>| keys::element(table.name(), term);
        if let Some(term) = &asked.term {
            find = find.term(element(term)?);
        }
        if let Some(prefix) = &asked.prefix {
            find = find.prefix(element(prefix)?);
        }
        let bound = |term: Option<Bound<'_, PyAny>>| term.map(|term| element(&term)).transpose();
        find = match (bound(asked.start)?, bound(asked.before)?) {
            (None, None) => find,
            (low, high) => {
                let low: ops::Bound<Element<'static>> =
                    low.map_or(ops::Bound::Unbounded, ops::Bound::Included);
                find.range((low, high.map_or(ops::Bound::Unbounded, ops::Bound::Excluded)))
            }
        };
        let find = if reverse { find.reverse() } else { find };
        let find = limit.map_or(find.clone(), |limit| find.limit(limit));
        Ok(Find { table: Guarded::new(table.clone()), find: Guarded::new(find) })
    }
}

#[pymethods]
impl Find {
    /// How many hits there are.
    fn count(&self, py: Python<'_>) -> PyResult<u64> {
        let find = self.find.get()?.clone();
        detached(py, || find.count())
    }

    /// The keys of the hits.
    fn keys<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let find = self.find.get()?.clone();
        let found = detached(py, || find.keys().collect::<folddb::Result<Vec<_>>>())?;
        let table = self.table.get()?;
        let keys = found.iter().map(|key| keys::decode(py, &table.codec, key));
        PyList::new(py, keys.collect::<PyResult<Vec<_>>>()?)
    }

    /// The hits: pairs of key and value.
    fn items<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let find = self.find.get()?.clone();
        let found = detached(py, || find.values().collect::<folddb::Result<Vec<_>>>())?;
        let table = self.table.get()?;
        let row = |(key, value): &(Vec<u8>, Vec<u8>)| {
            let shown = table.values.show(&table.table, value).map_err(raise)?;
            pair(py, keys::decode(py, &table.codec, key)?, value_of(py, table, &shown)?)
        };
        PyList::new(py, found.iter().map(row).collect::<PyResult<Vec<_>>>()?)
    }

    fn __iter__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        Ok(self.items(py)?.try_iter()?.into_any())
    }
}
