//! What only a store does with the rules of a table. Users of the crate `folddb` cannot name this
//! trait: they have `text.parse::<TableRules>()`, `Store::check_table` and `DynamicRules`.

use folddb_base::Error;

use super::{BoundRules, Custom, TableRules};

/// The rules of a table as a store reads, checks and uses them.
pub trait StoredRules: Sized {
    /// Reads rules as a store keeps them, where text that cannot be read is damaged, or of a newer
    /// version. What is not said has its default.
    ///
    /// # Errors
    /// `NewerFormat` for what only a newer version can mean, `Corruption` for what is not of this
    /// form at all.
    fn from_stored(text: &str) -> Result<Self, Error>;

    /// Checks that a table may be created with these rules and the available functions.
    ///
    /// # Errors
    /// `InvalidInput`, saying what is wrong or missing.
    fn validate(&self, custom: &Custom) -> Result<(), Error>;

    /// Gives the names in the rules their functions.
    ///
    /// A missing fold or predicate leaves rules that do not fold, see [`BoundRules::missing`].
    ///
    /// # Errors
    /// `RulesMismatch` if the order or the compression is not available: without them nothing can
    /// be found.
    fn bind(&self, custom: &Custom) -> Result<BoundRules, Error>;
}

impl StoredRules for TableRules {
    fn from_stored(text: &str) -> Result<TableRules, Error> {
        TableRules::from_stored(text)
    }

    fn validate(&self, custom: &Custom) -> Result<(), Error> {
        self.validate(custom)
    }

    fn bind(&self, custom: &Custom) -> Result<BoundRules, Error> {
        self.bind(custom)
    }
}
