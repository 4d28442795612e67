//! Secondary indexes: building them, and finding records through them.

pub(crate) mod build;
pub(crate) mod verbs;
pub(crate) mod find;
pub(crate) mod hits;
pub(crate) mod typed_find;
