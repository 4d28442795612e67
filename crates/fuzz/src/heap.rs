//! Counts what is on the heap, so that a decoder which allocates by a length that it read is found
//! out.
//!
//! The count is that of the whole process: one thread at a time may measure.

use peak_alloc::PeakAlloc;

#[global_allocator]
static HEAP: PeakAlloc = PeakAlloc;

/// The most bytes that were on the heap at once while `work` ran, beyond those that were there
/// before.
pub fn peak_bytes<T>(work: impl FnOnce() -> T) -> (T, usize) {
    let before = HEAP.current_usage();
    HEAP.reset_peak_usage();
    let result = work();
    (result, HEAP.peak_usage().saturating_sub(before))
}
