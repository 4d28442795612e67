//! A sample of the rows of a table: whether its fold takes what programs have written to it.
//!
//! What a fold does not take was written by a program whose types are others, or by an older one
//! whose fold took it: the checksums are right, so only reading values shows it. Called by the
//! doctor of a store at rest.

use folddb_base::ErrorKind;

use crate::bytes_table::BytesTable;
use crate::maintenance::verify::check_value;

/// So many rows of a table are read at most,
const ROWS: usize = 1000;

/// or so many bytes of values. In bytes.
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
            Err(_) => return None, // damage, which verify tells of
        }
        if bytes > BYTES {
            break;
        }
    }
    None
}
