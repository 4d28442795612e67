//! Secondary indexes as a user sees them: declared, added to a full table, queried, cleaned,
//! dropped.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod people;
mod finding;
mod terms;
mod building;
mod cleaning;
mod maintenance;
