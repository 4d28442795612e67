//! The tables of a state, by number and by name. Clones share the tables; an edit copies only what
//! it changes.
//!
//! Called by `state`.

use std::sync::Arc;

use folddb_base::{SharedMap, TableId};

use crate::table::TableState;

/// See the top of this file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    by_id: SharedMap<TableId, Arc<TableState>>,
    by_name: SharedMap<Arc<str>, TableId>,
}

impl Tables {
    /// The tables, by number.
    pub fn values(&self) -> impl Iterator<Item = &TableState> {
        self.by_id.values().map(|table| &**table)
    }

    /// The same, each with its number.
    pub fn iter(&self) -> impl Iterator<Item = (TableId, &TableState)> {
        self.by_id.iter().map(|(&id, table)| (id, &**table))
    }

    /// How many tables there are.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Whether there is no table.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// The table of this number.
    pub fn get(&self, id: &TableId) -> Option<&TableState> {
        self.by_id.get(id).map(|table| &**table)
    }

    /// Whether there is one of this number.
    pub fn contains_key(&self, id: &TableId) -> bool {
        self.by_id.contains_key(id)
    }

    /// The table of this name.
    pub fn by_name(&self, name: &str) -> Option<&TableState> {
        self.get(self.by_name.get(name)?)
    }

    /// The table of this number. The caller must not change its number or its name.
    pub fn get_mut(&mut self, id: &TableId) -> Option<&mut TableState> {
        self.by_id.get_mut(id).map(Arc::make_mut)
    }

    /// Changes all tables. `change` must not change their numbers or names.
    pub fn for_each_mut(&mut self, mut change: impl FnMut(&mut TableState)) {
        let ids: Vec<TableId> = self.by_id.keys().copied().collect();
        ids.iter().for_each(|id| self.get_mut(id).into_iter().for_each(&mut change));
    }

    /// Adds a table. No other table may have its number or its name.
    pub fn insert(&mut self, table: TableState) {
        self.by_name.insert(table.name.as_str().into(), table.id);
        self.by_id.insert(table.id, Arc::new(table));
    }

    /// Removes a table and returns it.
    pub fn remove(&mut self, id: &TableId) -> Option<Arc<TableState>> {
        let table = self.by_id.remove(id)?;
        self.by_name.remove(table.name.as_str());
        Some(table)
    }
}
