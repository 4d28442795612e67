//! What is known of a separated value without reading it: its head.
//!
//! The head of an inline value is computed on request, so callers need not know where a value is. A
//! separated value is read only if an operand waits to be folded onto it, and folding is not
//! joining: the size, time and head of a joined value are known from its pieces.
//!
//! Called by `table`, `snapshot` and `scan`.

use folddb_base::Result;
use folddb_rules::resolve::Resolver;
use folddb_rules::time::moment;

use crate::read::{get, hashed};
use crate::state::catalog::TableCore;
use crate::state::engine::Engine;
use crate::state::snapshots::At;
use crate::values::head::Head;

/// The head of `key`, as a reader at `at` (or now) sees it.
pub fn head(engine: &Engine, table: &TableCore, key: &[u8], at: Option<At>) -> Result<Option<Head>> {
    if let Some(hashed) = &table.hashed {
        return hashed::head_hashed(engine, (table, hashed), key, at);
    }
    if table.has_stamps {
        return head_with_deadline(engine, table, key, at);
    }
    get::with_state(engine, table, key, at, |state, _| {
        state.map(|state| Head::of(table, key, state)).transpose()
    })
}

/// The same for a table whose values may expire.
#[cold]
fn head_with_deadline(
    engine: &Engine,
    table: &TableCore,
    key: &[u8],
    at: Option<At>,
) -> Result<Option<Head>> {
    let mut resolver = Resolver::new();
    resolver.read_at(get::reading_ms(engine, at));
    let of = get::search(engine, table, key, at, &mut resolver)?;
    get::load_waiting(engine, of.as_deref(), table, key, &mut resolver)?;
    let state = resolver.state(&table.rules.fold, key);
    let state = state.map_err(|cause| get::fold_failed(engine, table, key, &cause))?;
    let head = state.map(|state| Head::of(table, key, state)).transpose()?;
    Ok(head.map(|head| Head { deadline: resolver.deadline_ms().map(moment), ..head }))
}
