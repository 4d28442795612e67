//! Floor 2 of FoldDB: the newest records, the first tiers of the merge sort.
