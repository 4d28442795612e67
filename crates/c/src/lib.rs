//! FoldDB for C, in the style of LevelDB: opaque handles, `char **errptr`, lengths next to
//! pointers.
//!
//! The header `include/folddb.h` is generated from these files, one after the other, bottom-up, and
//! `docs/C.md` says how to use it. Everywhere:
//!
//! - **A handle is a number** that only looks like a pointer, and is never followed (`handles`). So
//!   a handle that is null, destroyed, or of another type is an error, not undefined behavior, and
//!   no handle can lead into freed memory.
//! - **A forked child gets an error** from every handle that was made before the fork (`forks`).
//! - **No panic reaches C**: every call runs inside `errors::guard`.
//! - **Pointers to data are followed in one file**, `memory`. A function receives such a pointer in
//!   a type of that file which only C can make; so the functions themselves are safe.
//! - **What C hands over** (a function, its context, the context's destructor) is a Rust value from
//!   then on (`callbacks`).
#![allow(
    unsafe_code,
    reason = "each exported name is an unsafe attribute; a test names the rooms with blocks"
)]

pub mod memory;
pub mod errors;
mod forks;
mod handles;
mod exclusive;
pub mod callbacks;
pub mod output;
pub mod fold;
pub mod order;
pub mod events;
pub mod shared;
pub mod options;
pub mod durability;
mod rules;
pub mod store;
pub mod snapshot;
pub mod transaction;
pub mod table;
pub mod write;
pub mod read;
pub mod batch;
pub mod scan;
pub mod json;
pub mod aggregate;
pub mod iterator;
pub mod find;
pub mod stream;
pub mod feed;
pub mod maintenance;
pub mod stats;
