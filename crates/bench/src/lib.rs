//! Beside the floors: the benchmark programs of the systems that FoldDB unites.
