//! The rules of a table as text.

use folddb::Result;
use folddb::table_rules::TableRules;

/// Reads rules: the name of ready-made ones, or a line `name=value` for each that is not the
/// default, as the store keeps them. No text means every default.
///
/// # Errors
/// InvalidInput, with the line that is no rule, and a caret under the place.
pub(crate) fn parse(text: &str) -> Result<TableRules> {
    Ok(text.parse::<TableRules>()?)
}
