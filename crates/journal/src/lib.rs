//! Floor 2 of FoldDB: the append-only history, its log lane.
