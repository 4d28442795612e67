//! One open FoldDB store: what it is, and all that is done in it. Internal, no promises: `folddb`
//! is the public API.
//!
//! State below, verbs above: a verb is a function that is called by the name of its room,
//! `get::get(engine, ..)`, `commit::commit(engine, ..)`. The `mod` lines stand bottom-up, here and
//! in each folder: a file uses only what stands above it in its list.

#![forbid(unsafe_code)]
#![allow(missing_docs)] // of fields and helpers that only the public crate sees: their names say it

pub mod seq;
pub mod events;
pub mod shared;
pub mod options;
pub mod size;
pub mod state;
pub mod edit;
pub mod values;
pub mod read;
pub mod write;
pub mod background;
pub mod recovery;
