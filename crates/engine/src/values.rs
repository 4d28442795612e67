//! Values outside the tree: putting them into segments and directories, and loading them.

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
