//! What is known of a store before it is opened.

use anyhow::Result;

use crate::rival::{Rival, Setup};

/// A store that can take part.
pub(crate) struct Entry {
    pub(crate) name: &'static str,
    /// What `Cargo.lock` or the store itself says.
    pub(crate) version: fn() -> String,
    /// Its settings in a line, for results.
    pub(crate) settings: fn(&Setup) -> String,
    /// Opens it, or creates it if there is none.
    pub(crate) open: fn(&Setup) -> Result<Box<dyn Rival>>,
}

/// The version of a package that `Cargo.lock` fixes.
pub(super) fn locked_version(package: &str) -> String {
    let lock = include_str!("../../Cargo.lock");
    let name = format!("name = \"{package}\"\nversion = \"");
    let version = lock.split_once(&name).and_then(|(_, rest)| Some(rest.split_once('"')?.0));
    version.unwrap_or("unknown").to_owned()
}
