//! What rules choose among: how a table keeps its records, how blocks are compressed, which fold,
//! which states are special.

use std::fmt;
use std::str::FromStr;

use super::escape::{ESCAPES, escape, unescape};
use crate::folds;
use crate::parse_error::ParseError;

/// How a table keeps its records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TableKind {
    /// In order, in runs.
    #[default]
    Sorted,
    /// In no order: all values in the value log, with an index in memory of their places. A get is
    /// one read.
    Hashed,
}

/// How the blocks of runs are compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Compression {
    /// Not at all.
    #[default]
    None,
    /// By LZ4: fast, about half the size of text.
    Lz4,
    /// By zstd: slower, about two thirds of what LZ4 takes. It needs the feature `zstd`.
    Zstd,
}

/// A fold by its name. There are only these two kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FoldName {
    /// One that comes with FoldDB, by its spec string.
    BuiltIn(String),
    /// One that the user provides.
    Custom {
        /// Its name.
        name: String,
        /// Its version; a fold of another version is another fold.
        version: u32,
    },
}

/// Whether a value has a certain meaning.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum PredicateRule {
    /// No value has it, unless the fold itself says so.
    #[default]
    Never,
    /// The value with these bytes has it.
    Equal(Vec<u8>),
    /// A predicate that the user provides decides.
    Named(String),
}

impl TableKind {
    /// The name that the store keeps.
    pub fn name(self) -> &'static str {
        match self {
            TableKind::Sorted => "sorted",
            TableKind::Hashed => "hashed",
        }
    }
}

impl fmt::Display for TableKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for TableKind {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<TableKind, ParseError> {
        match name {
            "sorted" => Ok(TableKind::Sorted),
            "hashed" => Ok(TableKind::Hashed),
            _ => Err(ParseError::of(
                name,
                format!("there is no kind `{name}`; the choices are sorted, hashed"),
            )
            .suggest_word::<TableKind>(&["sorted", "hashed"])),
        }
    }
}

impl Compression {
    /// The name that the store keeps.
    pub fn name(self) -> &'static str {
        match self {
            Compression::None => "none",
            Compression::Lz4 => "lz4",
            Compression::Zstd => "zstd",
        }
    }

    /// Whether this build of the library can do it: that is a question of its features.
    pub fn is_available(self) -> bool {
        match self {
            Compression::None => true,
            Compression::Lz4 => cfg!(feature = "lz4"),
            Compression::Zstd => cfg!(feature = "zstd"),
        }
    }
}

impl fmt::Display for Compression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Compression {
    type Err = ParseError;

    fn from_str(name: &str) -> Result<Compression, ParseError> {
        match name {
            "none" => Ok(Compression::None),
            "lz4" => Ok(Compression::Lz4),
            "zstd" => Ok(Compression::Zstd),
            _ => Err(ParseError::of(
                name,
                format!("there is no compression `{name}`; the choices are none, lz4, zstd"),
            )
            .suggest_word::<Compression>(&["none", "lz4", "zstd"])),
        }
    }
}

impl PredicateRule {
    pub(super) fn to_bytes(&self) -> Vec<u8> {
        match self {
            PredicateRule::Never => b"never".to_vec(),
            PredicateRule::Equal(value) => [b"equal:".as_slice(), value].concat(),
            PredicateRule::Named(name) => format!("named:{name}").into_bytes(),
        }
    }

    /// The rule as it is said in a message.
    pub(super) fn in_words(&self) -> String {
        match self {
            PredicateRule::Never => "never".to_owned(),
            PredicateRule::Equal(value) => format!("when equal to {}", crate::datum::hex(value)),
            PredicateRule::Named(name) => format!("by `{name}`"),
        }
    }

    pub(super) fn from_bytes(bytes: &[u8]) -> Option<PredicateRule> {
        if let Some(value) = bytes.strip_prefix(b"equal:") {
            return Some(PredicateRule::Equal(value.to_vec()));
        }
        if let Some(name) = bytes.strip_prefix(b"named:") {
            return Some(PredicateRule::Named(std::str::from_utf8(name).ok()?.to_owned()));
        }
        (bytes == b"never").then_some(PredicateRule::Never)
    }
}

/// `never`, `equal:BYTES` or `named:NAME`, with %XX for what is not printable ASCII.
impl fmt::Display for PredicateRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        escape(&self.to_bytes(), &mut text);
        f.write_str(&text)
    }
}

impl FromStr for PredicateRule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<PredicateRule, ParseError> {
        let bytes = unescape(text).ok_or_else(|| ParseError::of(text, ESCAPES))?;
        PredicateRule::from_bytes(&bytes).ok_or_else(|| {
            let message =
                format!("there is no rule `{text}`; the choices are never, equal:BYTES, named:NAME");
            ParseError::of(text, message).suggest_word::<PredicateRule>(&["never", "equal", "named"])
        })
    }
}

impl fmt::Display for FoldName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FoldName::BuiltIn(spec) => write!(f, "`{spec}`"),
            FoldName::Custom { name, version } => write!(f, "the custom `{name}` version {version}"),
        }
    }
}

impl FoldName {
    /// The same fold, in its canonical spelling.
    pub(super) fn canonical(&self) -> FoldName {
        match self {
            FoldName::BuiltIn(spec) => match folds::parse(spec) {
                Ok(fold) => FoldName::BuiltIn(fold.spec()),
                Err(_) => self.clone(),
            },
            FoldName::Custom { .. } => self.clone(),
        }
    }

    /// True when the fold takes any bytes, so that the value codec says what they are.
    pub(super) fn is_opaque(&self) -> bool {
        matches!(self.canonical(), FoldName::BuiltIn(spec) if spec == "replace" || spec == "first")
    }

    /// The spec string, or the name of a custom fold.
    pub fn spec(&self) -> &str {
        match self {
            FoldName::BuiltIn(spec) => spec,
            FoldName::Custom { name, .. } => name,
        }
    }

    /// The version; folds that come with FoldDB are version 1 forever.
    pub fn version(&self) -> u32 {
        match self {
            FoldName::BuiltIn(_) => 1,
            FoldName::Custom { version, .. } => *version,
        }
    }
}
