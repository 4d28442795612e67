//! Rows from files into tables: where they come from, which of their columns feed what, and what
//! becomes of the bad ones.

pub(crate) mod sink;
pub(crate) mod source;
pub(crate) mod delimited;
pub(crate) mod rows;
pub(crate) mod mapping;
pub(crate) mod bad_rows;
