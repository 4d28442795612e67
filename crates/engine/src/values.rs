//! Values outside the tree: they are put into segments and directories, and loaded from there.

pub mod head;
pub mod hashed_record;
pub mod load;
pub mod at_rest;
pub mod segments;
pub mod directories;
pub mod put;
pub mod settle;
pub mod long;
pub mod repair;
