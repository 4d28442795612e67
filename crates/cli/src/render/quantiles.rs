//! Quantiles that a fold `quantiles` does not show by itself: `--quantile 0.999` gives a column
//! `p99.9`.

use folddb::folds::{FoldSpec, Record};
use folddb::{Datum, DynamicRules};

use crate::failure::Failure;

/// The fields of a value, as far as quantiles are in it.
enum Field {
    Sketch(FoldSpec),
    Record(Box<Record>, Vec<(String, Field)>),
}

/// Quantiles to be shown.
pub(crate) struct Quantiles {
    field: Option<Field>,
    wanted: Vec<(String, f64)>,
}

impl Quantiles {
    /// These quantiles of the values of a table.
    pub(crate) fn of(rules: &DynamicRules, wanted: &[f64]) -> Result<Quantiles, Failure> {
        let field = Field::of(rules.as_table_rules().fold.spec());
        if field.is_none() && !wanted.is_empty() {
            let why = "no column of the table folds by quantiles, so --quantile has nothing to show";
            return Err(Failure::Usage(why.to_owned()));
        }
        let mut named: Vec<(String, f64)> = Vec::new();
        for &q in wanted {
            let name = name(q);
            // Each once, and not those that are shown anyway.
            if !SHOWN.contains(&name.as_str()) && named.iter().all(|(other, _)| *other != name) {
                named.push((name, q));
            }
        }
        Ok(Quantiles { field, wanted: named })
    }

    /// The names of the columns.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.wanted.iter().map(|(name, _)| name.as_str())
    }

    /// Puts them into a value as it is shown.
    pub(crate) fn put(&self, value: &[u8], shown: &mut Datum) {
        if let (Some(field), false) = (&self.field, self.wanted.is_empty()) {
            field.put(value, &self.wanted, shown);
        }
    }
}

impl Field {
    fn of(spec: &str) -> Option<Field> {
        if let Ok(record) = spec.parse::<Record>() {
            let names: Vec<String> = record.names().map(str::to_owned).collect();
            let field =
                |(index, name): (usize, String)| Some((name, Field::of(&record.field_fold(index)?.spec())?));
            let fields: Vec<_> = names.into_iter().enumerate().filter_map(field).collect();
            return (!fields.is_empty()).then(|| Field::Record(Box::new(record), fields));
        }
        is_of(spec).then(|| spec.parse().ok().map(Field::Sketch)).flatten()
    }

    fn put(&self, value: &[u8], wanted: &[(String, f64)], shown: &mut Datum) {
        let Datum::Map(parts) = shown else { return };
        match self {
            Field::Sketch(spec) => {
                let before_max = parts.iter().position(|(name, _)| name == "max").unwrap_or(parts.len());
                let found = wanted.iter().filter_map(|(name, q)| {
                    let found = spec.quantile(value, *q).ok().flatten()?;
                    Some((name.clone(), Datum::Float(found)))
                });
                drop(parts.splice(before_max..before_max, found.collect::<Vec<_>>()));
            }
            Field::Record(record, fields) => {
                for (name, field) in fields {
                    let part = parts.iter_mut().find(|(of, _)| of == name);
                    if let (Some((_, shown)), Ok(Some(value))) = (part, record.field(value, name)) {
                        field.put(value, wanted, shown);
                    }
                }
            }
        }
    }
}

/// Whether values fold by `quantiles`.
pub(crate) fn is_of(spec: &str) -> bool {
    spec.split(':').next() == Some("quantiles")
}

/// The quantiles that are shown without being asked for.
const SHOWN: [&str; 3] = ["p50", "p90", "p99"];

/// `p99.9` of 0.999: its own digits, two places on.
fn name(q: f64) -> String {
    let digits = q.to_string();
    let (whole, rest) = digits.split_once('.').unwrap_or((&digits, ""));
    let rest = format!("{rest:0<2}");
    let percent = format!("{whole}{}.{}", &rest[..2], &rest[2..]);
    let percent = percent.trim_end_matches('.').trim_start_matches('0');
    format!("p{}{percent}", if percent.is_empty() || percent.starts_with('.') { "0" } else { "" })
}

#[cfg(test)]
#[path = "quantiles/tests.rs"]
mod tests;
