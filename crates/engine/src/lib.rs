//! One open FoldDB store: its state, and all operations on it. Internal, no promises: `folddb` is
//! the public API.
//!
//! State below, verbs above: a verb is a function that is called by the name of its module,
//! `get::get(engine, ..)`, `commit::commit(engine, ..)`. The `mod` lines are in bottom-up order,
//! here and in each folder: a file uses only modules above it in its list.

#![forbid(unsafe_code)]
#![allow(missing_docs)] // fields and helpers for the public crate: their names say it

pub mod seq;
pub mod events;
pub mod shared;
pub mod options;
pub mod state;
pub mod edit;
pub mod values;
pub mod read;
pub mod write;
pub mod background;
pub mod recovery;
