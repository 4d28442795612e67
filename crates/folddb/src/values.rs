//! Values outside the tree: they are put into segments and directories, and loaded from there.

pub(crate) mod head;
pub(crate) mod hashed_record;
pub(crate) mod load;
pub(crate) mod at_rest;
pub(crate) mod segments;
pub(crate) mod directories;
pub(crate) mod put;
pub(crate) mod settle;
pub(crate) mod long;
pub(crate) mod repair;
