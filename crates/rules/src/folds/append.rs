//! `append` and `append:SEP`: the bytes one after the other, with a separator between.
//!
//! ```text
//!   earlier SEP later
//! ```
//!
//! Joining with a fixed separator is associative. The separator is between any two operands, empty
//! ones too, so no piece is lost.

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::BuiltIn;
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
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        Ok(Datum::text_or_bytes(value))
    }
    /// Cut anywhere, or at a separator.
    fn pieces(&self, value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        let (mut rest, mut pieces) = (value, Vec::new());
        while rest.len() > bytes_max {
            let window = &rest[..rest.len().min(bytes_max.saturating_add(self.separator.len()))];
            let at = match self.separator.len() {
                0 => character_before(rest, bytes_max),
                len => window.windows(len).rposition(|bytes| bytes == self.separator)?,
            };
            if at + self.separator.len() == 0 {
                return None;
            }
            pieces.push(rest[..at].to_vec());
            rest = &rest[at + self.separator.len()..];
        }
        pieces.push(rest.to_vec());
        Some(pieces)
    }
    fn joins_with(&self) -> Option<&[u8]> {
        Some(&self.separator)
    }
}

/// The last place up to this one at which no character of UTF-8 is cut in two.
fn character_before(bytes: &[u8], at: usize) -> usize {
    let is_inside = |at: &usize| bytes.get(*at).is_some_and(|byte| byte & 0xc0 == 0x80);
    (at.saturating_sub(3)..=at).rev().find(|at| *at > 0 && !is_inside(at)).unwrap_or(at)
}

impl BuiltIn for Append {}
