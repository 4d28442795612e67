//! How much reclaiming is asked for, and what came of it.

/// How far living values are moved together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReclaimWant {
    /// As background work does it: when the bound is passed.
    WhenDue,
    /// As somebody wants it who asks: whatever is worth it.
    Asked,
    /// As an opening does it: many small files become one, and no more than an opening has time
    /// for.
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
    /// About as many bytes are of values that are dead and that no merge has met:
    /// `BytesTable::compact` makes sure of that.
    pub hidden_bytes: u64,
    /// Damage: files of values that stay as they are, and why.
    pub left_alone: Vec<String>,
}
