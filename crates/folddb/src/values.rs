//! Values outside the tree: they are put into segments and directories, and loaded from there.

pub(crate) mod values;
pub(crate) mod at_rest;
pub(crate) mod repair;
pub(crate) mod long;
pub(crate) mod directories;
