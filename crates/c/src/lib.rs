//! FoldDB for C, in the manners of LevelDB: opaque handles, `char **errptr`, lengths beside
//! pointers.
//!
//! The header `include/folddb.h` is generated from these files, one room after the other,
//! bottom-up, and `docs/C.md` says how it is used. What holds everywhere:
//!
//! - **A handle is a number** that only looks like a pointer, and is never followed
//!   (`handles`). So a handle that is null, destroyed, or of another type is an error, not
//!   undefined behaviour, and there is nothing to follow into memory that is gone.
//! - **A forked child gets an error** from every handle that was given before (`forks`).
//! - **No panic crosses the border**: every call runs inside `errors::guard`.
//! - **Pointers to data are followed in one room**, `memory`. A function that takes such a pointer
//!   takes it in a type of that room which only C can make; so the functions themselves are safe.
//! - **What C hands over** (a function, its context, the context's destructor) is a value of Rust
//!   once it has come in (`callbacks`).
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
