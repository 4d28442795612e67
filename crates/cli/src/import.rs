//! Rows from files into tables: their sources, the mapping of their columns, and the handling of
//! bad ones.

pub(crate) mod tape;
pub(crate) mod ledger;
pub(crate) mod ahead;
pub(crate) mod sink;
pub(crate) mod unpack;
pub(crate) mod lines;
#[cfg(feature = "parquet")]
pub(crate) mod columnar;
pub(crate) mod source;
pub(crate) mod files;
pub(crate) mod identity;
pub(crate) mod delimited;
pub(crate) mod row;
pub(crate) mod delimited_rows;
pub(crate) mod json_rows;
pub(crate) mod rows;
pub(crate) mod times;
pub(crate) mod expr;
pub(crate) mod mapping;
pub(crate) mod pieces;
pub(crate) mod parallel;
pub(crate) mod bad_rows;
pub(crate) mod report;
pub(crate) mod reading;
pub(crate) mod in_pieces;
