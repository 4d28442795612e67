//! Every hard bound of the store, with its unit and its reason.

/// Longest key, in bytes: the length of a key fits a `u16`.
pub const KEY_BYTES_MAX: usize = 65_535;

/// Longest value or operand, in bytes. A value travels inline through one frame of the log.
pub const VALUE_BYTES_MAX: usize = 16 << 20;

/// Longest payload of a record that folding makes, in bytes: two values and a length. Operands that
/// would fold to more stay separate records, and readers fold them, to any length: so a part, a
/// chunk and a cache never hold a longer record.
pub const FOLDED_BYTES_MAX: usize = 2 * VALUE_BYTES_MAX + 64;

/// Longest value that is written as a stream, in bytes. It is written and read in pieces, and never
/// held in memory as a whole. Files of 4 GiB are the longest values that users of comparable stores
/// have.
pub const STREAM_BYTES_MAX: u64 = 4 << 30;

/// Largest encoded batch, in bytes. A frame must fit a segment of the log with room to spare.
pub const BATCH_BYTES_MAX: usize = 32 << 20;

/// Largest size of a segment of the log, in bytes, unless the options say otherwise. A store begins
/// with shorter ones, which grow with the speed of its writers.
pub const SEGMENT_BYTES: u64 = 64 << 20;

/// Longest table name, in bytes.
pub const TABLE_NAME_BYTES_MAX: usize = 255;

/// A memtable is sealed when it has this many range deletes, or sooner if memory is small: each is
/// a boundary at which folding in memory stops.
pub const RANGE_DELETES_PER_FLUSH: usize = 1_024;
