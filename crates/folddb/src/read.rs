//! Reading: a key, its head, its history, a range of keys, in sorted and in hashed tables.

pub(crate) mod stop;
pub(crate) mod buffer;
pub(crate) mod pinned;
pub(crate) mod hashed;
pub(crate) mod get;
pub(crate) mod head;
pub(crate) mod terms;
pub(crate) mod lookup;
pub(crate) mod locate;
pub(crate) mod history;
pub(crate) mod scan;
pub(crate) mod hashed_scan;
