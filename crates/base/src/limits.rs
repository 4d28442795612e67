//! Every hard bound of the store, with its unit and its reason.

/// Longest key, in bytes. Lengths of keys fit a `u16`, and a block always holds many keys.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Longest value or operand, in bytes. A value travels inline through one frame of the log lane.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// Longest value that is written as a stream, in bytes; in pieces, it is never held in memory. A file of 4 GiB is the longest that
/// users of the five systems keep in one value.
pub const STREAM_BYTES_MAX: u64 = 4 << 30;

/// Largest encoded batch, in bytes. A frame must fit a journal segment with room to spare.
pub const BATCH_BYTES_MAX: usize = 32 << 20;

/// Size of a log lane segment, in bytes. See the design, section 4.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// Longest table name, in bytes.
pub const TABLE_NAME_BYTES_MAX: usize = 255;

/// Live range deletes of one table. Each get compares its key with all of them: a thousand cost some microseconds.
/// A merge to the bottom applies them and lets them go.
pub const RANGE_DELETES_MAX: usize = 1_000;
