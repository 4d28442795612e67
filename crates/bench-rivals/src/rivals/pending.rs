//! A batch for a store without folds and without a view of its own uncommitted writes: the final
//! value of each key. If a key is read, modified and written twice in a batch, the second time must
//! see the first write. So each key is written once.

use std::collections::HashMap;

use anyhow::Result;

use crate::rival::{Meaning, Op};

/// The writes of a batch that is not committed.
pub(crate) struct Pending {
    meaning: Meaning,
    /// The value that a key gets; `None` deletes it.
    values: HashMap<Vec<u8>, Option<Vec<u8>>>,
}

impl Pending {
    pub(crate) fn new(meaning: Meaning) -> Pending {
        Pending { meaning, values: HashMap::new() }
    }

    /// Adds an op. `read` puts the stored value of a key into the buffer, and says whether there is
    /// one.
    pub(crate) fn collect(
        &mut self,
        op: Op<'_>,
        read: impl FnOnce(&[u8], &mut Vec<u8>) -> Result<bool>,
    ) -> Result<()> {
        match op {
            Op::Put { key, value } => self.values.insert(key.to_vec(), Some(value.to_vec())),
            Op::Delete { key } => self.values.insert(key.to_vec(), None),
            Op::Fold { key, operand } => {
                let (mut stored, mut value) = (Vec::new(), Vec::new());
                let before = match self.values.get(key) {
                    Some(pending) => pending.as_deref(),
                    None => read(key, &mut stored)?.then_some(stored.as_slice()),
                };
                self.meaning.fold(before, operand, &mut value);
                self.values.insert(key.to_vec(), Some(value))
            }
        };
        Ok(())
    }

    /// Removes all writes, and returns them.
    pub(crate) fn drain(&mut self) -> impl Iterator<Item = (Vec<u8>, Option<Vec<u8>>)> + '_ {
        self.values.drain()
    }
}

#[cfg(test)]
#[path = "pending/tests.rs"]
mod tests;
