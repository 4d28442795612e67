//! What share of the bytes that runs repeat merging frees: measured by the merges themselves, since
//! only folding tells. Two counters of a key become one, and half of the bytes are free; two lists
//! become one list as long as both.
//!
//! ```text
//!   repeated   bytes of keys that a newer input has, too, by the sketches     of all bytes that go in
//!   freed      (bytes in - bytes out) / (repeated · bytes in), from 0 to 1
//! ```
//!
//! Half of what is known is from the last merge, half from those before it: a table whose use
//! changes is known after a few.

/// Inputs that repeat less than this share of their bytes say nothing: sketches err by 3 %.
const REPEATED_MIN: f64 = 0.05;

/// What is known after a merge, where `before` was known before it.
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
