//! Tables: their handles, with and without types, what is done to one as a whole, and what is in
//! it.

pub(crate) mod record_op;
pub(crate) mod prefix_delete;
pub(crate) mod bytes;
pub(crate) mod typed;
pub(crate) mod stats;
pub(crate) mod compact;
pub(crate) mod alter;
pub(crate) mod edits;
pub(crate) mod explain;
