//! Many rows become one result: counts and folded values, digests, and folds of the caller's own,
//! which may run on several threads.

pub(crate) mod parallel;
pub(crate) mod fold_scan;
pub(crate) mod range;
pub(crate) mod fold_find;
pub(crate) mod digest;
pub(crate) mod estimate;
