//! Beside the floors: every decoder of FoldDB fed with bytes from anywhere.
//!
//! A [`Target`] is a function on bytes that asserts what must hold whatever they are: no panic;
//! what decodes, encodes to the same again; no more memory than a multiple of the input. [`run`]
//! replays the inputs that are kept in `corpus/TARGET/`, and continues from them with the mutator
//! of [`mutate`], which makes checksums right again, so that it gets past them. The same targets
//! stand behind libFuzzer in the folder `fuzz`.
//!
//! ```text
//!   cargo test -p folddb-fuzz                                      seconds: the kept inputs, and a short search
//!   cargo run -p folddb-fuzz --release -- --minutes 10             a long search; --target NAME for one of them
//!   cargo run -p folddb-fuzz --release -- --replay FILE            one input again
//!   cargo run -p folddb-fuzz --release --example seeds             writes the seeds among the kept inputs again
//! ```

#![forbid(unsafe_code)]

pub mod chance;
pub mod carve;
pub mod heap;
pub mod memory;
pub mod target;
pub mod targets;
pub mod mutate;
pub mod corpus;
pub mod run;

pub use target::{HeapBound, Target};
