//! What is computed for each row, and what takes it.

use folddb::Datum;

use jiff::tz::TimeZone;

use crate::failure::Failure;
use crate::import::expr::value::Value;
use crate::import::expr::{Expr, parse};
use crate::import::row::BadRow;
use crate::import::rows::Rows;
use crate::import::times;

/// What takes the value of a column.
pub(super) enum Takes {
    /// The fold of this spec.
    Fold(String),
    /// A codec, as text or bytes.
    Codec,
    /// A time, which a field has in this zone; and whether it is folded.
    Time(TimeZone, bool),
    /// A codec, as JSON: from NDJSON any value, from CSV its text.
    Json,
}

impl Takes {
    /// Whether it is a fold, to which an empty field gives nothing.
    pub(super) fn folds(&self) -> bool {
        matches!(self, Takes::Fold(_) | Takes::Time(_, true))
    }

    /// Why it does not take what one source gives: one that takes two as well says which.
    pub(super) fn refuses(&self, cause: &str) -> String {
        let Takes::Fold(spec) = self else { return cause.to_owned() };
        match pair_of(spec) {
            Some((pair, example)) => format!("{cause}, or two sources, {pair}: `{example}`"),
            None => cause.to_owned(),
        }
    }

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
        for constant in parse::bare_constants(text) {
            check_is_no_column(constant, rows)?;
        }
        if let (true, Some(column)) = (rows.is_delimited(), expr.compared_with_nothing()) {
            return Err(Failure::Usage(format!(
                "in `{text}`: an empty field is missing, and so never equal to \"\": coalesce({column}, \"\") == \"\" is \
                 true where it is"
            )));
        }
        expr.bind(&mut |name| rows.slot(name))?;
        Ok(Computed { expr, text: text.to_owned() })
    }

    pub(super) fn value<'a>(&'a self, rows: &'a Rows) -> Result<Value<'a>, BadRow> {
        self.expr.value(rows).map_err(|bad| match bad.column {
            Some(_) => bad,
            None => BadRow::computed(&self.text, bad.reason),
        })
    }

    /// Sets the datum to what the row gives; false if that is nothing.
    pub(super) fn put(&self, datum: &mut Datum, rows: &Rows, takes: &Takes) -> Result<bool, BadRow> {
        match self.value(rows)? {
            Value::Null => Ok(false),
            // Of several sources none may be missing; an element of a list that is null is passed
            // over.
            Value::List(items) if self.is_several() && items.contains(&Value::Null) => Ok(false),
            Value::List(mut items) => {
                items.retain(|item| *item != Value::Null);
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
                match takes {
                    Takes::Time(zone, _) => self.put_time(datum, &text, zone)?,
                    _ => put_text(datum, &text),
                }
                Ok(!text.is_empty())
            }
        }
    }

    /// Sets the datum to a time that the row gives as this text.
    pub(super) fn put_time(&self, datum: &mut Datum, text: &str, zone: &TimeZone) -> Result<(), BadRow> {
        let zone = self.expr.zone().unwrap_or(zone);
        put_time(datum, text, zone).map_err(|wrong| BadRow::computed(&self.text, wrong))
    }

    /// A row of which it gives something that the fold does not take.
    pub(super) fn bad(&self, given: &Datum, takes: &Takes, cause: &str) -> BadRow {
        // The number that is compared is often a time, of which a fold knows nothing.
        let is_time =
            |text: &str| text.parse::<f64>().is_err() && times::parse(text, &TimeZone::UTC).is_some();
        match (takes, given) {
            (Takes::Fold(spec), Datum::List(items))
                if spec.starts_with("lww")
                    && matches!(items.first(), Some(Datum::Text(text)) if is_time(text)) =>
            {
                let source = self.text.split(',').next().unwrap_or_default();
                let advice = format!("{cause} (a time is made a number: epoch_ms({source}))");
                BadRow::computed(&self.text, advice)
            }
            (Takes::Fold(spec), Datum::List(_)) if self.is_several() => {
                let order = pair_of(spec).map(|(pair, example)| format!(" ({pair}: `{example}`)"));
                BadRow::computed(&self.text, format!("{cause}{}", order.unwrap_or_default()))
            }
            _ => BadRow::computed(&self.text, takes.refuses(cause)),
        }
    }

    /// Whether it is several sources of a field.
    fn is_several(&self) -> bool {
        matches!(self.expr, Expr::List(_))
    }
}

/// The two sources that a fold takes, in words, and an example.
pub(super) fn pair_of(spec: &str) -> Option<(&'static str, &'static str)> {
    match spec.split(':').next()? {
        "lww" => Some(("first the moment, a whole number, then the value", "lww:ts = MOMENT, VALUE")),
        "top" => Some(("first the score, then the name", "top:3 = SCORE, NAME")),
        _ => None,
    }
}

/// Refuses a constant that is also the name of a column: it would be the same for each row, where
/// the column may be meant.
pub(super) fn check_is_no_column(constant: &str, rows: &Rows) -> Result<(), Failure> {
    if !parse::is_bare_constant(constant) || !rows.has_column(constant) {
        return Ok(());
    }
    let kind = if constant.parse::<f64>().is_ok() { "number" } else { "constant" };
    Err(Failure::Usage(format!(
        "`{constant}` is a {kind} and the name of a column: for the column, put it in backquotes (`{constant}`), for \
         the {kind}, in brackets: ({constant})"
    )))
}

/// Sets the datum to the time that this text is; an empty one stays text.
pub(super) fn put_time(datum: &mut Datum, text: &str, zone: &TimeZone) -> Result<(), String> {
    match text {
        "" => put_text(datum, ""),
        text => *datum = Datum::Int(times::micros(text, zone)?.into()),
    }
    Ok(())
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
