//! Scans of a range of keys: narrowed by the caller, iterated forward or in reverse, broken off
//! and resumed at a cursor.

pub(crate) mod cursor;
pub(crate) mod rows;
pub(crate) mod bytes;
pub(crate) mod typed;
