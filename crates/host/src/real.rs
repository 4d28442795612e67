//! The operating system's files.
use crate::files::*;
/// The operating system's files.
#[derive(Debug, Default)]
pub struct RealFiles {}

