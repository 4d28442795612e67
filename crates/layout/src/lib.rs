//! Floor 1 of FoldDB: bytes on disk, pure functions both ways.
