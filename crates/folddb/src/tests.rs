//! Tests of the engine that need a whole store: they look below the public API at what the engine
//! knows.

mod io_limit;
mod merge_debt;
mod stale_entries;
