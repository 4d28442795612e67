//! Beside the floors: the model, workloads and a faulty world to test FoldDB in.
