//! Parts of the rules of a table, as they are typed.

use folddb::IndexRule;
use folddb::table_rules::TableRules;

use crate::failure::Failure;

/// An index as it is typed: `NAME:RULE`.
pub(crate) fn rule(text: &str) -> Result<IndexRule, Failure> {
    IndexRule::parse(text).ok_or_else(|| {
        Failure::Usage(format!(
            "`{text}` is not an index: write NAME:RULE, with one of json:/POINTER, value, field:NAME, tuple:N, key:N, head, \
             head:, head:/POINTER, custom:NAME@VERSION"
        ))
    })
}

/// Refuses a lifetime for a value of a table whose values last forever.
pub(crate) fn check_expires(table: &str, rules: &TableRules) -> Result<(), Failure> {
    if rules.expire.has_stamps() {
        return Ok(());
    }
    Err(Failure::Usage(format!(
        "the values of table `{table}` never expire: create it with --expire by-write, or with a time"
    )))
}
