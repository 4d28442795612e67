//! Rows in the order of a column: where there is a limit, only so many are held.

use std::cmp::Ordering;

use folddb::Datum;

use crate::failure::Failure;
use crate::render::columns::{Columns, Row};

/// Takes rows, and gives them back in the order of a column.
pub(crate) struct Sorted {
    column: usize,
    is_descending: bool,
    limit: Option<usize>,
    rows: Vec<Row>,
}

impl Sorted {
    /// By the column of this name.
    pub(crate) fn by(
        columns: &Columns,
        name: &str,
        is_descending: bool,
        limit: Option<usize>,
    ) -> Result<Sorted, Failure> {
        Ok(Sorted { column: columns.find(name)?, is_descending, limit, rows: Vec::new() })
    }

    /// Takes a row.
    pub(crate) fn push(&mut self, columns: &Columns, row: Row) {
        self.rows.push(row);
        if self.limit.is_some_and(|limit| self.rows.len() >= limit.saturating_mul(2).max(1024)) {
            self.settle(columns);
        }
    }

    /// The rows in their order; those that are equal in the order in which they came.
    pub(crate) fn rows(mut self, columns: &Columns) -> Vec<Row> {
        self.settle(columns);
        self.rows
    }

    fn settle(&mut self, columns: &Columns) {
        let (column, is_descending) = (self.column, self.is_descending);
        self.rows.sort_by(|one, two| {
            let (one, two) = (columns.field_of(column, one), columns.field_of(column, two));
            let is_missing = |datum: &Datum| *datum == Datum::Null;
            let missing = is_missing(one).cmp(&is_missing(two)); // what is missing comes last
            let order = compare(one, two);
            missing.then(if is_descending { order.reverse() } else { order })
        });
        self.rows.truncate(self.limit.unwrap_or(usize::MAX));
    }
}

/// How two values compare: numbers by their value, then texts, then all others. It is a total
/// order, also of values of different kinds, which a column of JSON may have.
pub(crate) fn compare(one: &Datum, two: &Datum) -> Ordering {
    match (one, two) {
        (Datum::Int(one), Datum::Int(two)) => one.cmp(two),
        (Datum::Text(one), Datum::Text(two)) => one.cmp(two),
        (Datum::List(one), Datum::List(two)) => {
            let first = one.iter().zip(two).map(|(one, two)| compare(one, two)).find(|order| order.is_ne());
            first.unwrap_or(one.len().cmp(&two.len()))
        }
        (one, two) => rank(one).cmp(&rank(two)).then_with(|| match (sized(one), sized(two)) {
            (Some(one), Some(two)) => one.0.total_cmp(&two.0).then(one.1.cmp(&two.1)),
            _ => one.to_string().cmp(&two.to_string()),
        }),
    }
}

/// The kinds of values in their order.
fn rank(datum: &Datum) -> u8 {
    match datum {
        Datum::Null => 0,
        Datum::Int(_) | Datum::Float(_) | Datum::Number(_) => 1,
        Datum::Text(_) => 2,
        Datum::Bool(_) | Datum::Bytes(_) | Datum::Map(_) => 3,
        Datum::List(_) => 4,
    }
}

/// A number as a double, and as a whole number, which tells apart those that round to one double.
fn sized(datum: &Datum) -> Option<(f64, i128)> {
    let rounded = number(datum)?;
    let whole = match datum {
        Datum::Int(value) => *value,
        Datum::Number(text) => text.parse().unwrap_or(rounded as i128),
        _ => rounded as i128,
    };
    Some((rounded, whole))
}

/// A value as a number, if it is one.
pub(crate) fn number(datum: &Datum) -> Option<f64> {
    match datum {
        Datum::Int(value) => Some(*value as f64),
        Datum::Float(value) => Some(*value),
        Datum::Number(text) => text.parse().ok(),
        _ => None,
    }
}

#[cfg(test)]
#[path = "sorted/tests.rs"]
mod tests;
