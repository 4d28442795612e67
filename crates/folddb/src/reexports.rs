//! Names of inner crates that are public besides those at the root: for tools, and for programs
//! whose types are known only at run time. Everything that is not named here or at the root stays
//! internal.

/// How keys and values look as bytes: the traits of typed tables, and codecs for types that are
/// known only at run time.
pub mod codec {
    pub use folddb_rules::codec::{
        AsElement, AsKey, AsValue, CodecError, ElementReader, ElementType, Fit, Key, KeyBound, KeyCodec,
        KeyElement, KeyPrefix, KeyRange, OrderedValue, StartsWith, SummedValue, TypedKeys, Value, ValueCodec,
    };
    #[doc(hidden)] // for the output of `#[derive(Record)]`
    pub use folddb_rules::codec::{FieldOf, record};

    /// Keys that are tuples, as bytes.
    pub mod tuple {
        pub use folddb_rules::codec::tuple::{Element, pack, unpack};
    }
}

/// The rules of a table as data, as the store keeps them.
pub mod table_rules {
    pub use folddb_rules::table_rules::{
        Applies, Compression, FoldName, PredicateRule, READY_MADE, RuleChange, TableKind, TableRules,
    };
}

/// Keys and values as people read and type them.
pub mod datum {
    pub use folddb_rules::datum::plain::{expected, why_not_wrapped};
    pub use folddb_rules::datum::{from_hex, hex, unwrapped, unwrapped_text, wrapped};

    /// As JSON.
    pub mod json {
        pub use folddb_rules::datum::json::{parse, put, put_object, text_of};
    }
}

/// Moments and times as people read and type them. Milliseconds count since 1970, in UTC.
pub mod time {
    pub use folddb_rules::time::{date, moment, parse_time, rfc3339, show_time, unix_ms, utc};
}

/// Sizes as people read them.
pub mod text {
    pub use folddb_base::size_text;
}

/// The search for operands that break a law of a fold.
pub mod law {
    pub use folddb_rules::law::{CounterExample, Law, LawReport, LawResult, check};
}

/// The order of keys.
pub mod order {
    pub use folddb_rules::order::{CustomOrder, KeyOrder};
}

/// How long a key, a value, a batch and a name may be, in bytes.
pub mod limits {
    pub use folddb_base::limits::{
        BATCH_BYTES_MAX, KEY_BYTES_MAX, STREAM_BYTES_MAX, TABLE_NAME_BYTES_MAX, VALUE_BYTES_MAX,
    };
}
