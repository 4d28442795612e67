//! What is lost with unreadable values: the records that point to them, reported by ranges of keys.

use std::path::Path;

use folddb_base::{Error, Record, Rope, TableId};
use folddb_rules::codec::KeyCodec;
use folddb_run::KeySpan;

use crate::maintenance::finding::{Finding, Loss, name_in};
use folddb_engine::values::at_rest::ValuesAtRest;

/// Most ranges of lost keys that are reported one by one for a part; the last one includes all
/// further ones.
const STRETCHES_MAX: usize = 64;

// ---- what is lost -------------------------------------------------------------------------------

/// Records of a part whose values are lost: they are left out, like unreadable records.
pub(super) struct LostValues<'a> {
    values: &'a ValuesAtRest<'a>,
    table: TableId,
    /// Where the values are read.
    dir: &'a Path,
    stretches: Vec<Stretch>,
    records: u64,
    /// The previous key, and whether its value is lost.
    before: Option<(Vec<u8>, bool)>,
}

/// Adjacent keys whose lost values should be in one file.
struct Stretch {
    file: String,
    offset: Option<u64>,
    what: String,
    after: Option<Vec<u8>>,
    through: Vec<u8>,
    records: u64,
}

impl<'a> LostValues<'a> {
    pub(super) fn new(values: &'a ValuesAtRest<'a>, table: TableId, dir: &'a Path) -> LostValues<'a> {
        LostValues { values, table, dir, stretches: Vec::new(), records: 0, before: None }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records == 0
    }

    /// How many records there are.
    pub(super) fn records(&self) -> u64 {
        self.records
    }

    /// Whether some of the value of this record is lost. Records come in the order of their keys.
    pub(super) fn is_lost(&mut self, record: &Record<'_>) -> bool {
        let error = match record.kind.is_separated().then(|| Rope::decode(record.payload)) {
            Some(Ok(rope)) => rope
                .pointers()
                .find_map(|pointer| self.values.piece((self.table, record.key), &pointer).err()),
            _ => None,
        };
        if let Some(error) = &error {
            self.note(record.key, error);
        }
        let is_same = self.before.as_ref().is_some_and(|(key, _)| key == record.key);
        let was_lost = is_same && self.before.as_ref().is_some_and(|(_, lost)| *lost);
        self.before = Some((record.key.to_vec(), was_lost || error.is_some()));
        error.is_some()
    }

    pub(crate) fn note(&mut self, key: &[u8], error: &Error) {
        self.records += 1;
        let (file, offset, what) = match error.damage() {
            Some(damage) => (name_in(self.dir, &damage.file), damage.offset, damage.what.clone()),
            None => (String::new(), None, error.message().to_owned()),
        };
        let is_full = self.stretches.len() == STRETCHES_MAX;
        let goes_on = self.before.as_ref().is_some_and(|(_, lost)| *lost);
        match self.stretches.last_mut() {
            Some(last) if is_full || goes_on && last.file == file => {
                last.through = key.to_vec();
                last.records += 1;
            }
            _ => {
                let after = self.before.as_ref().map(|(before, _)| before.clone());
                let after = after.filter(|after| after != key);
                let through = key.to_vec();
                self.stretches.push(Stretch { file, offset, what, after, through, records: 1 });
            }
        }
    }

    /// What is lost, range by range.
    pub(super) fn findings(self, table: &str, codec: &KeyCodec) -> impl Iterator<Item = Finding> {
        self.stretches.into_iter().map(move |stretch| {
            let last = codec.show_line(&stretch.through);
            let what = match stretch.records {
                1 => format!("the value of key {last} of table `{table}` is lost: {}", stretch.what),
                more => format!(
                    "the values of {more} records up to key {last} of table `{table}` are lost: {}",
                    stretch.what
                ),
            };
            let span = KeySpan { after: stretch.after, through: Some(stretch.through), ..KeySpan::default() };
            let loss = Loss { records: Some(stretch.records), ..Loss::of_span(table, codec, &span) };
            Finding::damage(stretch.file, stretch.offset, what).costs(loss)
        })
    }
}
