//! `ydb`: documents that grow by small appends, as in YDB's benchmark of two million items. Once as
//! blind appends, which a store with folds supports, and once (`ydb-rmw`) as a program without
//! folds would do it: every update reads the document and puts the longer one.

use anyhow::Result;
use folddb_bench::check::RowSum;
use folddb_bench::generate::{Appends, Chance, USER_KEY_BYTES, UserKey, mix};
use folddb_bench::measure::Phase;

use super::child::Child;
use super::commits::Commits;
use super::load::{Loaded, Source};
use super::reads::Questions;
use crate::rival::{Meaning, Op, Rival, Sight};

pub(super) fn run(child: &mut Child<'_>) -> Result<()> {
    let (job, keys) = (child.job, child.job.key_count());
    child.put("keys", keys);
    child.open(Meaning::Append)?;
    let mut updates = Updates::new(Appends::new(job.seed, keys));
    child.load(&mut updates)?;
    child.settle(updates.bytes)?;
    let documents = Documents::written(Appends::new(job.seed, keys), job.rows, keys);
    child.read_all(&documents, documents.sum(), &mut updates)
}

pub(super) fn run_read_modify_write(child: &mut Child<'_>) -> Result<()> {
    let (job, keys) = (child.job, child.job.key_count());
    child.put("keys", keys);
    child.open(Meaning::Objects)?;
    let (loaded, bytes) = read_modify_write(child.store()?, Appends::new(job.seed, keys), job.rows)?;
    child.put_load(loaded);
    child.settle(bytes)?;
    let documents = Documents::written(Appends::new(job.seed, keys), job.rows, keys);
    child.read_still(&documents, documents.sum())
}

/// The figures, and the bytes of keys and values that were put.
fn read_modify_write(store: &dyn Rival, mut appends: Appends, rows: u64) -> Result<(Loaded, u64)> {
    let (mut reader, mut writer) = (store.reader(Sight::Fresh)?, store.writer()?);
    let (mut phase, mut commits) = (Phase::start(rows), Commits::start());
    let (mut value, mut bytes) = (Vec::new(), 0);
    for done in 1..=rows {
        let (document, operand) = appends.next();
        let key = UserKey::new(document);
        value.clear();
        reader.get(key.text().as_bytes(), &mut |found| value.extend_from_slice(found.unwrap_or_default()))?;
        value.extend_from_slice(operand);
        writer.apply(Op::Put { key: key.text().as_bytes(), value: &value })?;
        bytes += (USER_KEY_BYTES + value.len()) as u64;
        let now = commits.note(1);
        phase.reached(done, now);
    }
    Ok((Loaded::new(phase, commits), bytes))
}

/// Appends as folds.
struct Updates {
    appends: Appends,
    key: [u8; USER_KEY_BYTES],
    /// Bytes of keys and operands up to now.
    bytes: u64,
}

impl Updates {
    fn new(appends: Appends) -> Updates {
        Updates { appends, key: [0; USER_KEY_BYTES], bytes: 0 }
    }
}

impl Source for Updates {
    #[inline]
    fn next(&mut self) -> Op<'_> {
        let (document, operand) = self.appends.next();
        self.key.copy_from_slice(UserKey::new(document).text().as_bytes());
        self.bytes += (USER_KEY_BYTES + operand.len()) as u64;
        Op::Fold { key: &self.key, operand }
    }
}

/// What each document must be; empty if nothing was appended, since then it does not exist.
struct Documents(Vec<Vec<u8>>);

impl Documents {
    /// From the generator alone.
    fn written(mut appends: Appends, updates: u64, documents: u64) -> Documents {
        let mut values = vec![Vec::new(); documents as usize];
        for _ in 0..updates {
            let (document, operand) = appends.next();
            values[document as usize].extend_from_slice(operand);
        }
        Documents(values)
    }

    fn sum(&self) -> RowSum {
        let mut sum = RowSum::default();
        let written = self.0.iter().enumerate().filter(|(_, value)| !value.is_empty());
        written.for_each(|(number, value)| sum.add(number as u64, digest(value)));
        sum
    }
}

impl Questions for Documents {
    fn hit(&self, chance: &mut Chance, key: &mut Vec<u8>, value: &mut Vec<u8>) {
        let start = chance.below(self.0.len() as u64) as usize;
        let mut around = (start..self.0.len()).chain(0..start);
        let number = around.find(|&number| !self.0[number].is_empty()).unwrap_or(0);
        key.clear();
        key.extend_from_slice(UserKey::new(number as u64).text().as_bytes());
        value.clone_from(&self.0[number]);
    }

    fn miss(&self, chance: &mut Chance, key: &mut Vec<u8>) {
        let documents = self.0.len() as u64;
        key.clear();
        key.extend_from_slice(UserKey::new(documents + chance.below(documents)).text().as_bytes());
    }

    fn may_become(&self, was: &[u8], found: &[u8]) -> bool {
        found.starts_with(was)
    }

    fn numbers(&self, key: &[u8], value: &[u8]) -> Option<(u64, u64)> {
        Some((UserKey::parse(std::str::from_utf8(key).ok()?)?, digest(value)))
    }
}

/// A number that distinguishes a value from others, also from the same bytes in another order.
fn digest(value: &[u8]) -> u64 {
    value.iter().fold(value.len() as u64, |digest, byte| mix(digest ^ u64::from(*byte)))
}
