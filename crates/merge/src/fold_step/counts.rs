//! Counts of a merge's records by what happened to them. Input and output must add up.

/// What happened to the records. Each input record is in exactly one of the other counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Records that came in.
    pub records_in: u64,
    /// Records that went out.
    pub records_out: u64,
    /// Composed into a neighbor.
    pub folded: u64,
    /// Older than a `Set` or `Delete` of their stripe.
    pub shadowed: u64,
    /// Under a range delete.
    pub range_deleted: u64,
    /// Left out at the bottom, since the key is absent.
    pub dropped: u64,
    /// States that had expired: they were dropped, or went out as `Delete`s.
    pub expired: u64,
    /// Distinct keys that came in.
    pub keys_in: u64,
    /// Distinct keys that went out.
    pub keys_out: u64,
    /// Bytes of keys and payloads that came in.
    pub bytes_in: u64,
    /// Bytes of keys and payloads that went out.
    pub bytes_out: u64,
    /// `Delete`s that went out.
    pub deletes_out: u64,
    /// How often two ops could not be one op.
    pub declined_by_form: u64,
    /// How often two ops stayed separate because the fold is not available.
    pub declined_fold_missing: u64,
    /// How often the user's function failed or panicked.
    pub declined_failed: u64,
}

impl Counts {
    /// Whether in = out + folded + shadowed + range-deleted + dropped. True between keys.
    pub fn balance(&self) -> bool {
        let gone = self.folded + self.shadowed + self.range_deleted + self.dropped;
        self.records_in == self.records_out + gone
    }

    /// These, and those of another range of keys.
    pub fn and(&self, other: &Counts) -> Counts {
        Counts {
            records_in: self.records_in + other.records_in,
            records_out: self.records_out + other.records_out,
            folded: self.folded + other.folded,
            shadowed: self.shadowed + other.shadowed,
            range_deleted: self.range_deleted + other.range_deleted,
            dropped: self.dropped + other.dropped,
            expired: self.expired + other.expired,
            keys_in: self.keys_in + other.keys_in,
            keys_out: self.keys_out + other.keys_out,
            bytes_in: self.bytes_in + other.bytes_in,
            bytes_out: self.bytes_out + other.bytes_out,
            deletes_out: self.deletes_out + other.deletes_out,
            declined_by_form: self.declined_by_form + other.declined_by_form,
            declined_fold_missing: self.declined_fold_missing + other.declined_fold_missing,
            declined_failed: self.declined_failed + other.declined_failed,
        }
    }
}

/// One line, for people.
impl std::fmt::Display for Counts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Counts { records_in, records_out, folded, shadowed, range_deleted, dropped, .. } = self;
        write!(
            f,
            "{records_in} records in, {records_out} out, {folded} folded, {shadowed} shadowed, \
             {range_deleted} range-deleted, {dropped} dropped"
        )
    }
}

/// The first failure of the user's function in this merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StepFailure {
    /// The key that it failed on.
    pub key: Vec<u8>,
    /// What it said.
    pub message: String,
}
