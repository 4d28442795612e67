//! All that is in a store.

use folddb::Store;
use folddb::table_rules::TableKind;

use crate::compare::dump;
use crate::known::Contents;

/// All that is in a store.
pub(super) fn contents(store: &Store) -> folddb::Result<Contents> {
    store
        .tables()
        .into_iter()
        .map(|name| {
            let table = store.bytes_table(&name)?;
            let mut rows = dump(table.scan())?;
            if table.rules().as_table_rules().kind == TableKind::Hashed {
                rows.sort(); // as the model has them
            }
            Ok((name, rows))
        })
        .collect()
}
