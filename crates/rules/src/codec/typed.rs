//! Keys of Rust types: what a typed table takes, and what can be used as a key in a look-up.
//!
//! ```text
//!   Vec<u8>  [u8; N]        bytes               looked up by [u8], [u8; N], str, ...
//!   String                  utf8                looked up by str
//!   u32  u64  i64           u32  u64  i64
//!   (A,) ... (A, .., F)     tuple(a,..,f)       looked up by tuples of what stands for A, B, ...
//!   Vec<Element<'static>>   tuple               looked up by [Element]
//! ```
//!
//! Elements of tuples are `String` (text), `Vec<u8>` (bytes), `i32 u32 i64 u64 i128` (int), `f32`
//! (float), `f64` (double), `bool`, `Option` of one, and tuples of them. Encoding appends to a
//! buffer of the caller and allocates nothing of its own.
//!
//! A type of your own becomes a key by implementing [`Key`] and [`AsKey`] of itself:
//!
//! ```
//! # use folddb_rules as folddb;
//! use folddb::codec::{AsKey, CodecError, Key, KeyCodec};
//!
//! struct UserId(u64);
//!
//! impl AsKey<UserId> for UserId {
//!     fn encode_key(&self, out: &mut Vec<u8>) {
//!         AsKey::<u64>::encode_key(&self.0, out);
//!     }
//! }
//!
//! impl Key for UserId {
//!     fn codec() -> KeyCodec {
//!         u64::codec()
//!     }
//!     fn decode(bytes: &[u8]) -> Result<UserId, CodecError> {
//!         u64::decode(bytes).map(UserId)
//!     }
//! }
//! ```

use folddb_base::bytes::Reader;

use super::CodecError;
use super::key::{ElementType, KeyCodec, decode_i64, decode_u32, decode_u64, encode_i64, fixed, utf8};
use super::range::KeyRange;
use super::tuple::{self, Element};

/// A type of keys. It can be used as itself, see [`AsKey`].
pub trait Key: Sized + AsKey<Self> {
    /// The codec. The table stores its name as the type of its keys.
    fn codec() -> KeyCodec;

    /// The key of these bytes.
    ///
    /// # Errors
    /// When the bytes are not a key of this type.
    fn decode(bytes: &[u8]) -> Result<Self, CodecError>;
}

/// A type that can be used as a key of type `K`: `str` for `String`, `(&str, u64)` for `(String,
/// u64)`.
pub trait AsKey<K> {
    /// Appends the key as bytes.
    fn encode_key(&self, out: &mut Vec<u8>);
}

/// Something that may bound a range of keys of type `K`: a key, or the first elements of a tuple.
pub trait KeyBound<K> {
    /// The keys that count as equal to the bound. An inclusive bound includes all of them, an
    /// exclusive one none.
    fn span(&self) -> KeyRange;
}

/// Something that keys of type `K` may start with: the beginning of text or bytes, or the first
/// elements of a tuple, where the last may be [`StartsWith`].
pub trait KeyPrefix<K> {
    /// The keys that start with it.
    fn key_range(&self) -> KeyRange;
}

/// The beginning of the last text or byte string of a tuple: `("UA", StartsWith("EW"))`.
#[derive(Clone, Copy, Debug)]
pub struct StartsWith<'a, T: ?Sized>(pub &'a T);

/// A type of elements of tuple keys.
pub trait KeyElement: Sized + AsElement<Self> {
    /// What the rules of the table say about the element.
    fn element_type() -> ElementType;

    /// Reads an element; `nested` says whether it is inside another one.
    ///
    /// # Errors
    /// When the bytes do not begin with an element of this type.
    fn take(reader: &mut ElementReader<'_>, nested: bool) -> Result<Self, CodecError>;
}

/// The elements of a tuple key that are not read yet. A [`KeyElement`] of yours passes it on to the
/// type that it is made of: `u64::take(reader, nested)`.
#[derive(Clone, Copy, Debug)]
pub struct ElementReader<'a>(Reader<'a>);

/// A type that can be used as an element of type `E`.
pub trait AsElement<E> {
    /// Appends the element; `nested` says whether it is inside another one.
    fn put(&self, nested: bool, out: &mut Vec<u8>);
}

/// What may be last in a [`KeyPrefix`] of tuples: an element, or the beginning of one.
pub trait LastElement<E> {
    /// Appends the element, or its beginning, to the ones before it, and returns the keys that
    /// start with all of them.
    fn close(&self, before: Vec<u8>) -> KeyRange;
}

fn key_range_of_one<K>(key: &(impl AsKey<K> + ?Sized)) -> KeyRange {
    let mut bytes = Vec::new();
    key.encode_key(&mut bytes);
    KeyRange::one(bytes)
}

/// The keys of a range that was found in another way, as by [`KeyCodec::parse_prefix`].
impl KeyPrefix<Vec<u8>> for KeyRange {
    fn key_range(&self) -> KeyRange {
        self.clone()
    }
}

// ---- references can be used as what they refer to -----------------------------------------------

impl<K, T: AsKey<K> + ?Sized> AsKey<K> for &T {
    #[inline]
    fn encode_key(&self, out: &mut Vec<u8>) {
        (**self).encode_key(out);
    }
}

impl<K, T: KeyBound<K> + ?Sized> KeyBound<K> for &T {
    fn span(&self) -> KeyRange {
        (**self).span()
    }
}

impl<K, T: KeyPrefix<K> + ?Sized> KeyPrefix<K> for &T {
    fn key_range(&self) -> KeyRange {
        (**self).key_range()
    }
}

impl<E, T: AsElement<E> + ?Sized> AsElement<E> for &T {
    #[inline]
    fn put(&self, nested: bool, out: &mut Vec<u8>) {
        (**self).put(nested, out);
    }
}

// ---- bytes and text -----------------------------------------------------------------------------

/// Types with the same bytes as a key.
macro_rules! bytes_as_key {
    ($key:ty: $($stand_in:ty $([$($generics:tt)*])?),+) => {$(
        impl $(<$($generics)*>)? AsKey<$key> for $stand_in {
            #[inline]
            fn encode_key(&self, out: &mut Vec<u8>) {
                let bytes: &[u8] = self.as_ref();
                out.extend_from_slice(bytes);
            }
        }

        impl $(<$($generics)*>)? KeyBound<$key> for $stand_in {
            fn span(&self) -> KeyRange {
                key_range_of_one::<$key>(self)
            }
        }

        impl $(<$($generics)*>)? KeyPrefix<$key> for $stand_in {
            fn key_range(&self) -> KeyRange {
                let bytes: &[u8] = self.as_ref();
                KeyRange::prefix(bytes.to_vec())
            }
        }
    )+};
}

bytes_as_key!(Vec<u8>: Vec<u8>, [u8], [u8; N] [const N: usize], str, String);
bytes_as_key!(String: String, str);

impl Key for Vec<u8> {
    fn codec() -> KeyCodec {
        KeyCodec::Bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(bytes.to_vec())
    }
}

impl Key for String {
    fn codec() -> KeyCodec {
        KeyCodec::Utf8
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        utf8(bytes).map(str::to_owned)
    }
}

impl<const N: usize> AsKey<[u8; N]> for [u8; N] {
    #[inline]
    fn encode_key(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

impl<const N: usize> KeyBound<[u8; N]> for [u8; N] {
    fn span(&self) -> KeyRange {
        KeyRange::one(self.to_vec())
    }
}

impl<const N: usize> KeyPrefix<[u8; N]> for [u8] {
    fn key_range(&self) -> KeyRange {
        KeyRange::prefix(self.to_vec())
    }
}

/// Stored as plain `bytes`; a key of another length fails to decode.
impl<const N: usize> Key for [u8; N] {
    fn codec() -> KeyCodec {
        KeyCodec::Bytes
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        fixed(bytes)
    }
}

// ---- fixed-width integers -----------------------------------------------------------------------

macro_rules! number_key {
    ($number:ty, $codec:expr, $encode:expr, $decode:expr) => {
        impl AsKey<$number> for $number {
            #[inline]
            fn encode_key(&self, out: &mut Vec<u8>) {
                out.extend_from_slice(&$encode(*self));
            }
        }

        impl KeyBound<$number> for $number {
            fn span(&self) -> KeyRange {
                key_range_of_one(self)
            }
        }

        impl Key for $number {
            fn codec() -> KeyCodec {
                $codec
            }

            #[inline]
            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                $decode(bytes)
            }
        }
    };
}

number_key!(u32, KeyCodec::U32, u32::to_be_bytes, decode_u32);
number_key!(u64, KeyCodec::U64, u64::to_be_bytes, decode_u64);
number_key!(i64, KeyCodec::I64, encode_i64, decode_i64);

// ---- elements of tuples -------------------------------------------------------------------------

impl AsElement<String> for str {
    #[inline]
    fn put(&self, _nested: bool, out: &mut Vec<u8>) {
        tuple::put_text(out, self);
    }
}

impl AsElement<Vec<u8>> for [u8] {
    #[inline]
    fn put(&self, _nested: bool, out: &mut Vec<u8>) {
        tuple::put_bytes(out, self);
    }
}

impl<const N: usize> AsElement<Vec<u8>> for [u8; N] {
    #[inline]
    fn put(&self, _nested: bool, out: &mut Vec<u8>) {
        tuple::put_bytes(out, self);
    }
}

macro_rules! element {
    ($element:ty, $name:expr, |$value:ident, $out:ident| $put:expr, |$reader:ident| $take:expr) => {
        impl AsElement<$element> for $element {
            #[inline]
            fn put(&self, _nested: bool, $out: &mut Vec<u8>) {
                let $value = self;
                $put;
            }
        }

        impl KeyElement for $element {
            fn element_type() -> ElementType {
                $name
            }

            #[inline]
            fn take(reader: &mut ElementReader<'_>, _nested: bool) -> Result<Self, CodecError> {
                let $reader = &mut reader.0;
                $take
            }
        }
    };
}

fn narrow<T: TryFrom<i64>>(value: i64) -> Result<T, CodecError> {
    let too_large = |_| CodecError::new(format!("{value} does not fit a {}", std::any::type_name::<T>()));
    T::try_from(value).map_err(too_large)
}

element!(String, ElementType::Text, |v, out| tuple::put_text(out, v), |r| Ok(
    tuple::take_text(r)?.into_owned()
));
element!(Vec<u8>, ElementType::Bytes, |v, out| tuple::put_bytes(out, v), |r| Ok(
    tuple::take_bytes(r)?.into_owned()
));
element!(i32, ElementType::Int, |v, out| tuple::put_i64(out, i64::from(*v)), |r| narrow(tuple::take_i64(r)?));
element!(u32, ElementType::Int, |v, out| tuple::put_u64(out, u64::from(*v)), |r| narrow(tuple::take_i64(r)?));
element!(i64, ElementType::Int, |v, out| tuple::put_i64(out, *v), |r| tuple::take_i64(r));
element!(u64, ElementType::Int, |v, out| tuple::put_u64(out, *v), |r| tuple::take_u64(r));
element!(i128, ElementType::Int, |v, out| tuple::put_i128(out, *v), |r| tuple::take_int(r));
element!(f32, ElementType::Float, |v, out| tuple::put_float(out, *v), |r| tuple::take_float(r));
element!(f64, ElementType::Double, |v, out| tuple::put_double(out, *v), |r| tuple::take_double(r));
element!(bool, ElementType::Bool, |v, out| tuple::put_bool(out, *v), |r| tuple::take_bool(r));

impl<E: KeyElement, A: AsElement<E>> AsElement<Option<E>> for Option<A> {
    #[inline]
    fn put(&self, nested: bool, out: &mut Vec<u8>) {
        match self {
            Some(element) => element.put(nested, out),
            None => tuple::put_null(out, nested),
        }
    }
}

/// Null or the element. An option of an option cannot say which of the two is missing: it reads as
/// `None`.
impl<E: KeyElement> KeyElement for Option<E> {
    fn element_type() -> ElementType {
        match E::element_type() {
            optional @ ElementType::Optional(_) => optional,
            element => ElementType::Optional(Box::new(element)),
        }
    }

    #[inline]
    fn take(reader: &mut ElementReader<'_>, nested: bool) -> Result<Self, CodecError> {
        if tuple::take_null(&mut reader.0, nested)? { Ok(None) } else { E::take(reader, nested).map(Some) }
    }
}

impl<E: KeyElement, T: AsElement<E>> LastElement<E> for T {
    fn close(&self, mut before: Vec<u8>) -> KeyRange {
        self.put(false, &mut before);
        tuple::packed_prefix_range(before)
    }
}

impl<T: AsRef<str> + ?Sized> LastElement<String> for StartsWith<'_, T> {
    fn close(&self, mut before: Vec<u8>) -> KeyRange {
        tuple::put_partial(&mut before, tuple::TEXT, self.0.as_ref().as_bytes());
        KeyRange::prefix(before)
    }
}

impl<T: AsRef<[u8]> + ?Sized> LastElement<Vec<u8>> for StartsWith<'_, T> {
    fn close(&self, mut before: Vec<u8>) -> KeyRange {
        tuple::put_partial(&mut before, tuple::BYTES, self.0.as_ref());
        KeyRange::prefix(before)
    }
}

// ---- tuples -------------------------------------------------------------------------------------

/// A tuple as a key, and as an element of another tuple.
macro_rules! tuple_key {
    ($($element:ident $stand_in:ident $index:tt),+) => {
        impl<$($element: KeyElement, $stand_in: AsElement<$element>),+> AsKey<($($element,)+)>
            for ($($stand_in,)+)
        {
            #[inline]
            fn encode_key(&self, out: &mut Vec<u8>) {
                $(self.$index.put(false, out);)+
            }
        }

        impl<$($element: KeyElement),+> Key for ($($element,)+) {
            fn codec() -> KeyCodec {
                KeyCodec::TypedTuple(vec![$($element::element_type()),+])
            }

            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                let mut reader = ElementReader(Reader::new(bytes));
                let key = ($($element::take(&mut reader, false)?,)+);
                match reader.0.is_empty() {
                    true => Ok(key),
                    false => Err(CodecError::new("a tuple has more elements than expected")),
                }
            }
        }

        impl<$($element: KeyElement, $stand_in: AsElement<$element>),+> AsElement<($($element,)+)>
            for ($($stand_in,)+)
        {
            #[inline]
            fn put(&self, _nested: bool, out: &mut Vec<u8>) {
                tuple::begin_nested(out);
                $(self.$index.put(true, out);)+
                tuple::end_nested(out);
            }
        }

        impl<$($element: KeyElement),+> KeyElement for ($($element,)+) {
            fn element_type() -> ElementType {
                ElementType::Tuple(vec![$($element::element_type()),+])
            }

            fn take(reader: &mut ElementReader<'_>, _nested: bool) -> Result<Self, CodecError> {
                tuple::take_nested_begin(&mut reader.0)?;
                let element = ($($element::take(reader, true)?,)+);
                match tuple::take_nested_end(&mut reader.0)? {
                    true => Ok(element),
                    false => Err(CodecError::new("a nested tuple has more elements than expected")),
                }
            }
        }
    };
}

tuple_key!(A A1 0);
tuple_key!(A A1 0, B B1 1);
tuple_key!(A A1 0, B B1 1, C C1 2);
tuple_key!(A A1 0, B B1 1, C C1 2, D D1 3);
tuple_key!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4);
tuple_key!(A A1 0, B B1 1, C C1 2, D D1 3, E E1 4, F F1 5);

/// The first elements of a tuple as its prefix and its bound. The elements before the bar are
/// given, the last of them outside the brackets; those after it are not given.
macro_rules! tuple_prefix {
    ([$($element:ident $stand_in:ident $index:tt),*] $last:ident $end:ident $at:tt | $($rest:ident),*) => {
        impl<$($element: KeyElement, $stand_in: AsElement<$element>,)* $last: KeyElement,
             $end: LastElement<$last>, $($rest: KeyElement),*> KeyPrefix<($($element,)* $last, $($rest,)*)>
            for ($($stand_in,)* $end,)
        {
            #[allow(unused_mut, reason = "a tuple of one element has none before the last")]
            fn key_range(&self) -> KeyRange {
                let mut before = Vec::new();
                $(self.$index.put(false, &mut before);)*
                self.$at.close(before)
            }
        }

        impl<$($element: KeyElement, $stand_in: AsElement<$element>,)* $last: KeyElement,
             $end: AsElement<$last>, $($rest: KeyElement),*> KeyBound<($($element,)* $last, $($rest,)*)>
            for ($($stand_in,)* $end,)
        {
            fn span(&self) -> KeyRange {
                KeyPrefix::<($($element,)* $last, $($rest,)*)>::key_range(self)
            }
        }
    };
}

tuple_prefix!([] A A1 0 |);
tuple_prefix!([] A A1 0 | B);
tuple_prefix!([] A A1 0 | B, C);
tuple_prefix!([] A A1 0 | B, C, D);
tuple_prefix!([] A A1 0 | B, C, D, E);
tuple_prefix!([] A A1 0 | B, C, D, E, F);
tuple_prefix!([A A1 0] B B1 1 |);
tuple_prefix!([A A1 0] B B1 1 | C);
tuple_prefix!([A A1 0] B B1 1 | C, D);
tuple_prefix!([A A1 0] B B1 1 | C, D, E);
tuple_prefix!([A A1 0] B B1 1 | C, D, E, F);
tuple_prefix!([A A1 0, B B1 1] C C1 2 |);
tuple_prefix!([A A1 0, B B1 1] C C1 2 | D);
tuple_prefix!([A A1 0, B B1 1] C C1 2 | D, E);
tuple_prefix!([A A1 0, B B1 1] C C1 2 | D, E, F);
tuple_prefix!([A A1 0, B B1 1, C C1 2] D D1 3 |);
tuple_prefix!([A A1 0, B B1 1, C C1 2] D D1 3 | E);
tuple_prefix!([A A1 0, B B1 1, C C1 2] D D1 3 | E, F);
tuple_prefix!([A A1 0, B B1 1, C C1 2, D D1 3] E E1 4 |);
tuple_prefix!([A A1 0, B B1 1, C C1 2, D D1 3] E E1 4 | F);
tuple_prefix!([A A1 0, B B1 1, C C1 2, D D1 3, E E1 4] F F1 5 |);

/// Tuples with elements that are known only at run time.
impl Key for Vec<Element<'static>> {
    fn codec() -> KeyCodec {
        KeyCodec::Tuple
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        Ok(tuple::unpack(bytes)?.into_iter().map(Element::into_owned).collect())
    }
}

macro_rules! elements_as_key {
    ($($stand_in:ty $([$($generics:tt)*])?),+) => {$(
        impl<'a $(, $($generics)*)?> AsKey<Vec<Element<'static>>> for $stand_in {
            fn encode_key(&self, out: &mut Vec<u8>) {
                tuple::pack_into(self, out);
            }
        }

        impl<'a $(, $($generics)*)?> KeyBound<Vec<Element<'static>>> for $stand_in {
            fn span(&self) -> KeyRange {
                tuple::prefix_range(self)
            }
        }

        impl<'a $(, $($generics)*)?> KeyPrefix<Vec<Element<'static>>> for $stand_in {
            fn key_range(&self) -> KeyRange {
                tuple::prefix_range(self)
            }
        }
    )+};
}

elements_as_key!(Vec<Element<'a>>, [Element<'a>], [Element<'a>; N] [const N: usize]);

#[cfg(test)]
#[path = "typed/tests.rs"]
mod tests;
