//! Unit tests of the index of a hashed table.
