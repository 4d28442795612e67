//! Values that a table does not take, though every byte of them is as a program wrote it: with
//! other types than the table's, or when its fold took more than it does now. Nothing of them is
//! lost, and no repair makes them fit.
//!
//! Called by `verify`.

use std::collections::BTreeMap;

use crate::maintenance::finding::Finding;

/// So many keys of a file are named.
const KEYS_SHOWN: usize = 20;

/// Such values, by the file that holds them and the table.
#[derive(Default)]
pub(crate) struct Unfit {
    by_place: BTreeMap<(String, String), Values>,
}

/// Those of one table in one file.
struct Values {
    /// The place of the first of them, and why it does not fit.
    offset: Option<u64>,
    first: String,
    count: u64,
    /// The keys of the first of them.
    keys: Vec<String>,
    has_more_keys: bool,
}

impl Unfit {
    /// Takes note of the value of a key, which is given as people read it.
    pub(crate) fn add(&mut self, file: &str, offset: Option<u64>, (table, key): (&str, String), why: String) {
        let place = (file.to_owned(), table.to_owned());
        let new = || Values { offset, first: why, count: 0, keys: Vec::new(), has_more_keys: false };
        let values = self.by_place.entry(place).or_insert_with(new);
        values.count += 1;
        if values.keys.contains(&key) {
            return;
        }
        match values.keys.len() < KEYS_SHOWN {
            true => values.keys.push(key),
            false => values.has_more_keys = true,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.by_place.is_empty()
    }

    /// A finding for each table and file.
    pub(crate) fn findings(self) -> impl Iterator<Item = Finding> {
        self.by_place.into_iter().map(|((file, table), values)| {
            let Values { offset, first, count, keys, has_more_keys } = values;
            let (s, these) = if count == 1 { ("", "it") } else { ("s", "them") };
            let (of, more) = (if keys.len() == 1 { "key" } else { "keys" }, if has_more_keys { ", …" } else { "" });
            let keys = keys.join(", ");
            let what = format!(
                "{count} value{s} that table `{table}` does not take, of {of} {keys}{more}: {first}; the checksum is right, so a \
                 program wrote {these} so, and the disk did not damage {these}"
            );
            Finding::unfit(file, offset, what)
        })
    }
}
