//! What was found out about a part and the range deletes over it, so that it is found out once.
//!
//! A part never changes, nor does a range delete. So what was found out holds as long as the same
//! range deletes are applied to the part. It is not stored: after an opening it is found out anew.

use std::fmt;

use folddb_base::Seq;

/// How much of a part range deletes cover.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// The range deletes that were applied to the part when it was examined, oldest first.
    pub ranges: Box<[Seq]>,
    /// Whether each of its records is proven to be covered.
    pub is_whole: bool,
    /// How many of its records are covered at least, by its index.
    pub records: u64,
    /// Bytes of its blocks that were read, and did not show that all of it is covered.
    pub bytes_in_vain: u64,
}

impl fmt::Display for Coverage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Coverage { ranges, is_whole, records, bytes_in_vain } = self;
        let records = if *is_whole { "all".to_owned() } else { format!("at least {records}") };
        write!(f, "{records} of its records by {} range deletes", ranges.len())?;
        if *bytes_in_vain > 0 { write!(f, ", {bytes_in_vain} bytes read in vain") } else { Ok(()) }
    }
}
