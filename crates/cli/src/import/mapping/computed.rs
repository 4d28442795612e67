//! What is computed for each row, and what takes it.

use folddb::{Datum, Fold};

use jiff::Timestamp;
use jiff::tz::TimeZone;

use crate::failure::Failure;
use crate::import::expr::value::Value;
use crate::import::expr::{Expr, parse, split};
use crate::import::row::{BadRow, Fields};
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

/// How it is known what a source gives, before a row is read.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// It has no columns.
    Constant,
    /// All that it gives is of one kind, as times or truths.
    Kind,
}

impl Known {
    fn of(self, expr: &Expr) -> Result<Option<Value<'_>>, BadRow> {
        match self {
            Known::Constant => expr.constant().transpose(),
            Known::Kind => Ok(expr.sample()),
        }
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

    /// The sources of a field, whose columns are not looked for.
    pub(super) fn unbound(sources: &[String], zone: &TimeZone) -> Result<Computed, Failure> {
        let read = |source: &String| match split::is_expression(source) {
            true => parse::parse(source, zone).map_err(Failure::Usage),
            false => {
                Ok(constant(source).unwrap_or_else(|| Expr::Column { name: source.clone(), slot: None }))
            }
        };
        let expr = match sources {
            [one] => read(one)?,
            several => Expr::List(several.iter().map(read).collect::<Result<_, _>>()?),
        };
        Ok(Computed { expr, text: sources.join(", ") })
    }

    pub(super) fn value<'a>(&'a self, rows: &'a Rows) -> Result<Value<'a>, BadRow> {
        self.expr.value(rows).map_err(|bad| match bad.column {
            Some(_) => bad,
            None => BadRow::computed(&self.text, bad.reason),
        })
    }

    /// Sets the datum to what the row gives; false if that is nothing.
    pub(super) fn put(&self, datum: &mut Datum, rows: &Rows, takes: &Takes) -> Result<bool, BadRow> {
        self.set(datum, self.value(rows)?, takes)
    }

    /// Sets the datum to this value.
    fn set(&self, datum: &mut Datum, value: Value<'_>, takes: &Takes) -> Result<bool, BadRow> {
        match value {
            Value::Null => Ok(false),
            // Of several sources none may be missing; an element of a list that is null is passed
            // over.
            Value::List(items) if self.is_several() && items.contains(&Value::Null) => Ok(false),
            Value::List(mut items) => {
                if let (Some(Value::Bool(truth)), true) = (items.first(), self.is_pair_of(takes)) {
                    items[0] = Value::Whole((*truth).into()); // a number is needed there
                }
                items.retain(|item| *item != Value::Null);
                let item = |item: &Value<'_>| Datum::Text(item.text().unwrap_or_default().into_owned());
                *datum = Datum::List(items.iter().map(item).collect());
                Ok(true)
            }
            Value::Bool(truth) if takes.numbers() => {
                put_text(datum, if truth { "1" } else { "0" });
                Ok(true)
            }
            Value::Moment(at) => {
                put_moment(datum, at);
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

    /// Refuses a source of which it is known before a row is read that the fold can never take it.
    pub(super) fn check_fits(&self, fold: &dyn Fold, takes: &Takes, by: Known) -> Result<(), Failure> {
        let wrong = |cause: &str| {
            let (text, spec) = (&self.text, fold.spec());
            let (what, column) = match by == Known::Constant && !self.is_several() {
                true => ("the constant ", format!(" (a column of this name: `{text}` in backquotes)")),
                false => ("", String::new()),
            };
            Err(Failure::Usage(format!("in --fold: {what}`{text}` can never feed `{spec}`: {cause}{column}")))
        };
        let value = match self.known(takes, by) {
            Ok(None) => return Ok(()),
            Ok(Some(value)) => value,
            Err(bad) => return wrong(&bad.reason),
        };
        let mut datum = Datum::Null;
        match (self.set(&mut datum, value, takes), takes) {
            (Err(bad), _) => wrong(&bad.reason),
            (Ok(true), Takes::Fold(_)) => fold
                .read(&datum, &mut Vec::new())
                .or_else(|cause| wrong(&self.bad(&datum, takes, cause.message()).reason)),
            (Ok(_), _) => Ok(()), // null gives nothing, and is no mistake
        }
    }

    /// What is known of what it gives. Of the two sources of a fold, one that fits stands for one
    /// of which nothing is known.
    fn known(&self, takes: &Takes, by: Known) -> Result<Option<Value<'_>>, BadRow> {
        let Expr::List(items) = &self.expr else { return by.of(&self.expr) };
        let known: Vec<_> = items.iter().map(|item| by.of(item)).collect::<Result<_, _>>()?;
        if !self.is_pair_of(takes) || known.iter().all(Option::is_none) {
            return Ok(None);
        }
        let fitting = [Value::Whole(0), Value::Text("".into())];
        let items = known.into_iter().zip(fitting).map(|(known, fitting)| known.unwrap_or(fitting));
        Ok(Some(Value::List(items.collect())))
    }

    /// Sets the datum to a time that the row gives as this text.
    pub(super) fn put_time(&self, datum: &mut Datum, text: &str, zone: &TimeZone) -> Result<(), BadRow> {
        let zone = self.expr.zone().unwrap_or(zone);
        put_time(datum, text, zone).map_err(|wrong| BadRow::computed(&self.text, wrong))
    }

    /// A row of which it gives something that the fold does not take.
    pub(super) fn bad(&self, given: &Datum, takes: &Takes, cause: &str) -> BadRow {
        // The number that is compared is often a time, of which a fold knows nothing.
        let is_time = |text: &str| text.parse::<f64>().is_err() && times::parse(text, &TimeZone::UTC).is_ok();
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

    /// Whether it is the two sources of a fold, the first of which is a number.
    fn is_pair_of(&self, takes: &Takes) -> bool {
        self.is_several() && matches!(takes, Takes::Fold(spec) if pair_of(spec).is_some())
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

/// What the fold of this spec takes.
pub(super) fn takes_of(spec: &str, zone: &TimeZone) -> Takes {
    match spec {
        "min:time" | "max:time" => Takes::Time(zone.clone(), true),
        spec => Takes::Fold(spec.to_owned()),
    }
}

/// A number, a text in quotes, or true, false or null.
pub(super) fn constant(source: &str) -> Option<Expr> {
    let is_constant = source.starts_with('"') || parse::is_bare_constant(source);
    is_constant.then(|| parse::parse(source, &TimeZone::UTC).ok()).flatten()
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

/// Sets the datum to a moment.
pub(super) fn put_moment(datum: &mut Datum, at: Timestamp) {
    *datum = Datum::Int(times::micros_of(at).into());
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
