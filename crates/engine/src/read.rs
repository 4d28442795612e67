//! Reading: one key or several, the head of one, its history, a range of keys, in sorted and in
//! hashed tables.

pub mod stop;
mod groups;
mod together;
pub mod buffer;
pub mod pinned;
pub mod hashed;
pub mod get;
pub mod get_many;
pub mod head;
pub mod terms;
pub mod lookup;
pub mod locate;
pub mod history;
pub mod prefix;
pub mod scan;
pub mod hashed_scan;
pub mod estimate;
