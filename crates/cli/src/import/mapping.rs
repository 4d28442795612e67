//! Which columns of a file make the key of a record, and which feed its value.
//!
//! 1. [`Stated`] is the command line, read without a file or a store.
//! 2. [`Stated::rules`] makes the rules of a new table from it, or checks it against those of an
//!    existing table.
//! 3. [`Mapping::bind`] finds the columns in the file.
//! 4. [`Mapping::fill`] makes the key and value of a row. It allocates nothing for rows like the
//!    previous one, unless they are computed by expressions.
//!
//! The parts are in `mapping/`: what is computed, the command line, the key, and the value.

mod computed;
mod stated;
mod key;
mod value;

use folddb::DynamicRules;
use folddb::table_rules::TableRules;

use crate::failure::Failure;
use crate::import::row::BadRow;
use crate::import::rows::Rows;

use computed::Computed;
use key::KeyMap;
pub(crate) use stated::Stated;
use value::ValueMap;

/// The found columns of a file: makes keys and values of its rows.
pub(crate) struct Mapping {
    key: KeyMap,
    /// Only the rows of which this is true.
    only: Option<Computed>,
    value: ValueMap,
}

impl Mapping {
    /// Finds the columns.
    pub(crate) fn bind(stated: &Stated, rules: &TableRules, rows: &mut Rows) -> Result<Mapping, Failure> {
        let key = KeyMap::bind(stated, rules, rows)?;
        let only = stated.only.as_ref().map(|text| Computed::bind(text, &stated.zone, rows)).transpose()?;
        let value = ValueMap::bind(stated, rules, rows)?;
        Ok(Mapping { key, only, value })
    }

    /// Whether the present row is asked for.
    pub(crate) fn wants(&self, rows: &Rows) -> Result<bool, BadRow> {
        let Some(only) = &self.only else { return Ok(true) };
        only.value(rows)?
            .truth()
            .map(|truth| truth == Some(true))
            .map_err(|reason| BadRow::computed(&only.text, reason))
    }

    /// Makes the key and value of the present row. False if the row contributes nothing.
    pub(crate) fn fill(
        &mut self,
        rows: &Rows,
        rules: &DynamicRules,
        key: &mut Vec<u8>,
        value: &mut Vec<u8>,
    ) -> Result<bool, BadRow> {
        key.clear();
        value.clear();
        self.key.fill(rows, rules, key)?;
        self.value.fill(rows, rules, &self.key.slots, value)
    }
}
