//! Floor 2 of FoldDB: merging as pure logic; knows streams, not files.
//!
//! What to merge next is a plan ([`plan`]), how hard writers are slowed meanwhile a pace ([`pace`]); the
//! work itself is many streams as one ([`kway`]), folded key by key in bounded steps ([`fold_step`]).
//! Nothing here does I/O or reads a clock. The modules stand bottom-up.

#![forbid(unsafe_code)]

pub mod kway;
pub mod visible;

pub use kway::KWay;
pub use visible::Visible;
