//! Change feeds as a consumer sees them: rows, then batches, over closes, deaths, merges and
//! reclaim.
#![allow(clippy::unwrap_used)]

#[path = "../common/mod.rs"]
mod common;
mod replica;
mod positions;
mod tells;
mod holding;
mod damage;
mod values;
