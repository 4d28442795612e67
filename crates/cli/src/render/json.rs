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
pub(crate) trait Told {
    fn told(self) -> Datum;
}

impl Told for Json {
    fn told(self) -> Datum {
        self.0
    }
}

impl Told for bool {
    fn told(self) -> Datum {
        Datum::Bool(self)
    }
}

impl Told for u64 {
    fn told(self) -> Datum {
        Datum::Int(self.into())
    }
}

impl Told for Seq {
    fn told(self) -> Datum {
        Datum::Int(u64::from(self).into())
    }
}

impl Told for usize {
    fn told(self) -> Datum {
        Datum::Int(self as i128)
    }
}

impl Told for &str {
    fn told(self) -> Datum {
        Datum::Text(self.to_owned())
    }
}

impl Told for String {
    fn told(self) -> Datum {
        Datum::Text(self)
    }
}

impl<T: Told> Told for Option<T> {
    fn told(self) -> Datum {
        self.map_or(Datum::Null, Told::told)
    }
}

impl<T: Told> Told for Vec<T> {
    fn told(self) -> Datum {
        Datum::List(self.into_iter().map(Told::told).collect())
    }
}

/// An object of these fields, in this order.
macro_rules! object {
    ($($name:literal: $value:expr),+ $(,)?) => {
        $crate::render::json::Json(folddb::Datum::Map(vec![
            $(($name.to_owned(), $crate::render::json::Told::told($value))),+
        ]))
    };
}

pub(crate) use object;
