//! Altering the rules of a table, through its handle.

use folddb_base::Result;
use folddb_rules::codec::{Key, Value};
use folddb_rules::table_rules::{RuleChange, TableRules};

use crate::table::bytes::BytesTable;
use crate::table::typed::Table;
use folddb_engine::edit::alter;

impl BytesTable {
    /// Gives the table other rules, under which all that is stored means the same: `change` gets
    /// the present ones, and returns what they should be. It is durable when it returns, and says
    /// which rules differ, and from when on each applies; nothing if none does.
    ///
    /// ```
    /// # use folddb::{ErrorKind, Options, Store};
    /// # let store = Store::in_memory(Options::default())?;
    /// let visits = store.create_bytes_table("visits", "fold=sum:u64".parse()?)?;
    /// visits.fold(b"/index", &1u64.to_le_bytes())?;
    /// store.flush()?;
    ///
    /// let changes = visits.alter(|rules| rules.block_bytes(16_384).filter_bits(14))?;
    /// assert_eq!((changes[0].rule, &*changes[0].from, &*changes[0].to), ("block_bytes", "4096", "16384"));
    /// assert_eq!(visits.stats()?.outdated_parts, 1, "written before");
    /// visits.compact()?; // or the merges that writes cause, sooner or later
    /// assert_eq!(visits.stats()?.outdated_parts, 0);
    ///
    /// let refused = visits.alter(|rules| rules.fold("sum:i64")).unwrap_err();
    /// assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
    /// assert!(refused.message().contains("`fold`"));
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// | rule | may become | applies |
    /// |---|---|---|
    /// | `block_bytes`, `compression`, `filter_bits`, `summaries` | any other | to the parts that flushes and merges write from then on |
    /// | `separate` | another length, not none | to values written from then on |
    /// | `value_placement` | any other, of a sorted table | to values written from then on |
    /// | `expire` | another time, but not from or to never | to values written from then on |
    /// | `keep` | a shorter or longer window, or fewer versions, of a sorted table | at once; a longer window has the past from its alteration on |
    /// | `key_names` | any others | at once |
    ///
    /// All else decides what the stored bytes mean, and is refused: dump the table, change the rule
    /// in the dump, and load that into another store (OPERATIONS, Dumps). Indexes are added and
    /// dropped by [`BytesTable::add_index`] and [`BytesTable::drop_index`].
    ///
    /// Readers, writers, snapshots and running merges go on: a merge may finish the part that it is
    /// writing by the old rules. Parts with old rules are counted by
    /// [`TableStats::outdated_parts`](crate::TableStats::outdated_parts). Handles that exist follow
    /// the new rules, but [`BytesTable::rules`] of each shows those of its making. Versions of
    /// FoldDB before this one refuse the store from then on.
    ///
    /// A program that states other `keep` or `expire` than the table has now, in the
    /// [`crate::Rules`] with which it opens it, is refused from then on: it states the new ones, or
    /// opens the table without ([`crate::Store::open_table`]).
    ///
    /// `change` may be called again if another thread alters the table at the same time.
    ///
    /// # Errors
    /// [`crate::ErrorKind::RulesMismatch`] for a rule that cannot be altered, with its name, why,
    /// and the way; [`crate::ErrorKind::InvalidInput`] for rules that are not possible, and for an
    /// index; [`crate::ErrorKind::ReadOnly`]; [`crate::ErrorKind::Closed`] if the table was
    /// dropped; a failed write. After each of these but the last the rules are as before; after a
    /// failed write the next opening shows which they are.
    pub fn alter(&self, mut change: impl FnMut(TableRules) -> TableRules) -> Result<Vec<RuleChange>> {
        self.engine().check_not_read_only()?;
        alter::alter(self.engine(), self.core(), &mut change)
    }
}

impl<K: Key, V: Value> Table<K, V> {
    /// Gives the table other rules, under which all that is stored means the same: see
    /// [`BytesTable::alter`], which has the table of what may be altered.
    ///
    /// ```
    /// # use folddb::{Options, Rules, Store};
    /// # let store = Store::in_memory(Options::default())?;
    /// let pages = store.table("pages", Rules::sorted::<String, String>())?;
    /// pages.alter(|rules| rules.separate(2048))?;
    /// pages.put("/index", &"x".repeat(4000))?; // in the value log
    /// # Ok::<(), folddb::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`BytesTable::alter`].
    pub fn alter(&self, change: impl FnMut(TableRules) -> TableRules) -> Result<Vec<RuleChange>> {
        self.bytes.alter(change)
    }
}
