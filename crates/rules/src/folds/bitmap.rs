//! `bitmap`: sets of `u32` under union, as roaring bitmaps.
//!
//! ```text
//!   the portable roaring format, without run containers (cookie 12346)
//! ```
//!
//! Readable by the roaring libraries of other languages. Without run containers, a set has one
//! form: a chunk of up to 4096 members is an array, a larger one is a bitmap. Union is associative.
//! Bytes from elsewhere that hold run containers are refused with advice. This makes equal sets
//! equal bytes, and it bounds what decoding allocates by what was read.

use roaring::RoaringBitmap;

use crate::datum::Datum;
use crate::fold::{Fold, FoldFailure, Outcome};

use super::built_in::{self, BuiltIn, unexpected};

const COOKIE: [u8; 4] = 12346u32.to_le_bytes();

/// More members than this are shown as their count and range.
const SHOWN_MAX: u64 = 100_000;

/// `bitmap`.
pub(crate) struct BitmapFold;

impl Fold for BitmapFold {
    fn spec(&self) -> String {
        "bitmap".to_owned()
    }

    fn fold(&self, _key: &[u8], a: &[u8], b: &[u8], out: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        let mut union = decode(a)?;
        union |= decode(b)?;
        encode(&union, out);
        Ok(Outcome::Value)
    }

    /// Halves of the numbers, cut again as often as needed.
    fn pieces(&self, value: &[u8], bytes_max: usize) -> Option<Vec<Vec<u8>>> {
        let (mut pieces, mut left) = (Vec::new(), vec![decode(value).ok()?]);
        while let Some(mut some) = left.pop() {
            if some.serialized_size() <= bytes_max {
                let mut piece = Vec::new();
                encode(&some, &mut piece);
                pieces.push(piece);
                continue;
            }
            let (least, largest) = (some.min()?, some.max()?);
            if least == largest {
                return None;
            }
            let middle = least + (largest - least) / 2 + 1;
            let mut upper = some.clone();
            upper.remove_range(..middle);
            some.remove_range(middle..);
            left.extend([upper, some]);
        }
        Some(pieces)
    }

    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        Bitmap::from_bytes(value).map(|_| ())
    }

    /// A list of the members; only their count and range if there are very many.
    fn show(&self, value: &[u8]) -> Result<Datum, FoldFailure> {
        let members = decode(value)?;
        let number = |member: u32| Datum::Int(member.into());
        match (members.min(), members.max()) {
            (Some(least), Some(largest)) if members.len() > SHOWN_MAX => Ok(Datum::Map(vec![
                ("count".to_owned(), Datum::Int(members.len().into())),
                ("min".to_owned(), number(least)),
                ("max".to_owned(), number(largest)),
            ])),
            _ => Ok(Datum::List(members.iter().map(number).collect())),
        }
    }

    /// A number, or a list of them.
    fn read(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), FoldFailure> {
        let member = |datum: &Datum| {
            u32::try_from(built_in::integer(datum)?)
                .or_else(|_| unexpected("a whole number of 32 bits", datum))
        };
        let bitmap: Bitmap = match datum {
            Datum::List(items) => items.iter().map(member).collect::<Result<_, _>>()?,
            one => Bitmap::of(member(one)?),
        };
        bitmap.put(out);
        Ok(())
    }
}

impl BuiltIn for BitmapFold {}

fn decode(value: &[u8]) -> Result<RoaringBitmap, FoldFailure> {
    if value.first_chunk::<4>() != Some(&COOKIE) {
        return Err(FoldFailure::new("expected a roaring bitmap without run containers (cookie 12346)"));
    }
    // The library allocates memory for all chunks that the header counts before it reads them. Each
    // chunk has 8 bytes at the front.
    let chunks =
        value.get(4..8).and_then(<[u8]>::first_chunk::<4>).map_or(0, |count| u32::from_le_bytes(*count));
    if u64::from(chunks) * 8 > value.len() as u64 {
        return Err(FoldFailure::new("expected a roaring bitmap, the bytes end too early"));
    }
    let mut rest = value;
    let bitmap = RoaringBitmap::deserialize_from(&mut rest)
        .map_err(|cause| FoldFailure::new(format!("expected a roaring bitmap: {cause}")))?;
    if rest.is_empty() {
        Ok(bitmap)
    } else {
        Err(FoldFailure::new("expected the end of a bitmap, found more bytes"))
    }
}

fn encode(bitmap: &RoaringBitmap, out: &mut Vec<u8>) {
    out.reserve(bitmap.serialized_size());
    // Writing to memory does not fail.
    let _ = bitmap.serialize_into(out);
}

/// A set of `u32`: the value type of `bitmap`.
#[cfg(feature = "bitmap")] // as is the module: so the documentation says it
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Bitmap {
    members: RoaringBitmap,
}

impl Bitmap {
    /// A set of one member.
    pub fn of(member: u32) -> Bitmap {
        [member].into_iter().collect()
    }

    /// True when `member` is one.
    pub fn contains(&self, member: u32) -> bool {
        self.members.contains(member)
    }

    /// How many members there are.
    pub fn len(&self) -> u64 {
        self.members.len()
    }

    /// True for the empty set.
    pub fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// The members, ascending.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.members.iter()
    }

    /// Appends the value's bytes.
    pub fn put(&self, out: &mut Vec<u8>) {
        encode(&self.members, out);
    }

    /// The value's bytes.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.put(&mut out);
        out
    }

    /// Reads a value.
    ///
    /// # Errors
    /// When the bytes are not a roaring bitmap in its one form.
    pub fn from_bytes(value: &[u8]) -> Result<Bitmap, FoldFailure> {
        let bitmap = Bitmap { members: decode(value)? };
        if bitmap.to_bytes() != value {
            return Err(FoldFailure::new("expected a roaring bitmap in its shortest form"));
        }
        Ok(bitmap)
    }
}

impl FromIterator<u32> for Bitmap {
    fn from_iter<I: IntoIterator<Item = u32>>(members: I) -> Bitmap {
        let mut members: RoaringBitmap = members.into_iter().collect();
        members.remove_run_compression();
        Bitmap { members }
    }
}
