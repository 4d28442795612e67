//! Tables that keep their past, and values that expire: by a clock that the test moves.

#[path = "../common/mod.rs"]
mod common;
#[path = "../moved/mod.rs"]
mod moved;
mod world;
mod indexes;
mod past;
mod reading;
mod dumps;
mod expiry;
