//! How much reclaim is requested, and its result.

/// How far live values are copied together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimWant {
    /// As in background work: when the bound is exceeded.
    WhenDue,
    /// As on request: everything that is worth it.
    Asked,
    /// As at opening: many small files become one, within the time of an opening.
    Small,
}

/// What reclaiming has done.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReclaimReport {
    /// Plans that were carried out.
    pub plans: u64,
    /// Bytes of the value log before.
    pub bytes_before: u64,
    /// Bytes of the value log now.
    pub bytes_after: u64,
    /// Bytes written.
    pub bytes_copied: u64,
    /// About how many bytes belong to dead values that no merge has found yet:
    /// `BytesTable::compact` finds them.
    pub hidden_bytes: u64,
    /// Damage: files of values that stay as they are, and why.
    pub left_alone: Vec<String>,
}
