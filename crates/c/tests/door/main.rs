//! The library for C as C has it: its header, and programs that are compiled against it.

mod compile;
mod header;
mod installed;
mod programs;
mod pages;
mod differential;
