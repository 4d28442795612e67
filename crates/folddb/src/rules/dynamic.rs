//! The rules of a table whose types are known only at run time: how a tool shows and reads its keys
//! and values.

use std::fmt;
use std::sync::Arc;

use folddb_base::Result;
use folddb_rules::codec::{CodecError, ValueCodec};
use folddb_rules::table_rules::{BoundRules, StoredRules, TableRules};
use folddb_rules::{Datum, Fold, KeyOrder};

use crate::options::Options;

/// The rules of a table, with the order and the fold that they name.
///
/// ```
/// # use folddb::{Datum, Options, Rules, Store};
/// # let dir = tempfile::tempdir().unwrap();
/// # let store = Store::create(dir.path().join("s.folddb"), Options::default())?;
/// store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?.fold("/index", &2)?;
///
/// let visits = store.bytes_table("visits")?; // by a tool that knows no types
/// let rules = visits.rules();
/// let key = rules.as_table_rules().key_codec().parse_text(&["/index"])?;
/// let value = visits.get(&key)?.unwrap();
/// assert_eq!(rules.show_value(&value)?, Datum::Int(2));
/// assert_eq!(rules.value_codec(), None, "sums say themselves what they are");
/// # Ok::<(), folddb::Error>(())
/// ```
#[derive(Clone)]
pub struct DynamicRules {
    bound: Arc<BoundRules>,
}

impl DynamicRules {
    /// These rules, with the orders and folds of the options.
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`](crate::ErrorKind::RulesMismatch) if the order of keys is not
    /// available: without it nothing can be found.
    pub fn new(rules: &TableRules, options: &Options) -> Result<DynamicRules> {
        Ok(DynamicRules::of(Arc::new(rules.bind(&options.engine.custom)?)))
    }

    pub(crate) fn of(bound: Arc<BoundRules>) -> DynamicRules {
        DynamicRules { bound }
    }

    /// The stored form.
    pub fn as_table_rules(&self) -> &TableRules {
        &self.bound.rules
    }

    /// The order of keys.
    pub fn order(&self) -> &KeyOrder {
        &self.bound.order
    }

    /// How values fold; none if a function for it is not available.
    pub fn fold(&self) -> Option<&Arc<dyn Fold>> {
        self.bound.fold.fold()
    }

    /// What is not available, in words. The table is then read-only, and reads do not fold.
    pub fn missing(&self) -> Option<&str> {
        self.bound.missing.as_deref()
    }

    /// The rules that decide what the bytes of keys and values mean, in words: two tables with the
    /// same text give equal bytes the same meaning.
    pub fn meaning(&self) -> String {
        self.bound.meaning()
    }

    /// Checks that the table may be written.
    ///
    /// # Errors
    /// [`ErrorKind::RulesMismatch`](crate::ErrorKind::RulesMismatch), naming what is not available.
    pub fn check_writable(&self) -> Result<()> {
        self.bound.check_writable()
    }

    /// The type of the values, if the fold takes any bytes and the rules say what they are; none if
    /// the fold has its own type.
    pub fn value_codec(&self) -> Option<ValueCodec> {
        self.bound.opaque_codec()
    }

    /// Checks that the bytes are a value, or an operand, of the table.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn check_value(&self, value: &[u8]) -> Result<(), CodecError> {
        self.bound.check_value(value)
    }

    /// A value as people read it. Without the fold of the table, its bytes.
    ///
    /// # Errors
    /// When the bytes are not a value of the table.
    pub fn show_value(&self, value: &[u8]) -> Result<Datum, CodecError> {
        self.bound.show_value(value)
    }

    /// Encodes what a person typed, or what was in a file, as a value or operand of the table.
    /// Appends the bytes to `out`.
    ///
    /// # Errors
    /// Says what was expected.
    pub fn read_value(&self, datum: &Datum, out: &mut Vec<u8>) -> Result<(), CodecError> {
        self.bound.read_value(datum, out)
    }
}

impl fmt::Debug for DynamicRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bound.fmt(f)
    }
}
