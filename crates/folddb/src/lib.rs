//! An embedded store where the value of a key is the fold of everything written to it.
