//! Records: `{flights: sum:u64, delay: stats:f64, tails: hll:12}`, named fields that fold on their
//! own.
//!
//! ```text
//!   all fields of fixed length   [field] [field] ...            in declared order; the record is fixed too
//!   otherwise                    [presence bitmap][field] ...   one bit a field, lowest first; those present:
//!                                    fixed length: [value]; otherwise [length varint][value]
//! ```
//!
//! An operand may leave fields out. In the second form an absent field has no bytes, and folding it
//! with a present one gives the present one. In the first form an absent field is the fold's
//! identity (0 for sums, the number that always loses for `min` and `max`, the unit matrix), so
//! that every value keeps the same length.
//!
//! A record is a product of semigroups (with an identity added if one is missing), so it is
//! associative because its fields are; it is approximate if one of them is. Overflow is each
//! field's own. Records may be nested.

use std::fmt;
use std::sync::Arc;

use folddb_base::bytes::{Malformed, Reader, put_slice};

use crate::datum::{Datum, json};
use crate::fold::{Fold, FoldFailure, Outcome, fold_in_pairs};

use super::built_in::{BuiltIn, SEVERAL, fill_varint, malformed, unexpected, wrong_length};
use super::words::quoted_name;
use crate::parse_error::nearest;

const WHAT: &str = "a record";

/// So many values are folded without an allocation.
const FEW: usize = 8;

/// Most bytes that the length of a field takes.
const FIELD_LENGTH_BYTES_MAX: usize = 10;

/// A named field.
#[derive(Clone)]
pub(crate) struct Field {
    pub(crate) name: String,
    pub(crate) fold: Arc<dyn BuiltIn>,
}

/// The fold of a record. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RecordFold {
    fields: Arc<[Field]>,
    /// Lengths of the fields, where fixed.
    lens: Arc<[Option<usize>]>,
    fixed_len: Option<usize>,
}

impl RecordFold {
    pub(crate) fn new(fields: Vec<Field>) -> RecordFold {
        let lens: Arc<[Option<usize>]> = fields.iter().map(|field| field.fold.fixed_len()).collect();
        let fixed_len = lens.iter().copied().sum();
        RecordFold { fields: fields.into(), lens, fixed_len }
    }

    /// What was expected, with an existing field as the example.
    fn wanted(&self) -> String {
        let names = self.fields.iter().map(|field| json::text_of(&Datum::Text(field.name.clone())));
        format!("a record, as in `{{{}: …}}`", names.take(1).collect::<String>())
    }

    fn walk<'a>(&'a self, value: &'a [u8]) -> Result<Walk<'a>, FoldFailure> {
        let mut reader = Reader::new(value);
        let mut presence = &[][..];
        match self.fixed_len {
            Some(len) if len != value.len() => return Err(wrong_length(len, value.len())),
            Some(_) => {}
            None => presence = reader.take(self.presence_len()).map_err(malformed(WHAT))?,
        }
        Ok(Walk { lens: &self.lens, reader, presence, all_present: self.fixed_len.is_some() })
    }

    fn presence_len(&self) -> usize {
        self.fields.len().div_ceil(8)
    }

    fn fold_field(
        &self,
        index: usize,
        (key, x, y): (&[u8], &[u8], &[u8]),
        out: &mut Vec<u8>,
    ) -> Result<(), FoldFailure> {
        let (field, at, is_sized) = (&self.fields[index], out.len(), self.lens[index].is_none());
        out.extend(is_sized.then_some(0));
        let start = out.len();
        let outcome = field.fold.fold(key, x, y, out).map_err(|cause| named(field, cause))?;
        let kept = match outcome {
            Outcome::Value => None,
            Outcome::KeepEarlier => Some(x),
            Outcome::KeepLater => Some(y),
            // No fold of this crate deletes.
            Outcome::Delete => return Err(named(field, FoldFailure::new("a field cannot be deleted"))),
        };
        if let Some(kept) = kept {
            out.truncate(start);
            out.extend_from_slice(kept);
        }
        if is_sized {
            fill_varint(out, at, (out.len() - start) as u64);
        }
        Ok(())
    }

    /// Folds several values, field by field. There is room for one field of each.
    fn fold_walks<'a>(
        &self,
        key: &[u8],
        walks: &mut [Walk<'a>],
        of_field: &mut [&'a [u8]],
        out: &mut Vec<u8>,
    ) -> Result<(), FoldFailure> {
        let presence_at = out.len();
        for walk in &*walks {
            match out.len() == presence_at {
                true => out.extend_from_slice(walk.presence),
                false => {
                    out[presence_at..].iter_mut().zip(walk.presence).for_each(|(byte, more)| *byte |= more)
                }
            }
        }
        for (index, field) in self.fields.iter().enumerate() {
            let mut count = 0;
            for walk in &mut *walks {
                if let Some(value) = walk.field(index)? {
                    of_field[count] = value;
                    count += 1;
                }
            }
            let (at, is_sized) = (out.len(), self.lens[index].is_none() && count > 0);
            out.extend(is_sized.then_some(0));
            let start = out.len();
            field.fold.fold_all(key, &of_field[..count], out).map_err(|cause| named(field, cause))?;
            if is_sized {
                fill_varint(out, at, (out.len() - start) as u64);
            }
        }
        walks.iter().try_for_each(Walk::finish)
    }

    fn put_field(&self, index: usize, value: &[u8], out: &mut Vec<u8>) {
        if self.lens[index].is_some() {
            out.extend_from_slice(value);
        } else {
            put_slice(out, value);
        }
    }

    /// Appends a record; `value_of` appends the value of a field, or says that it is absent.
    fn encode(
        &self,
        out: &mut Vec<u8>,
        mut value_of: impl FnMut(usize, &mut Vec<u8>) -> Result<bool, FoldFailure>,
    ) -> Result<(), FoldFailure> {
        let presence_at = out.len();
        if self.fixed_len.is_none() {
            out.resize(presence_at + self.presence_len(), 0);
        }
        for (index, field) in self.fields.iter().enumerate() {
            let (at, is_sized) = (out.len(), self.lens[index].is_none());
            out.extend(is_sized.then_some(0));
            let start = out.len();
            let present = value_of(index, out)?;
            if self.fixed_len.is_some() {
                if !present {
                    out.truncate(start);
                    field.fold.identity(out);
                }
            } else if present {
                out[presence_at + index / 8] |= 1 << (index % 8);
                if is_sized {
                    fill_varint(out, at, (out.len() - start) as u64);
                }
            } else {
                out.truncate(at);
            }
            if let Some(len) = self.lens[index]
                && ![0, len].contains(&(out.len() - start))
            {
                return Err(named(field, wrong_length(len, out.len() - start)));
            }
        }
        Ok(())
    }

    /// A record of the given fields.
    fn of_fields(&self, fields: &[Option<Vec<u8>>]) -> Option<Vec<u8>> {
        let mut out = Vec::new();
        let put = |index: usize, out: &mut Vec<u8>| {
            out.extend_from_slice(fields[index].as_deref().unwrap_or_default());
            Ok(fields[index].is_some())
        };
        self.encode(&mut out, put).ok()?;
        Some(out)
    }

    fn index_of(&self, name: &str) -> Result<usize, FoldFailure> {
        self.fields.iter().position(|field| field.name == name).ok_or_else(|| {
            let names: Vec<&str> = self.fields.iter().map(|field| field.name.as_str()).collect();
            FoldFailure::new(match nearest(name, names.iter().copied()) {
                Some(near) => format!("the record has no field `{name}`; did you mean `{near}`?"),
                None => format!("the record has no field `{name}`; it has {}", names.join(", ")),
            })
        })
    }

    fn read_map(&self, fields: &[(String, Datum)], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        for (name, _) in fields {
            self.index_of(name)?;
        }
        self.encode(out, |index, out| {
            let field = &self.fields[index];
            match fields.iter().rfind(|(name, _)| *name == field.name) {
                None | Some((_, Datum::Null)) => Ok(false),
                Some((_, datum)) => {
                    field.fold.read(datum, out).map_err(|cause| named(field, cause))?;
                    Ok(true)
                }
            }
        })
    }
}

fn named(field: &Field, cause: FoldFailure) -> FoldFailure {
    FoldFailure::new(format!("field `{}`: {cause}", field.name))
}

/// Walks over the fields of a value.
struct Walk<'a> {
    lens: &'a [Option<usize>],
    reader: Reader<'a>,
    presence: &'a [u8],
    all_present: bool,
}

impl<'a> Walk<'a> {
    /// Over no fields.
    fn none() -> Walk<'a> {
        Walk { lens: &[], reader: Reader::new(&[]), presence: &[], all_present: true }
    }

    /// Field `index`, if it is present; to be called in order.
    #[inline]
    fn field(&mut self, index: usize) -> Result<Option<&'a [u8]>, FoldFailure> {
        let present = self.all_present || self.presence[index / 8] >> (index % 8) & 1 == 1;
        if !present {
            return Ok(None);
        }
        let value = match self.lens[index] {
            Some(len) => self.reader.take(len),
            None => self.reader.slice(),
        };
        value.map(Some).map_err(malformed(WHAT))
    }

    fn finish(&self) -> Result<(), FoldFailure> {
        let used_bits = self.lens.len() % 8;
        let spare = self.presence.last().is_some_and(|last| used_bits > 0 && last >> used_bits != 0);
        if spare {
            Err(malformed(WHAT)(Malformed::Tag))
        } else {
            self.reader.finish().map_err(malformed(WHAT))
        }
    }
}

impl Fold for RecordFold {
    fn spec(&self) -> String {
        let field = |field: &Field| format!("{}: {}", quoted_name(&field.name), field.fold.spec());
        format!("{{{}}}", self.fields.iter().map(field).collect::<Vec<_>>().join(", "))
    }

    fn fold(&self, key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let (mut left, mut right) = (self.walk(a)?, self.walk(b)?);
        out.extend(left.presence.iter().zip(right.presence).map(|(x, y)| x | y));
        for index in 0..self.fields.len() {
            match (left.field(index)?, right.field(index)?) {
                (None, None) => {}
                (Some(one), None) | (None, Some(one)) => self.put_field(index, one, out),
                (Some(x), Some(y)) => self.fold_field(index, (key, x, y), out)?,
            }
        }
        left.finish()?;
        right.finish()?;
        Ok(Outcome::Value)
    }

    /// Field by field.
    fn fold_all(&self, key: &[u8], values: &[&[u8]], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        if values.len() < SEVERAL {
            return fold_in_pairs(self, key, values, out);
        }
        if values.len() > FEW {
            let mut walks = values.iter().map(|value| self.walk(value)).collect::<Result<Vec<_>, _>>()?;
            return self.fold_walks(key, &mut walks, &mut vec![&[][..]; values.len()], out);
        }
        // Without an allocation.
        let mut walks: [Walk<'_>; FEW] = std::array::from_fn(|_| Walk::none());
        for (walk, value) in walks.iter_mut().zip(values) {
            *walk = self.walk(value)?;
        }
        self.fold_walks(key, &mut walks[..values.len()], &mut [&[][..]; FEW], out)
    }

    fn short_circuit(&self, key: &[u8], value: &[u8]) -> bool {
        let Ok(mut walk) = self.walk(value) else {
            return false;
        };
        let mut decisive = |(index, field): (usize, &Field)| match walk.field(index) {
            Ok(Some(value)) => field.fold.short_circuit(key, value),
            _ => false,
        };
        self.fields.iter().enumerate().all(&mut decisive) && walk.finish().is_ok()
    }

    /// Field by field. A field that alone is too long is cut into its own pieces.
    fn pieces(&self, value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        let room = bytes_max.checked_sub(self.presence_len() + FIELD_LENGTH_BYTES_MAX)?;
        let mut walk = self.walk(value).ok()?;
        let (mut pieces, mut some, mut bytes) = (Vec::new(), vec![None; self.fields.len()], 0);
        for (index, field) in self.fields.iter().enumerate() {
            let Some(value) = walk.field(index).ok()? else { continue };
            let own = match value.len() <= room {
                true => vec![value.to_vec()],
                false => field.fold.pieces(value, room)?,
            };
            for own in own {
                let own_bytes = own.len() + FIELD_LENGTH_BYTES_MAX;
                if bytes > 0 && (bytes + own_bytes > room || some[index].is_some()) {
                    pieces.push(self.of_fields(&some)?);
                    some.fill(None);
                    bytes = 0;
                }
                bytes += own_bytes;
                some[index] = Some(own);
            }
        }
        pieces.push(self.of_fields(&some)?);
        walk.finish().ok()?;
        Some(pieces)
    }

    fn is_approximate(&self) -> bool {
        self.fields.iter().any(|field| field.fold.is_approximate())
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        let mut walk = self.walk(value)?;
        for (index, field) in self.fields.iter().enumerate() {
            if let Some(value) = walk.field(index)? {
                field.fold.check(value).map_err(|cause| named(field, cause))?;
            }
        }
        walk.finish()
    }

    /// A map of the fields; null for an absent one.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let mut walk = self.walk(value)?;
        let mut fields = Vec::with_capacity(self.fields.len());
        for (index, field) in self.fields.iter().enumerate() {
            let shown = match walk.field(index)? {
                Some(value) if !field.fold.is_nothing(value) => {
                    field.fold.show(value).map_err(|cause| named(field, cause))?
                }
                _ => Datum::Null,
            };
            fields.push((field.name.clone(), shown));
        }
        walk.finish()?;
        Ok(Datum::Map(fields))
    }

    /// A map with some of the fields (null is absent), or a JSON object as text.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        match datum {
            Datum::Map(fields) => self.read_map(fields, out),
            Datum::Text(text) if text.trim_start().starts_with('{') => {
                match json::parse(text).map_err(FoldFailure)? {
                    Datum::Map(fields) => self.read_map(&fields, out),
                    other => unexpected(&self.wanted(), &other),
                }
            }
            _ => unexpected(&self.wanted(), datum),
        }
    }

    fn fixed_len(&self) -> Option<usize> {
        self.fixed_len
    }
}

impl BuiltIn for RecordFold {
    fn identity(&self, out: &mut Vec<u8>) -> bool {
        self.fixed_len.is_some() && self.encode(out, |_, _| Ok(false)).is_ok()
    }
}

/// A record fold with access to its fields: for programs that build records and take them apart.
///
/// ```
/// # use folddb_rules as folddb;
/// use folddb::folds::{Record, Stats};
/// let shape: Record = "{flights: sum:u64, delay: stats:f64}".parse().unwrap();
/// let mut value = Vec::new();
/// shape.put(&[Some(&1u64.to_le_bytes()), Some(&Stats::of(12.5).to_bytes())], &mut value).unwrap();
/// let delay = shape.field(&value, "delay").unwrap().unwrap();
/// assert_eq!(Stats::from_bytes(delay).unwrap().mean(), 12.5);
/// ```
#[derive(Clone)]
pub struct Record {
    fold: RecordFold,
}

/// The spec of the record.
impl fmt::Display for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.fold.spec())
    }
}

impl fmt::Debug for Record {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Record({self})")
    }
}

impl Record {
    pub(crate) fn from_fold(fold: RecordFold) -> Record {
        Record { fold }
    }

    /// The fold itself.
    pub fn fold(&self) -> Arc<dyn Fold> {
        Arc::new(self.fold.clone())
    }

    /// Names of the fields, in declared order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.fold.fields.iter().map(|field| field.name.as_str())
    }

    /// The fold of the field with this index.
    pub fn field_fold(&self, index: usize) -> Option<&dyn Fold> {
        self.fold.fields.get(index).map(|field| -> &dyn Fold { &*field.fold })
    }

    /// Appends a record made of the values of its fields, in declared order; fields not given are
    /// absent.
    ///
    /// # Errors
    /// When a field of fixed length has another length.
    pub fn put(&self, fields: &[Option<&[u8]>], out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        self.fold.encode(out, |index, out| match fields.get(index) {
            Some(Some(value)) => {
                out.extend_from_slice(value);
                Ok(true)
            }
            _ => Ok(false),
        })
    }

    /// Appends a record, reading each field from the contents of a column: `column(index)`, none or
    /// null for absent.
    ///
    /// # Errors
    /// Names the field, and says what was expected.
    pub fn read_columns(
        &self,
        mut column: impl FnMut(usize) -> Option<Datum>,
        out: &mut Vec<u8>,
    ) -> Result<(), FoldFailure> {
        self.fold.encode(out, |index, out| match column(index) {
            None | Some(Datum::Null) => Ok(false),
            Some(datum) => {
                let field = &self.fold.fields[index];
                field.fold.read(&datum, out).map_err(|cause| named(field, cause))?;
                Ok(true)
            }
        })
    }

    /// The value of a field, if it is present.
    ///
    /// # Errors
    /// When there is no such field, or the bytes are not a record of this shape.
    pub fn field<'a>(&'a self, value: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, FoldFailure> {
        let wanted = self.fold.index_of(name)?;
        let mut walk = self.fold.walk(value)?;
        for index in 0..wanted {
            walk.field(index)?;
        }
        walk.field(wanted)
    }
}
