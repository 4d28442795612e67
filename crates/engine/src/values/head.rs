//! What is known of a separated value without reading it: its head.
//!
//! The head of an inline value is computed on request, so callers need not know where a value is.

use std::time::SystemTime;

use folddb_base::pointer::value_hash;
use folddb_base::{Error, ErrorKind, Result, Rope};
use folddb_rules::State;
use folddb_rules::time::moment;

use crate::state::catalog::TableCore;

/// What is known of a value without reading it. If an operand waits to be folded onto a separated
/// value, and folding is not joining, nothing is known: that value is read for its head, until its
/// key is set again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Bytes of the value.
    pub size_bytes: u64,
    /// Hash of the value, seeded with its key: other bytes under the same key have another hash,
    /// except in one of four thousand million cases. For a value in several pieces it is that of
    /// their lengths and hashes: the same bytes in different pieces have a different hash. In
    /// hashed tables with versions or expiry it also covers the time of the write and the deadline.
    pub hash: u32,
    /// Distinguishes the value from all others that its key has ever had in this store, even of the
    /// same bytes: each write gives a new one. Merges, reclaim, backups and restarts keep it; a
    /// repair, a dump or a sync changes it. It has no order. Known only for a separated value.
    pub version: Option<u64>,
    /// When the value was written; known only if it is separated.
    pub written: Option<SystemTime>,
    /// Its deadline; none if it lasts forever.
    pub deadline: Option<SystemTime>,
    /// Whether the value, or some of it, is separated.
    pub is_separated: bool,
    /// How many pieces it has: 1, except for values that were streamed or joined.
    pub pieces: u32,
    /// What the table's rules extract from the value (`Rules::head`); empty if nothing.
    pub bytes: Vec<u8>,
}

impl Head {
    /// The head of a key's state.
    pub(crate) fn of(table: &TableCore, key: &[u8], state: State<'_>) -> Result<Head> {
        match state {
            State::Value(value) => Ok(of_value(table, key, value)),
            State::Separated(pointer) => Head::of_pointer(table, key, pointer),
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

/// The head of a value in memory.
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
