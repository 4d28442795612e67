//! Values that name their fold, where their type alone does not: `Sum<u64>` is folded by `sum:u64`.
//!
//! They are used in records, where each field folds by its type, and make rules shorter elsewhere.

macro_rules! named_value {
    ($($(#[$doc:meta])+ $name:ident;)+) => {$(
        $(#[$doc])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name<T>(pub T);

        impl<T> From<T> for $name<T> {
            fn from(value: T) -> $name<T> {
                $name(value)
            }
        }
    )+};
}

named_value! {
    /// A value that is folded by [`sum`](super::sum()).
    Sum;
    /// A value that is folded by [`min`](super::min()).
    Min;
    /// A value that is folded by [`max`](super::max()).
    Max;
    /// A value that is folded by [`first`](super::first()): the first one stays.
    First;
}
