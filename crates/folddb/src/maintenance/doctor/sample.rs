//! A sample of the rows of a table: whether its fold takes what programs have written to it.
//!
//! Values that the fold does not take were written by a program with other types, or by an older
//! one whose fold took them: the checksums are right, so only reading values shows it. Called by
//! the doctor of a closed store.

use folddb_base::ErrorKind;

use crate::maintenance::verify::check_value;
use crate::scan::rows::AnyRows;
use crate::table::bytes::BytesTable;
use folddb_engine::read::scan::ScanPlan;

/// Most rows of a table that are read.
const ROWS: usize = 1000;

/// Most bytes of values that are read.
const BYTES: usize = 1 << 20;

/// Most keys without a value that are passed over: looking at each of a table whose values have all
/// expired would take as long as a scan of the whole table.
const PASSED: u64 = 10_000;

/// The first row of the sample whose value the fold does not take, in words.
pub(crate) fn unfit(table: &BytesTable) -> Option<String> {
    let rules = &table.core().rules;
    let mut bytes = 0;
    let plan = ScanPlan { passed_max: PASSED, ..ScanPlan::everything(None) };
    let mut rows = AnyRows::start(table.engine(), table.core(), plan).ok()?;
    for _ in 0..ROWS {
        match rows.next_row() {
            Ok(None) => break,
            Ok(Some((key, value))) => {
                if let Err(what) = check_value(rules, value) {
                    let key = rules.rules.key_codec().show_line(key);
                    return Some(format!(
                        "the value of key {key}: {what}; its checksum is right, so a program wrote it so"
                    ));
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

#[cfg(test)]
mod tests;
