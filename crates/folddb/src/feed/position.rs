//! The state of a feed in the manifest, and what it covers.

use folddb_base::{Error, Result};
use folddb_manifest::{FeedPhase, FeedState};
use folddb_rules::Datum;

use crate::feed::event::{FeedOptions, FeedPosition};

/// Longest name of a feed, in bytes.
const NAME_BYTES_MAX: usize = 255;

/// Fails if a feed does not cover what is requested.
pub(crate) fn check_same(name: &str, options: &FeedOptions, state: &FeedState) -> Result<()> {
    let table = Some(state.table.clone()).filter(|table| !table.is_empty());
    if (&table, &state.prefix) == (&options.table, &options.prefix) {
        return Ok(());
    }
    let tables = table.map_or("all tables".to_owned(), |table| format!("table `{table}`"));
    let keys = match state.prefix.is_empty() {
        true => String::new(),
        false => format!(", of keys that begin with `{}`", Datum::from_bytes(&state.prefix)),
    };
    Err(Error::invalid(format!(
        "feed `{name}` reports {tables}{keys}: open it with the same table and prefix, drop it, or choose another name"
    )))
}

pub(crate) const NOWHERE: FeedPosition =
    FeedPosition { seq: 0, lsn: 0, note: 0, is_settled: false, begun: 0 };

pub(crate) fn place_of(state: &FeedState) -> FeedPosition {
    let is_settled = state.phase != FeedPhase::Rows;
    FeedPosition { seq: state.seq, lsn: state.lsn, note: state.note, is_settled, begun: 0 }
}

pub(crate) fn check_name(name: &str) -> Result<()> {
    if !name.is_empty() && name.len() <= NAME_BYTES_MAX && !name.chars().any(char::is_control) {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a feed's name has 1 to {NAME_BYTES_MAX} bytes and no control characters; {name:?} does not fit"
    )))
}
