//! Floor 2 of FoldDB: merging as pure logic; knows streams, not files.
