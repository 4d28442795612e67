//! A rival in the results.

use anyhow::Result;
use serde_json::Value;

/// A rival with its runs, or the sentence why it has none that count.
pub(crate) struct Standing {
    pub(crate) rival: String,
    pub(crate) runs: Result<Vec<Value>, String>,
}
