//! A sample of the rows of a table: whether its fold takes what programs have written to it.
//!
//! Values that the fold does not take were written by a program with other types, or by an older
//! one whose fold took them: the checksums are right, so only reading values shows it. Called by
//! the doctor of a closed store.

use folddb_base::ErrorKind;

use crate::bytes_table::BytesTable;
use crate::maintenance::verify::check_value;

/// Most rows of a table that are read.
const ROWS: usize = 1000;

/// Most bytes of values that are read.
const BYTES: usize = 1 << 20;

/// The first row of the sample whose value the fold does not take, in words.
pub(crate) fn unfit(table: &BytesTable) -> Option<String> {
    let rules = &table.core().rules;
    let mut bytes = 0;
    for row in table.scan().into_iter().take(ROWS) {
        match row {
            Ok((key, value)) => {
                if let Err(what) = check_value(rules, &value) {
                    let key = rules.rules.key_codec().show_line(&key);
                    return Some(format!("the value of key {key}: {what}"));
                }
                bytes += value.len();
            }
            Err(error) if error.kind() == ErrorKind::FoldFailed => return Some(error.message().to_owned()),
            Err(_) => return None, // damage, which verify reports
        }
        if bytes > BYTES {
            break;
        }
    }
    None
}
