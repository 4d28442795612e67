//! What is computed for each row, and what takes it.

use folddb::Datum;

use jiff::tz::TimeZone;

use crate::failure::Failure;
use crate::import::expr::value::Value;
use crate::import::expr::{Expr, parse};
use crate::import::row::BadRow;
use crate::import::rows::Rows;

/// What takes the value of a column.
pub(super) enum Takes {
    /// The fold of this spec.
    Fold(String),
    /// A codec, as text or bytes.
    Codec,
    /// A codec, as JSON: from NDJSON any value, from CSV its text.
    Json,
}

impl Takes {
    /// Whether true and false are 1 and 0 here.
    fn numbers(&self) -> bool {
        let stem = |spec: &str| spec.split(':').next().unwrap_or_default().to_owned();
        matches!(self, Takes::Fold(spec) if ["sum", "min", "max", "stats", "quantiles"].contains(&&*stem(spec)))
    }
}

/// What is computed for each row.
pub(super) struct Computed {
    pub(super) expr: Expr,
    pub(super) text: String,
}

impl Computed {
    /// Reads an expression, and finds its columns.
    pub(super) fn bind(text: &str, zone: &TimeZone, rows: &mut Rows) -> Result<Computed, Failure> {
        let mut expr = parse::parse(text, zone).map_err(Failure::Usage)?;
        expr.bind(&mut |name| rows.slot(name))?;
        Ok(Computed { expr, text: text.to_owned() })
    }

    pub(super) fn value<'a>(&'a self, rows: &'a Rows) -> Result<Value<'a>, BadRow> {
        self.expr.value(rows).map_err(|bad| match bad.column {
            Some(_) => bad,
            None => BadRow::column(&self.text, bad.reason),
        })
    }

    /// Sets the datum to what the row gives; false if that is nothing.
    pub(super) fn put(&self, datum: &mut Datum, rows: &Rows, takes: &Takes) -> Result<bool, BadRow> {
        match self.value(rows)? {
            Value::Null => Ok(false),
            Value::List(items) if items.contains(&Value::Null) => Ok(false),
            Value::List(items) => {
                let item = |item: &Value<'_>| Datum::Text(item.text().unwrap_or_default().into_owned());
                *datum = Datum::List(items.iter().map(item).collect());
                Ok(true)
            }
            Value::Bool(truth) if takes.numbers() => {
                put_text(datum, if truth { "1" } else { "0" });
                Ok(true)
            }
            value => {
                let text = value.text().unwrap_or_default();
                put_text(datum, &text);
                Ok(!text.is_empty())
            }
        }
    }
}

/// Sets the datum to this text, reusing the buffer of an earlier text.
pub(super) fn put_text(datum: &mut Datum, text: &str) {
    match datum {
        Datum::Text(present) => {
            present.clear();
            present.push_str(text);
        }
        other => *other = Datum::Text(text.to_owned()),
    }
}
