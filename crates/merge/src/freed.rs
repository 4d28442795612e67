//! How much merging frees of the bytes of keys that several runs have. It depends on the fold, so
//! merges measure it: two counters of a key become one, which frees half of the bytes; two lists
//! become one list that is as long as both.
//!
//! ```text
//!   repeated   bytes of keys that a newer input has, too, by the sketches     of all bytes that go in
//!   freed      (bytes in - bytes out) / (repeated · bytes in), from 0 to 1
//! ```
//!
//! Half of the estimate comes from the last merge, half from the merges before it. So it follows a
//! change of the workload within a few merges.

/// Merges with inputs that repeat less than this share of their bytes do not count: sketches have
/// an error of 3 %.
const REPEATED_MIN: f64 = 0.05;

/// The estimate after a merge; `before` is the one before it.
pub fn freed_after(before: f64, repeated: f64, bytes_in: u64, bytes_out: u64) -> f64 {
    if repeated < REPEATED_MIN || bytes_in == 0 {
        return before;
    }
    let gone = bytes_in.saturating_sub(bytes_out) as f64 / bytes_in as f64;
    (before + (gone / repeated).clamp(0.0, 1.0)) / 2.0
}

#[cfg(test)]
#[path = "freed/tests.rs"]
mod tests;
