//! `append` and `append:SEP`: the bytes one after the other, with a separator between.
//!
//! ```text
//!   earlier SEP later
//! ```
//!
//! Joining with a fixed separator is associative. The separator stands between any two operands, empty ones
//! too, so that as many pieces come out as went in.

use crate::fold::{Fold, FoldFailure, Outcome};

use super::wire::BuiltIn;
use super::words::quoted_bytes;

/// See the module.
pub(crate) struct Append {
    pub(crate) separator: Vec<u8>,
}

impl Fold for Append {
    fn spec(&self) -> String {
        if self.separator.is_empty() {
            "append".to_owned()
        } else {
            format!("append:{}", quoted_bytes(&self.separator))
        }
    }
    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        out.reserve(a.len() + self.separator.len() + b.len());
        out.extend_from_slice(a);
        out.extend_from_slice(&self.separator);
        out.extend_from_slice(b);
        Ok(Outcome::Value)
    }
    fn joins_with(&self) -> Option<&[u8]> {
        Some(&self.separator)
    }
}

impl BuiltIn for Append {}
