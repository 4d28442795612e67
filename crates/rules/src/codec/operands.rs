//! The types of [`crate::folds`] as values of typed tables: each says which folds it is made for.

use super::CodecError;
use super::value::{AsValue, Fit, Value, ValueCodec};
use crate::fold::Fold;
use crate::folds::{self, FoldSpec, MatrixNumber, Score};

/// A type with the fold that it is made for, others that it fits, and how it fits them.
macro_rules! operand_value {
    ($($operand:ident $([$($generics:tt)*] <$($names:ident),+>)?:
        $fold:expr, $others:tt, $fit:ident, $put:expr, $nothing:expr, $len:expr;)+) => {$(
        impl$(<$($generics)*>)? AsValue<folds::$operand$(<$($names),+>)?> for folds::$operand$(<$($names),+>)? {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                $put(self, out);
            }
        }

        impl$(<$($generics)*>)? Value for folds::$operand$(<$($names),+>)? {
            const ENCODES_SURELY: bool = matches!(Fit::$fit, Fit::Always);
            const FIELD_LEN: Option<usize> = $len;

            fn nothing() -> Option<Self> {
                $nothing
            }

            fn default_fold() -> FoldSpec {
                $fold.into()
            }

            fn fit(fold: &dyn Fold) -> Fit {
                fit_of(fold, &Self::default_fold(), &$others, Fit::$fit)
            }

            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                folds::$operand::from_bytes(bytes).map_err(|failure| CodecError(failure.0))
            }
        }
    )+};
}

fn put_bytes(bytes: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(bytes);
}

operand_value! {
    ByteSet: folds::set(), ["intersect"], Always, folds::ByteSet::put, Some(Self::default()), None;
    Counters: folds::counters(), [], Always, folds::Counters::put, Some(Self::default()), None;
    ExactSum: folds::sum::<folds::ExactSum>(), [], Always, folds::ExactSum::put, Some(Self::default()), None;
    // Edits may reach beyond the longest object.
    Patch: folds::patch(), [], Sometimes, |this: &Self, out: &mut Vec<u8>| put_bytes(this.as_bytes(), out), None, None;
    Stats: folds::stats(), [], Always, folds::Stats::put, Some(Self::default()), None;
    Hll [const P: u32] <P>: folds::hll::<P>(), [], Always,
        |this: &Self, out: &mut Vec<u8>| put_bytes(this.as_bytes(), out), Some(Self::default()), None;
    Quantiles [const B: u32] <B>: folds::quantiles::<B>(), [], Always,
        |this: &Self, out: &mut Vec<u8>| put_bytes(this.as_bytes(), out), Some(Self::default()), None;
    TopK [const K: usize, S: Score] <K, S>: folds::top::<K, S>(), [], Always, folds::TopK::put,
        Some(Self::default()), None;
    Matrix [const N: usize, T: MatrixNumber] <N, T>: folds::matmul::<N, T>(), [], Always, folds::Matrix::put,
        None, Some(8 * N * N);
}

impl<V: Value> AsValue<folds::Timed<V>> for folds::Timed<V> {
    fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.time.to_le_bytes());
        self.value.encode(out);
    }
}

impl<V: Value> Value for folds::Timed<V> {
    const ENCODES_SURELY: bool = V::ENCODES_SURELY;

    fn default_fold() -> FoldSpec {
        folds::last_writer::<V>().into()
    }

    fn fit(fold: &dyn Fold) -> Fit {
        fit_of(fold, &Self::default_fold(), &[], sure(V::ENCODES_SURELY))
    }

    fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
        let Some((time, value)) = bytes.split_first_chunk::<8>() else {
            return Err(CodecError(format!(
                "expected a time of 8 bytes and a value, found {} bytes",
                bytes.len()
            )));
        };
        Ok(folds::Timed { time: i64::from_le_bytes(*time), value: V::decode(value)? })
    }
}

/// A value of `$name`: that of a type, with the fold that the name says.
macro_rules! named_value {
    ($($name:ident: $bound:path, $fold:expr, $len:expr, $put_nothing:expr, $nothing:expr;)+) => {$(
        impl<T: $bound> AsValue<folds::$name<T>> for folds::$name<T> {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                self.0.encode(out);
            }
        }

        impl<T: $bound> Value for folds::$name<T> {
            const ENCODES_SURELY: bool = T::ENCODES_SURELY;
            const FIELD_LEN: Option<usize> = $len;

            fn codec() -> ValueCodec {
                T::codec()
            }

            fn default_fold() -> FoldSpec {
                $fold.into()
            }

            fn fit(fold: &dyn Fold) -> Fit {
                fit_of(fold, &Self::default_fold(), &[], sure(T::ENCODES_SURELY))
            }

            fn put_nothing(out: &mut Vec<u8>) {
                out.extend_from_slice($put_nothing);
            }

            fn nothing() -> Option<Self> {
                $nothing
            }

            fn decode(bytes: &[u8]) -> Result<Self, CodecError> {
                T::decode(bytes).map(folds::$name)
            }
        }

        impl<T: $bound> FieldOf<T> for folds::$name<T> {
            fn put_field_of(value: &T, out: &mut Vec<u8>) -> bool {
                value.put_field(out)
            }

            fn into_field(self) -> T {
                self.0
            }
        }
    )+};
}

/// What may be in a [`folds::Sum`].
pub trait SummedValue: Value + folds::Summed {}
impl<T: Value + folds::Summed> SummedValue for T {}

/// What may be in a [`folds::Min`] and a [`folds::Max`].
pub trait OrderedValue: Value + folds::Ordered {}
impl<T: Value + folds::Ordered> OrderedValue for T {}

named_value! {
    Sum: SummedValue, T::sum(), T::LEN, &[0; 16][..T::LEN.unwrap_or(0)], Some(folds::Sum(T::zero()));
    Min: OrderedValue, folds::min::<T>(), T::LEN, &T::weakest(false)[..T::LEN.unwrap_or(0)], None;
    Max: OrderedValue, folds::max::<T>(), T::LEN, &T::weakest(true)[..T::LEN.unwrap_or(0)], None;
    First: Value, folds::first::<T>(), None, &[], None;
}

/// A field of type `T` that folds as `Self` does: for a `u64` in a struct, `Sum<u64>`.
pub trait FieldOf<T>: Value {
    /// As [`Value::put_field`].
    fn put_field_of(value: &T, out: &mut Vec<u8>) -> bool;
    /// The field.
    fn into_field(self) -> T;
}

impl<T, W: FieldOf<T>> FieldOf<Option<T>> for Option<W> {
    fn put_field_of(value: &Option<T>, out: &mut Vec<u8>) -> bool {
        value.as_ref().is_some_and(|value| W::put_field_of(value, out))
    }

    fn into_field(self) -> Option<T> {
        self.map(W::into_field)
    }
}

fn sure(encodes_surely: bool) -> Fit {
    if encodes_surely { Fit::Always } else { Fit::Sometimes }
}

#[cfg(feature = "bitmap")]
operand_value! {
    Bitmap: folds::bitmap(), [], Always, folds::Bitmap::put, Some(Self::default()), None;
}

/// How a type that is made for one fold fits this one.
fn fit_of(fold: &dyn Fold, own: &FoldSpec, others: &[&str], fit: Fit) -> Fit {
    let spec = fold.spec();
    if own.as_fold().spec() == spec || others.contains(&spec.as_str()) { fit } else { Fit::Never }
}

/// What can be used as an operand of one number, or of one member.
macro_rules! stands_for {
    ($($stand_in:ty $([$($generics:tt)*])? => $operand:ty: |$given:ident| $of:expr;)+) => {$(
        impl $(<$($generics)*>)? AsValue<$operand> for $stand_in {
            #[inline]
            fn encode(&self, out: &mut Vec<u8>) {
                let $given = self;
                AsValue::<$operand>::encode(&$of, out);
            }
        }
    )+};
}

#[cfg(feature = "bitmap")]
stands_for! {
    u32 => folds::Bitmap: |member| folds::Bitmap::of(*member);
}

stands_for! {
    str => folds::ByteSet: |member| folds::ByteSet::of(member);
    String => folds::ByteSet: |member| folds::ByteSet::of(member.as_str());
    [u8] => folds::ByteSet: |member| folds::ByteSet::of(member);
    [u8; N] [const N: usize] => folds::ByteSet: |member| folds::ByteSet::of(member.as_slice());
    str [const P: u32] => folds::Hll<P>: |member| folds::Hll::<P>::of(member);
    String [const P: u32] => folds::Hll<P>: |member| folds::Hll::<P>::of(member);
    [u8] [const P: u32] => folds::Hll<P>: |member| folds::Hll::<P>::of(member);
    [u8; N] [const N: usize, const P: u32] => folds::Hll<P>: |member| folds::Hll::<P>::of(member);
    f64 => folds::ExactSum: |number| folds::ExactSum::of(*number);
    f64 => folds::Stats: |number| folds::Stats::of(*number);
    f64 [const B: u32] => folds::Quantiles<B>: |number| folds::Quantiles::<B>::of(*number);
    i64 => folds::Sum<i64>: |number| folds::Sum(*number);
    u64 => folds::Sum<u64>: |number| folds::Sum(*number);
    i128 => folds::Sum<i128>: |number| folds::Sum(*number);
}

#[cfg(test)]
#[path = "operands/tests.rs"]
mod tests;
