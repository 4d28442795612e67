//! `patch`: a value is an object or a list of edits on one (osmos' list of operations on
//! replaceable objects).
//!
//! ```text
//!   object   [0][bytes of the object ...]
//!   edits    [1] edit ...
//!            append      [0][length varint][bytes]
//!            splice      [1][at varint][removed varint][length varint][bytes]
//!            write       [2][at varint][length varint][bytes]
//! ```
//!
//! An object replaces everything before it (nothing earlier matters); edits on an object are
//! applied; edits after edits are appended to them. Applying one list and then the next is applying
//! the two joined, so the fold is associative. Edits are total: `splice` (remove, then insert) is
//! clamped to the object, and `write` past its end fills the gap with zeros. A result over the
//! largest value length is a failure of that key. Edits without an object apply to an empty one.

use folddb_base::bytes::{Malformed, Reader, put_slice, put_varint};
use folddb_base::limits::VALUE_BYTES_MAX;

use crate::datum::{Datum, unwrapped};
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{BuiltIn, integer, malformed, plain_bytes, rows_of_entries, unexpected};
use crate::parse_error::nearest;

const WHAT: &str = "an object or a list of edits";

const OBJECT: u8 = 0;
const EDITS: u8 = 1;

const APPEND: u8 = 0;
const SPLICE: u8 = 1;
const WRITE: u8 = 2;

/// One change of an object's bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Edit<'a> {
    /// Puts bytes at the end.
    Append(&'a [u8]),
    /// Removes bytes at a place, and puts others there. Both numbers are clamped to the object.
    Splice {
        /// Where, in bytes from the start.
        at: u64,
        /// How many bytes are removed.
        removed: u64,
        /// The bytes that are inserted.
        bytes: &'a [u8],
    },
    /// Writes over the bytes at a place, extending the object where needed, with zeros in a gap.
    Write {
        /// Where, in bytes from the start.
        at: u64,
        /// The bytes.
        bytes: &'a [u8],
    },
}

impl<'a> Edit<'a> {
    fn read(reader: &mut Reader<'a>) -> Result<Edit<'a>, Malformed> {
        Ok(match reader.u8()? {
            APPEND => Edit::Append(reader.slice()?),
            SPLICE => {
                Edit::Splice { at: reader.varint()?, removed: reader.varint()?, bytes: reader.slice()? }
            }
            WRITE => Edit::Write { at: reader.varint()?, bytes: reader.slice()? },
            _ => return Err(Malformed::Tag),
        })
    }

    fn put(&self, out: &mut Vec<u8>) {
        match *self {
            Edit::Append(bytes) => {
                out.push(APPEND);
                put_slice(out, bytes);
            }
            Edit::Splice { at, removed, bytes } => {
                out.push(SPLICE);
                put_varint(out, at);
                put_varint(out, removed);
                put_slice(out, bytes);
            }
            Edit::Write { at, bytes } => {
                out.push(WRITE);
                put_varint(out, at);
                put_slice(out, bytes);
            }
        }
    }

    /// Fails if it fits no object.
    fn check(&self) -> Result<(), FoldFailure> {
        match *self {
            Edit::Write { at, bytes } if at.saturating_add(bytes.len() as u64) > VALUE_BYTES_MAX as u64 => {
                Err(too_long())
            }
            _ => Ok(()),
        }
    }

    /// Applies it to the object in `out` from `start` on.
    fn apply(&self, out: &mut Vec<u8>, start: usize) -> Result<(), FoldFailure> {
        let len = out.len() - start;
        let inside = |at: u64| usize::try_from(at).unwrap_or(usize::MAX).min(len);
        match *self {
            Edit::Append(bytes) => out.extend_from_slice(bytes),
            Edit::Splice { at, removed, bytes } => {
                let (from, to) = (inside(at), inside(at.saturating_add(removed)));
                out.splice(start + from..start + to, bytes.iter().copied());
            }
            Edit::Write { at, bytes } => {
                let at = usize::try_from(at).unwrap_or(usize::MAX);
                let end = at.saturating_add(bytes.len());
                if end > VALUE_BYTES_MAX {
                    return Err(too_long());
                }
                if end > len {
                    out.resize(start + end, 0);
                }
                out[start + at..start + end].copy_from_slice(bytes);
            }
        }
        if out.len() - start > VALUE_BYTES_MAX { Err(too_long()) } else { Ok(()) }
    }

    fn datum(&self) -> Datum {
        let number = |value: u64| Datum::Int(value.into());
        let fields = match *self {
            Edit::Append(bytes) => vec![("append", Datum::text_or_bytes(bytes))],
            Edit::Splice { at, removed, bytes } => {
                vec![
                    ("splice", number(at)),
                    ("remove", number(removed)),
                    ("bytes", Datum::text_or_bytes(bytes)),
                ]
            }
            Edit::Write { at, bytes } => vec![("write", number(at)), ("bytes", Datum::text_or_bytes(bytes))],
        };
        Datum::Map(fields.into_iter().map(|(name, value)| (name.to_owned(), value)).collect())
    }
}

#[cold]
fn too_long() -> FoldFailure {
    FoldFailure::new(format!("the patched object would be longer than {VALUE_BYTES_MAX} bytes"))
}

fn edits(bytes: &[u8], mut each: impl FnMut(Edit<'_>) -> Result<(), FoldFailure>) -> Result<(), FoldFailure> {
    let mut reader = Reader::new(bytes);
    while !reader.is_empty() {
        each(Edit::read(&mut reader).map_err(malformed(WHAT))?)?;
    }
    Ok(())
}

fn split(value: &[u8]) -> Result<(u8, &[u8]), FoldFailure> {
    match value.split_first() {
        Some((&kind, rest)) if kind <= EDITS => Ok((kind, rest)),
        Some(_) => Err(malformed(WHAT)(Malformed::Tag)),
        None => Err(malformed(WHAT)(Malformed::Short)),
    }
}

/// `patch`.
pub(crate) struct PatchFold;

impl Fold for PatchFold {
    fn spec(&self) -> String {
        "patch".to_owned()
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let (kind, changes) = split(b)?;
        if kind == OBJECT {
            return Ok(Outcome::KeepLater);
        }
        let (kind, _) = split(a)?;
        let start = out.len();
        out.extend_from_slice(a);
        if kind == EDITS {
            out.extend_from_slice(changes);
        } else {
            edits(changes, |edit| edit.apply(out, start + 1))?;
        }
        Ok(Outcome::Value)
    }

    fn short_circuit(&self, _key: &[u8], value: &[u8]) -> bool {
        value.first() == Some(&OBJECT)
    }

    /// An object becomes its beginning, and edits that append the rest; edits are split, some at a
    /// time.
    fn pieces(&self, value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        let (kind, rest) = split(value).ok()?;
        if value.len() <= bytes_max {
            return Some(vec![value.to_vec()]);
        }
        if kind == OBJECT {
            let (front, back) = rest.split_at_checked(bytes_max.checked_sub(16)?)?;
            let mut edit = vec![EDITS];
            Edit::Append(back).put(&mut edit);
            return Some(vec![[&[OBJECT], front].concat(), edit]);
        }
        let some = rows_of_entries(rest, bytes_max.checked_sub(1)?, |edit| Edit::read(edit).map(drop))?;
        Some(some.into_iter().map(|some| [&[EDITS][..], &some].concat()).collect())
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        match split(value)? {
            (OBJECT, _) => Ok(()),
            (_, changes) => edits(changes, |edit| edit.check()),
        }
    }

    /// An object as text or bytes; edits as a list.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let (kind, rest) = split(value)?;
        if kind == OBJECT {
            return Ok(Datum::text_or_bytes(rest));
        }
        let mut items = Vec::new();
        edits(rest, |edit| {
            items.push(edit.datum());
            Ok(())
        })?;
        Ok(Datum::List(items))
    }

    /// Text or bytes are an object. A map is an edit, a list is a list of edits: `{append: BYTES}`,
    /// `{splice: AT, remove: COUNT, bytes: BYTES}`, `{write: AT, bytes: BYTES}`.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        match datum {
            Datum::List(items) => {
                out.push(EDITS);
                items.iter().try_for_each(|item| read_edit(item, out))
            }
            Datum::Map(_) if unwrapped(datum).is_none() => {
                out.push(EDITS);
                read_edit(datum, out)
            }
            object => {
                out.push(OBJECT);
                out.extend_from_slice(&plain_bytes(object)?);
                Ok(())
            }
        }
    }
}

impl BuiltIn for PatchFold {}

fn read_edit(datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
    let number = |name: &str| match datum.field(name) {
        Some(value) => {
            u64::try_from(integer(value)?).or_else(|_| unexpected("a place or a count of bytes", value))
        }
        None => Ok(0),
    };
    let bytes = datum.field("bytes").map(plain_bytes).transpose()?.unwrap_or_default();
    check_names(datum)?;
    if let Some(bytes) = datum.field("append") {
        Edit::Append(&plain_bytes(bytes)?).put(out);
    } else if datum.field("splice").is_some() {
        Edit::Splice { at: number("splice")?, removed: number("remove")?, bytes: &bytes }.put(out);
    } else if datum.field("write").is_some() {
        Edit::Write { at: number("write")?, bytes: &bytes }.put(out);
    } else {
        return unexpected("an edit: a map with `append`, `splice` or `write`", datum);
    }
    Ok(())
}

/// The names in each edit. The first says which edit it is.
const NAMES: [&[&str]; 3] = [&["append"], &["splice", "remove", "bytes"], &["write", "bytes"]];

/// Refuses a name that an edit does not have, since its value would be ignored. Lists the names
/// that exist.
fn check_names(edit: &Datum) -> Result<(), FoldFailure> {
    let is_there = |name: &str| edit.field(name).is_some();
    let (Datum::Map(fields), Some(names)) = (edit, NAMES.iter().find(|names| is_there(names[0]))) else {
        return Ok(());
    };
    let Some((name, _)) = fields.iter().find(|(name, _)| !names.contains(&name.as_str())) else {
        return Ok(());
    };
    let what = names[0];
    Err(FoldFailure::new(match (nearest(name, names.iter().copied()), names) {
        (Some(near), _) => format!("an edit `{what}` has no `{name}`; did you mean `{near}`?"),
        (None, [only]) => format!("an edit `{what}` has no `{name}`; it has `{only}` only"),
        (None, names) => format!("an edit `{what}` has no `{name}`; it has {}", names.join(", ")),
    }))
}

/// An object, or edits on one: the value type of `patch`.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::{Edit, Patch};
/// let patch = Patch::edits([Edit::Append(b", world"), Edit::Write { at: 0, bytes: b"H" }]);
/// assert_eq!(patch.apply_to(b"hello").unwrap(), b"Hello, world");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    bytes: Vec<u8>,
}

impl Patch {
    /// An object that replaces what was there.
    pub fn object(object: &[u8]) -> Patch {
        let mut bytes = Vec::with_capacity(object.len() + 1);
        bytes.push(OBJECT);
        bytes.extend_from_slice(object);
        Patch { bytes }
    }

    /// Edits, to be applied in this order.
    pub fn edits<'a>(edits: impl IntoIterator<Item = Edit<'a>>) -> Patch {
        let mut bytes = vec![EDITS];
        edits.into_iter().for_each(|edit| edit.put(&mut bytes));
        Patch { bytes }
    }

    /// The object; edits apply to an empty one.
    ///
    /// # Errors
    /// When the object would be too long.
    pub fn to_object(&self) -> Result<Vec<u8>, FoldFailure> {
        self.apply_to(b"")
    }

    /// The object after the patch.
    ///
    /// # Errors
    /// When the result would be too long.
    pub fn apply_to(&self, object: &[u8]) -> Result<Vec<u8>, FoldFailure> {
        let (kind, rest) = split(&self.bytes)?;
        if kind == OBJECT {
            return Ok(rest.to_vec());
        }
        let mut out = object.to_vec();
        edits(rest, |edit| edit.apply(&mut out, 0))?;
        Ok(out)
    }

    /// The value's bytes, borrowed.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The value's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        self.bytes.clone()
    }

    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are neither an object nor edits.
    pub fn from_bytes(value: &[u8]) -> Result<Patch, FoldFailure> {
        PatchFold.check(value)?;
        Ok(Patch { bytes: value.to_vec() })
    }
}
