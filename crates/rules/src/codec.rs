//! Codecs: how keys and values look as bytes, and back.
//!
//! Keys keep their order as bytes, so that the fast paths of bytewise tables serve every key type.
//! Values are plain. Each codec has a name, which the rules of a table store; the typed traits are
//! what Rust programs use, the dynamic enums what the command line and other languages use. Modules
//! are in bottom-up order.

use std::fmt;

use folddb_base::bytes::Malformed;
use folddb_base::{Error, ErrorKind};

pub mod range;
pub mod tuple;
pub mod leading;
pub mod text;
mod given;
pub mod key;
mod key_names;
mod key_datum;
mod key_text;
pub mod typed;
pub mod value;
mod operands;
#[doc(hidden)]
pub mod record;
#[cfg(feature = "json")]
mod json;

#[cfg(feature = "json")]
pub use json::Json;
pub use key::{ElementType, KeyCodec};
pub use key_text::TypedKeys;
#[doc(hidden)]
pub use operands::FieldOf;
pub use operands::{OrderedValue, SummedValue};
pub use range::KeyRange;
pub use tuple::Element;
pub use typed::{AsElement, AsKey, ElementReader, Key, KeyBound, KeyElement, KeyPrefix, StartsWith};
pub use value::{AsValue, Fit, Value, ValueCodec};

/// Why bytes or text are not a key or value of a codec. The message names what was expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CodecError(pub(crate) String);

impl CodecError {
    /// An error with this message.
    pub fn new(message: impl Into<String>) -> CodecError {
        CodecError(message.into())
    }

    /// What was expected.
    pub fn message(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for CodecError {}

impl From<Malformed> for CodecError {
    fn from(malformed: Malformed) -> CodecError {
        CodecError(malformed.to_string())
    }
}

/// As an error of the caller; code that decodes stored bytes gives it a kind and a place of its
/// own.
impl From<CodecError> for Error {
    fn from(error: CodecError) -> Error {
        Error::new(ErrorKind::InvalidInput, error.0)
    }
}
