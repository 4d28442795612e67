//! Heads: what the index keeps of a separated value, so that readers that need only this do not
//! read the value.
//!
//! ```text
//!   none          nothing
//!   first:N       the first N bytes, or all that there are
//!   json:POINTER  the piece there in a value that is JSON (RFC 6901), as JSON text without spaces
//!   named:NAME    what a function of the user makes of key and value
//! ```
//!
//! A head is taken when a separated value is written, and when a reader asks for the head of an
//! inline value: both give the same. There is none if it would be longer than [`HEAD_BYTES_MAX`],
//! if the value is not JSON or has nothing there, or if the function panics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Arc;

use crate::datum::json_text;
use crate::parse_error::ParseError;

/// Longest head, in bytes.
pub const HEAD_BYTES_MAX: usize = 1024;

/// Takes the head out of a value: appends it to the last argument. It must always give the same
/// bytes.
pub type HeadFunction = Arc<dyn Fn(&[u8], &[u8], &mut Vec<u8>) + Send + Sync>;

/// Which part of a value is its head.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadRule {
    /// Nothing.
    #[default]
    None,
    /// This many bytes of its beginning.
    First(u32),
    /// The JSON at this pointer.
    Json(String),
    /// The result of a user's function.
    Named(String),
}

impl FromStr for HeadRule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<HeadRule, ParseError> {
        HeadRule::read(text).ok_or_else(|| {
            let message = format!(
                "there is no rule `{text}`; the choices are none, first:N (N up to {HEAD_BYTES_MAX}), \
                 json:/POINTER, named:NAME"
            );
            ParseError::of(text, message).suggest_word::<HeadRule>(&["none", "first", "json", "named"])
        })
    }
}

impl HeadRule {
    fn read(text: &str) -> Option<HeadRule> {
        match text.split_once(':') {
            None if text == "none" => Some(HeadRule::None),
            Some(("first", bytes)) => {
                let bytes = bytes.parse().ok().filter(|bytes| (1..=HEAD_BYTES_MAX as u32).contains(bytes));
                bytes.map(HeadRule::First)
            }
            Some(("json", pointer)) if pointer.is_empty() || pointer.starts_with('/') => {
                Some(HeadRule::Json(pointer.to_owned()))
            }
            Some(("named", name)) if !name.is_empty() => Some(HeadRule::Named(name.to_owned())),
            _ => None,
        }
    }
}

impl std::fmt::Display for HeadRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            HeadRule::None => f.write_str("none"),
            HeadRule::First(bytes) => write!(f, "first:{bytes}"),
            HeadRule::Json(pointer) => write!(f, "json:{pointer}"),
            HeadRule::Named(name) => write!(f, "named:{name}"),
        }
    }
}

/// A rule with its function.
#[derive(Clone, Default)]
pub enum Heads {
    /// There are none.
    #[default]
    None,
    /// This many bytes of the beginning.
    First(usize),
    /// The JSON at this pointer.
    Json(String),
    /// The result of this function.
    Function(HeadFunction),
}

impl Heads {
    /// Appends the head of a value.
    pub fn put(&self, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
        let start = out.len();
        match self {
            Heads::None => {}
            Heads::First(bytes) => out.extend_from_slice(&value[..value.len().min(*bytes)]),
            Heads::Json(pointer) => json_text::put_at(value, pointer, out),
            Heads::Function(take) => {
                let mut head = Vec::new(); // fresh: the function may change it
                if catch_unwind(AssertUnwindSafe(|| take(key, value, &mut head))).is_ok() {
                    out.extend_from_slice(&head);
                }
            }
        }
        if out.len() - start > HEAD_BYTES_MAX {
            out.truncate(start);
        }
    }
}

#[cfg(test)]
#[path = "head/tests.rs"]
mod tests;
