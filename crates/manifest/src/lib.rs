//! Floor 2 of FoldDB: the list of what lives.
