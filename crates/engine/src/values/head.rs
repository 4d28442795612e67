//! What is known of a value without reading it, where it lies outside the tree: its head.
//!
//! Of a value that lies inline the same is worked out when it is asked for, so nobody who asks need
//! know where it lies.

use std::time::SystemTime;

use folddb_base::pointer::value_hash;
use folddb_base::{Error, ErrorKind, Result, Rope};
use folddb_rules::State;
use folddb_rules::time::moment;

use crate::state::catalog::TableCore;

/// What is known of a value without reading it. Where an operand waits to be folded onto a
/// separated value, and folding is not joining, nobody can know: that value is read for its head,
/// until its key is set again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Bytes of the value.
    pub size_bytes: u64,
    /// Hash of the value, seeded with its key: other bytes under the same key have another, but for
    /// one case in four thousand million. Of a value in several pieces it is that of their lengths
    /// and hashes: the same bytes in other pieces have another, too. In hashed tables with versions
    /// or expiry it is of the time of the write and of the deadline, too.
    pub hash: u32,
    /// What tells the value from any other that its key has ever had in this store, of the same
    /// bytes too: each write gives another. Merges, reclaim, backups and restarts leave it as it
    /// is; a repair, a dump or a sync gives others. It says nothing of which came first. Known only
    /// of a separated value.
    pub version: Option<u64>,
    /// When the value was written; known only of one that is separated.
    pub written: Option<SystemTime>,
    /// Until when it lasts; none where it does forever.
    pub deadline: Option<SystemTime>,
    /// Whether the value, or some of it, is separated.
    pub is_separated: bool,
    /// In how many pieces it lies: 1, but for values that were streamed or joined.
    pub pieces: u32,
    /// What the table's rules take out of the value (`Rules::head`); empty where they take nothing.
    pub bytes: Vec<u8>,
}

impl Head {
    /// The head of what a key has.
    pub(crate) fn of(table: &TableCore, key: &[u8], state: State<'_>) -> Result<Head> {
        match state {
            State::Value(value) => Ok(Head::of_value(table, key, value)),
            State::Separated(pointer) => Head::of_pointer(table, key, pointer),
        }
    }

    /// The head of a value that is at hand.
    #[doc(hidden)]
    pub fn of_value(table: &TableCore, key: &[u8], value: &[u8]) -> Head {
        let mut bytes = Vec::new();
        table.rules.heads.put(key, value, &mut bytes);
        let hash = value_hash(key, value);
        Head {
            size_bytes: value.len() as u64,
            hash,
            version: None,
            written: None,
            deadline: None,
            is_separated: false,
            pieces: 1,
            bytes,
        }
    }

    fn of_pointer(table: &TableCore, key: &[u8], pointer: &[u8]) -> Result<Head> {
        let rope = Rope::decode(pointer).map_err(|cause| {
            let key = table.rules.rules.key_codec().show_line(key);
            Error::new(
                ErrorKind::Corruption,
                format!("the pointer of key {key} of table `{}`: {cause}", table.name),
            )
        })?;
        Ok(Head {
            size_bytes: rope.len,
            hash: rope.hash(key),
            version: Some(rope.version()),
            written: Some(moment(rope.time_ms)),
            deadline: None,
            is_separated: true,
            pieces: rope.pieces,
            bytes: rope.head.to_vec(),
        })
    }
}
