//! The native half of FoldDB for Java, for the class `org.folddb.Native` of `java/folddb`.
//!
//! - **A handle is a number**, which is looked up and never followed (`handles`). One that is zero,
//!   released, or of another type is an exception, also where another thread releases it meanwhile.
//! - **No panic and no error reaches the JVM as anything but an exception** of the class
//!   `org.folddb.FoldDbException`, with kind, message and advice (`errors`).
//! - **Arrays are copied**, small ones to the stack; batches and rows are in direct buffers, which
//!   only the Java half has (`memory`, the only file with unsafe code).
#![allow(
    unsafe_code,
    reason = "each exported name is an unsafe attribute; a test names the rooms with blocks"
)]
#![allow(non_snake_case, reason = "the names of exported functions are those that Java looks up")]

mod errors;
mod handles;
mod memory;
mod text;
pub mod options;
pub mod store;
pub mod table;
pub mod write;
pub mod read;
pub mod scan;
pub mod maintenance;
