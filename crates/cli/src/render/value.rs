//! One value for people: on a line, or field by field below each other.

use std::io::{self, Write};

use folddb::Datum;
use folddb::DynamicRules;

use crate::render::{columns, table};

/// Writes a value of a table with these rules.
pub(crate) fn write(out: &mut dyn Write, rules: &DynamicRules, shown: &Datum) -> io::Result<()> {
    let paths = columns::value_paths(rules.as_table_rules().fold.spec());
    let shown = &columns::for_people(&paths, shown.clone());
    match paths.as_slice() {
        [path] if path.fields.is_empty() => writeln!(out, "{shown}"),
        paths => {
            let pair = |path: &columns::Path| (path.name(), path.find(shown).clone());
            table::write_pairs(out, &paths.iter().map(pair).collect::<Vec<_>>())
        }
    }
}
