//! The rules of a table as text.

use folddb::codec::{KeyCodec, ValueCodec};
use folddb::table_rules::TableRules;
use folddb::{Error, Result};

/// Reads rules: the name of ready-made ones, or a line `name=value` for each that is not the
/// default, as the store keeps them. No text is every default.
///
/// # Errors
/// InvalidInput, naming the line that is no rule.
pub(crate) fn parse(text: &str) -> Result<TableRules> {
    if let Some(rules) = TableRules::ready_made(text.trim()) {
        return Ok(rules);
    }
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let lines = lines.strip_prefix(&["rules 1"]).unwrap_or(&lines);
    if let Some(line) = lines.iter().find(|line| !line.contains('=')) {
        return Err(Error::invalid(format!(
            "`{line}` is not a rule of a table: write lines such as `key=utf8` and `fold=sum:u64`, or one of {}",
            folddb::table_rules::READY_MADE.map(|(name, _)| name).join(", ")
        )));
    }
    for line in lines {
        check_types(line)?;
    }
    let has_fold = lines.iter().any(|line| line.starts_with("fold=") || line.starts_with("custom_fold="));
    let mut text = "rules 1\n".to_owned();
    for line in lines.iter().copied().chain((!has_fold).then_some("fold=replace")) {
        text.push_str(line);
        text.push('\n');
    }
    TableRules::from_text(&text).map_err(|error| Error::invalid(error.message().to_owned()))
}

/// Says of a type that there is not which there are.
fn check_types(line: &str) -> Result<()> {
    let checked = match line.split_once('=') {
        Some(("key", name)) => KeyCodec::parse(name).map(drop),
        Some(("value", name)) => ValueCodec::parse(name).map(drop),
        _ => Ok(()),
    };
    checked.map_err(|cause| Error::invalid(format!("`{line}`: {cause}")))
}
