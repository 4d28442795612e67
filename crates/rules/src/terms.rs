//! Terms: what an index finds records by, and the rules for taking them from records.
//!
//! ```text
//!   json:POINTER      the piece there in a value that is JSON (RFC 6901); of an array each element
//!   value             the value itself; of a list or a set each member
//!   field:NAME        this field of a record; of a list or a set each member
//!   tuple:N           element N of a value that is a tuple, from 0
//!   key:N             element N of a key that is a tuple, from 0; a key that is no tuple is its own element 0
//!   head              the head of the value, as bytes; head:POINTER the piece there in a head that is JSON (`head:` the head itself)
//!   custom:NAME@V     what a function of the user gives, in its version V
//! ```
//!
//! A term is an element of a tuple, so terms have the order of tuples: by type, then by value.
//! Numbers in JSON are doubles, whether they have a point or not; those beyond 2^53 that are the
//! same double are one term. Text and bytes count for their first [`TERM_BYTES_MAX`] bytes. Absent
//! values, `null`, objects, and lists in lists have no term. A value that does not have the form
//! that the rule needs has none either: no term finds it, which is not an error.
//!
//! **The law**: terms(x·m) ⊆ terms(x) ∪ terms(m), for a value x and an operand m of one key. An
//! index is written to without reading what was there, so every term of the result must have been
//! in one of the two. The law holds if values replace, and for terms that come from keys; it does
//! not hold for sums. [`crate::term_law::check_terms`] searches for counter-examples.
//!
//! They are taken in `extract.rs`.

use std::str::FromStr;
use std::sync::Arc;

use folddb_base::bytes::Reader;

use crate::codec::tuple::{self, Element};
use crate::datum::Datum;
use crate::parse_error::ParseError;
use crate::time_text;

/// This many bytes of a text or a byte string count.
pub const TERM_BYTES_MAX: usize = 1024;

/// The longest term as bytes: with each of its bytes escaped, and its ends.
const PACKED_BYTES_MAX: usize = 2 * TERM_BYTES_MAX + 2;

/// The most that an index keeps of a record in addition to its key: the longest term, and the
/// separator.
pub const ENTRY_OVERHEAD_BYTES_MAX: usize = PACKED_BYTES_MAX + 1;

/// Longest name of an index, in bytes.
pub const INDEX_NAME_BYTES_MAX: usize = 64;

/// Separates term and key. Only an escape (0xff) could continue the term, and this byte is not one.
const BETWEEN: u8 = 0x01;

/// Takes the terms out of a record, given its key and its value. It must always give the same
/// terms.
pub type TermFunction = Arc<dyn Fn(&[u8], &[u8], &mut Terms) + Send + Sync>;

/// An index of a table, as in its rules: `NAME:RULE`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexRule {
    /// Its name, unique in the table.
    pub name: String,
    /// How terms are taken.
    pub terms: TermRule,
}

impl IndexRule {
    /// An index of this name, which is checked when the index is created.
    pub fn new(name: &str, terms: TermRule) -> IndexRule {
        IndexRule { name: name.to_owned(), terms }
    }
}

/// Why it cannot be an index: its stored text could not be read back.
pub fn check_index(rule: &IndexRule) -> Result<(), ParseError> {
    let read: IndexRule = rule.to_string().parse()?;
    match read == *rule {
        true => Ok(()),
        false => Err(ParseError::of(&rule.name, format!("`{}` is not the name of an index", rule.name))),
    }
}

fn is_index_name(name: &str) -> bool {
    let is_wrong = |letter: char| letter == '/' || letter.is_control() || letter.is_whitespace();
    (1..=INDEX_NAME_BYTES_MAX).contains(&name.len()) && !name.contains(is_wrong)
}

/// `NAME:RULE`. The name has at most 64 bytes, no blanks and no `/`.
impl FromStr for IndexRule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<IndexRule, ParseError> {
        let wrong = |message: &str| ParseError::of(text, format!("`{text}` is not an index: {message}"));
        let Some((name, rule)) = text.split_once(':') else {
            return Err(wrong(&format!("write NAME:RULE, with one of {TERM_RULES}")));
        };
        if text.contains('\n') {
            return Err(wrong("it is one line"));
        }
        if !is_index_name(name) {
            return Err(wrong("a name has 1 to 64 bytes, no blanks and no `/`"));
        }
        let terms = rule.parse().map_err(|error: ParseError| error.within(text, name.len() + 1))?;
        Ok(IndexRule { name: name.to_owned(), terms })
    }
}

impl std::fmt::Display for IndexRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.name, self.terms)
    }
}

/// How the terms of an index are taken out of records.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TermRule {
    /// What is at this pointer in JSON.
    Json(String),
    /// The value.
    Value,
    /// A field of a record.
    Field(String),
    /// An element of a value that is a tuple.
    Tuple(u32),
    /// An element of the key.
    Key(u32),
    /// The head, or what is at this pointer in a head that is JSON.
    Head(Option<String>),
    /// The result of a user's function.
    Custom {
        /// Its name.
        name: String,
        /// Its version: another one gives other terms.
        version: u32,
    },
}

/// All rules of terms, as a message lists them.
const TERM_RULES: &str = "json:/POINTER, value, field:NAME, tuple:N, key:N, head, head:, head:/POINTER, \
                          custom:NAME@VERSION";

impl FromStr for TermRule {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<TermRule, ParseError> {
        TermRule::read(text).ok_or_else(|| {
            let message = format!("there is no rule `{text}`; the choices are {TERM_RULES}");
            let words = ["json", "value", "field", "tuple", "key", "head", "custom"];
            ParseError::of(text, message).suggest_word::<TermRule>(&words)
        })
    }
}

impl TermRule {
    fn read(text: &str) -> Option<TermRule> {
        let (word, rest) = text.split_once(':').map_or((text, None), |(word, rest)| (word, Some(rest)));
        let pointer = |rest: &str| rest.is_empty() || rest.starts_with('/');
        match (word, rest) {
            ("value", None) => Some(TermRule::Value),
            ("head", None) => Some(TermRule::Head(None)),
            ("head", Some(rest)) if pointer(rest) => Some(TermRule::Head(Some(rest.to_owned()))),
            ("json", Some(rest)) if pointer(rest) => Some(TermRule::Json(rest.to_owned())),
            ("field", Some(name)) if !name.is_empty() => Some(TermRule::Field(name.to_owned())),
            ("tuple", Some(number)) => plain_number(number).map(TermRule::Tuple),
            ("key", Some(number)) => plain_number(number).map(TermRule::Key),
            ("custom", Some(rest)) => {
                let (name, version) = rest.rsplit_once('@')?;
                let version = plain_number(version)?;
                (!name.is_empty()).then(|| TermRule::Custom { name: name.to_owned(), version })
            }
            _ => None,
        }
    }
}

/// A number in its one spelling.
fn plain_number(text: &str) -> Option<u32> {
    text.parse().ok().filter(|number: &u32| number.to_string() == text)
}

impl std::fmt::Display for TermRule {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TermRule::Json(pointer) => write!(f, "json:{pointer}"),
            TermRule::Value => f.write_str("value"),
            TermRule::Field(name) => write!(f, "field:{name}"),
            TermRule::Tuple(number) => write!(f, "tuple:{number}"),
            TermRule::Key(number) => write!(f, "key:{number}"),
            TermRule::Head(None) => f.write_str("head"),
            TermRule::Head(Some(pointer)) => write!(f, "head:{pointer}"),
            TermRule::Custom { name, version } => write!(f, "custom:{name}@{version}"),
        }
    }
}

// ---- terms --------------------------------------------------------------------------------------

/// Terms of a record, as bytes in the same order; each once after [`Terms::settle`].
#[derive(Clone, Debug, Default)]
pub struct Terms {
    pub(crate) bytes: Vec<u8>,
    pub(crate) ends: Vec<usize>,
}

impl Terms {
    /// Removes all.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// True when there are none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    /// Adds a term. Text and bytes are cut; a tuple that is longer than terms may be is left out.
    pub fn push(&mut self, term: &Element<'_>) {
        let start = self.bytes.len();
        put_term(&mut self.bytes, term);
        match self.bytes.len() - start <= PACKED_BYTES_MAX {
            true => self.ends.push(self.bytes.len()),
            false => self.bytes.truncate(start),
        }
    }

    /// Adds a text.
    pub fn push_text(&mut self, text: &str) {
        self.push(&Element::from(text));
    }

    /// The terms as bytes.
    pub fn iter(&self) -> impl Iterator<Item = &[u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, &end)| &self.bytes[start..end])
    }

    /// Whether this is one of them.
    pub fn has(&self, term: &[u8]) -> bool {
        self.iter().any(|one| one == term)
    }

    /// Sorts them and removes repetitions.
    pub fn settle(&mut self) {
        if self.ends.len() < 2 {
            return;
        }
        let mut sorted: Vec<Vec<u8>> = self.iter().map(<[u8]>::to_vec).collect();
        sorted.sort_unstable();
        sorted.dedup();
        self.clear();
        for term in sorted {
            self.bytes.extend_from_slice(&term);
            self.ends.push(self.bytes.len());
        }
    }
}

/// Appends a term as bytes, cut to what counts.
fn put_term(out: &mut Vec<u8>, term: &Element<'_>) {
    match term {
        Element::Text(text) if text.len() > TERM_BYTES_MAX => {
            let cut = (0..=TERM_BYTES_MAX).rev().find(|&at| text.is_char_boundary(at)).unwrap_or(0);
            tuple::put_text(out, &text[..cut]);
        }
        Element::Bytes(bytes) => tuple::put_bytes(out, &bytes[..bytes.len().min(TERM_BYTES_MAX)]),
        term => tuple::put_element(out, term, false),
    }
}

/// A term as bytes, cut to what counts.
pub fn pack_term(term: &Element<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    put_term(&mut out, term);
    out
}

/// Appends the key of an index for this term of the record with this key.
#[inline]
pub fn put_entry(out: &mut Vec<u8>, term: &[u8], key: &[u8]) {
    out.extend_from_slice(term);
    out.push(BETWEEN);
    out.extend_from_slice(key);
}

/// The term and the record's key in a key of an index; none if it is malformed.
pub fn split_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = Reader::new(entry);
    tuple::skip(&mut reader).ok()?;
    let rest = reader.rest();
    let (&between, key) = rest.split_first()?;
    (between == BETWEEN).then(|| (&entry[..entry.len() - rest.len()], key))
}

/// A key before all entries of a term.
pub fn before_entries(term: &[u8]) -> Vec<u8> {
    term.to_vec()
}

/// A key after all entries of a term, and before those of the next.
pub fn behind_entries(term: &[u8]) -> Vec<u8> {
    let mut end = term.to_vec();
    end.push(BETWEEN + 1);
    end
}

/// A term that is a time, as people read it.
pub fn show_time_term(term: &[u8]) -> Datum {
    match tuple::unpack(term).as_deref() {
        Ok([Element::Int(micros)]) => i64::try_from(*micros).map_or(Datum::Int(*micros), time_text::shown),
        _ => show_term(term),
    }
}

/// A term as people read it.
pub fn show_term(term: &[u8]) -> Datum {
    match tuple::unpack(term).as_deref() {
        Ok([Element::Bytes(bytes)]) => Datum::from_bytes(bytes),
        Ok([element]) => element.show(),
        _ => Datum::Bytes(term.to_vec()),
    }
}

#[cfg(test)]
#[path = "terms/tests.rs"]
mod tests;
