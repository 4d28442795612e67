//! One value for people: on a line, or field by field below each other.
//!
//! A value that is one text is written as it is, for programs; a terminal would obey the control
//! characters in it, so there they are escaped.

use std::io::{self, Write};

use folddb::Datum;
use folddb::DynamicRules;

use crate::human;
use crate::render::columns::{self, Columns};
use crate::render::quantiles::Quantiles;
use crate::render::{figures, look, table};

/// Writes a value of a table with these rules.
pub(crate) fn write(
    out: &mut dyn Write,
    rules: &DynamicRules,
    shown: &Datum,
    quantiles: Option<&Quantiles>,
    is_full: bool,
) -> io::Result<()> {
    let paths = match quantiles {
        Some(quantiles) => Columns::of(rules, false, false).with_quantiles(quantiles).paths(),
        None => columns::value_paths(rules.as_table_rules().fold.spec()),
    };
    let shown = &columns::for_people(&paths, shown.clone());
    match paths.as_slice() {
        [path] if path.fields.is_empty() => match shown {
            Datum::Float(value) => writeln!(out, "{}", figures::in_full(*value)),
            shown => writeln!(out, "{}", whole(shown, look::is_terminal())),
        },
        paths => {
            let pair = |path: &columns::Path| (path.name(), path.find(shown).clone());
            table::write_pairs(out, &paths.iter().map(pair).collect::<Vec<_>>(), is_full)
        }
    }
}

/// All of a value.
fn whole(shown: &Datum, is_terminal: bool) -> String {
    let text = shown.to_string();
    if is_terminal { human::spelled(&text).into_owned() } else { text }
}
