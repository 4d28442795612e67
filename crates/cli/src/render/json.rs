//! Reports as JSON, with keys and values to the letter: the form of each is that of
//! [`folddb::datum::json`].

use std::fmt;

use folddb::{Datum, Seq, datum};

/// Something that prints as JSON, on one line.
pub(crate) struct Json(pub(crate) Datum);

impl fmt::Display for Json {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&datum::json::text_of(&self.0))
    }
}

/// A key or a value in a report.
pub(crate) fn from_datum(datum: &Datum) -> Json {
    Json(datum.clone())
}

/// What a report may hold.
pub(crate) trait IntoDatum {
    fn into_datum(self) -> Datum;
}

impl IntoDatum for Json {
    fn into_datum(self) -> Datum {
        self.0
    }
}

impl IntoDatum for bool {
    fn into_datum(self) -> Datum {
        Datum::Bool(self)
    }
}

impl IntoDatum for u64 {
    fn into_datum(self) -> Datum {
        Datum::Int(self.into())
    }
}

impl IntoDatum for Seq {
    fn into_datum(self) -> Datum {
        Datum::Int(u64::from(self).into())
    }
}

impl IntoDatum for usize {
    fn into_datum(self) -> Datum {
        Datum::Int(self as i128)
    }
}

impl IntoDatum for &str {
    fn into_datum(self) -> Datum {
        Datum::Text(self.to_owned())
    }
}

impl IntoDatum for String {
    fn into_datum(self) -> Datum {
        Datum::Text(self)
    }
}

impl<T: IntoDatum> IntoDatum for Option<T> {
    fn into_datum(self) -> Datum {
        self.map_or(Datum::Null, IntoDatum::into_datum)
    }
}

impl<T: IntoDatum> IntoDatum for Vec<T> {
    fn into_datum(self) -> Datum {
        Datum::List(self.into_iter().map(IntoDatum::into_datum).collect())
    }
}

/// An object of these fields, in this order.
macro_rules! object {
    ($($name:literal: $value:expr),+ $(,)?) => {
        $crate::render::json::Json(folddb::Datum::Map(vec![
            $(($name.to_owned(), $crate::render::json::IntoDatum::into_datum($value))),+
        ]))
    };
}

pub(crate) use object;
