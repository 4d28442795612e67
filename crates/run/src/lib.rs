//! Floor 2 of FoldDB: immutable sorted runs.
