//! Checks that the indexes of a store match their tables: for each term of every record the entry
//! is looked up; other entries in the index are stale, which is not an error.
//!
//! Called by `verify`, for an otherwise intact store, and by `Store::check_index`.

use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Result};
use folddb_rules::Terms;
use folddb_rules::term_law::{TermsBroken, TermsDoubt, check_terms};
use folddb_rules::terms::{put_entry, show_term};

use crate::index::build;
use crate::maintenance::finding::Finding;
use crate::maintenance::survey::in_words;
use crate::snapshot::Snapshot;
use crate::store::Store;
use folddb_engine::options::{OpenMode, Options};
use folddb_engine::read::get;
use folddb_engine::read::scan::{Rows, ScanPlan, Wanted};
use folddb_engine::read::terms::{Taken, take_terms};
use folddb_engine::state::catalog::{IndexCore, TableCore};
use folddb_engine::state::snapshots::HeldFor;
use folddb_engine::write::index_entries::not_at_hand;

/// The result of checking an index.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct IndexCheck {
    /// Keys of the table.
    pub keys: u64,
    /// Entries of the index.
    pub entries: u64,
    /// Terms of records that have no entry: queries for them miss these records.
    pub missing: u64,
    /// The first of these: the term, and the key of the record.
    pub first_missing: Option<(String, String)>,
    /// Entries whose records no longer have their terms. They cost space and time until a merge
    /// cleans them.
    pub stale: u64,
}

impl Store {
    /// Compares the present index with its table: reads all of the table.
    ///
    /// # Errors
    /// [`ErrorKind::TableNotFound`]; [`ErrorKind::InvalidInput`] if the table has no such index, or
    /// it is being built; a failed read.
    pub fn check_index(&self, table: &str, index: &str) -> Result<IndexCheck> {
        let table = self.bytes_table(table)?;
        let index = build::index_of(table.core(), index)?;
        if !index.is_built() {
            return Err(Error::invalid(format!("index `{}` is being built", index.table.name)));
        }
        check(self, table.core(), &index)
    }
}

fn check(store: &Store, table: &Arc<TableCore>, index: &IndexCore) -> Result<IndexCheck> {
    let engine = store.engine();
    let extractor = index.extractor.as_ref().map_err(|why| not_at_hand(table, index, why))?;
    let past = Snapshot::take(engine, HeldFor::Work);
    let at = Some(past.seen());
    let wanted = match (extractor.is_of_key(), extractor.is_of_head()) {
        (true, _) => Wanted::Nothing,
        (_, true) => Wanted::Head,
        _ => Wanted::Short,
    };
    let mut rows = Rows::start(engine, table, ScanPlan { wanted, ..ScanPlan::everything(at) })?;
    let (mut found, mut terms, mut entry) = (IndexCheck::default(), Terms::default(), Vec::new());
    let mut living = 0;
    loop {
        match rows.next_row() {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) if error.kind() == ErrorKind::FoldFailed => continue,
            Err(error) => return Err(error),
        }
        found.keys += 1;
        let head = rows.take_head();
        let (key, value) = rows.row();
        let taken = head.as_ref().map_or(Taken::Value(value), |head| Taken::Head(&head.bytes));
        terms.clear();
        take_terms(extractor, table, key, taken, &mut terms);
        for term in terms.iter() {
            entry.clear();
            put_entry(&mut entry, term, key);
            if get::contains(engine, &index.table, &entry, at)? {
                living += 1;
                continue;
            }
            found.missing += 1;
            let key = || table.rules.rules.key_codec().show_line(key);
            found.first_missing.get_or_insert_with(|| (show_term(term).to_string(), key()));
        }
    }
    let plan = ScanPlan { wanted: Wanted::Nothing, ..ScanPlan::everything(at) };
    let mut entries = Rows::start(engine, &index.table, plan)?;
    while entries.next_row()?.is_some() {
        found.entries += 1;
    }
    found.stale = found.entries.saturating_sub(living);
    Ok(found)
}

/// The problems of the indexes of an otherwise intact store.
pub(crate) fn findings(dir: &std::path::Path, options: &Options, manifest: &str) -> Vec<Finding> {
    let store = match Store::open_as(dir, options.clone(), OpenMode::ReadOnly) {
        Ok(store) => store,
        Err(error) => {
            let what = format!("the indexes are not compared with their tables: {}", in_words(&error));
            return vec![Finding::note(manifest, what)];
        }
    };
    let mut findings = Vec::new();
    for table in store.engine().catalog().own() {
        for index in table.indexes().iter() {
            findings.extend(finding(&store, table, index, manifest));
        }
    }
    findings
}

fn finding(store: &Store, table: &Arc<TableCore>, index: &IndexCore, manifest: &str) -> Option<Finding> {
    let (name, of) = (&index.name, &table.name);
    if !index.is_built() {
        let what =
            format!("index `{name}` of table `{of}` is being built: adding it again continues the build");
        return Some(Finding::note(manifest, what));
    }
    let check = match check(store, table, index) {
        Ok(check) => check,
        Err(error) => {
            let what =
                format!("index `{name}` of table `{of}` is not compared with it: {}", in_words(&error));
            return Some(Finding::note(manifest, what));
        }
    };
    let (term, key) = check.first_missing?;
    if let Some(case) = law_broken(store, table, index) {
        let what = format!(
            "index `{name}` of table `{of}` does not find everything, first term {term} of key {key}: its entries are as they were written, \
             but {case}: drop the index"
        );
        return Some(Finding::note(manifest, what));
    }
    let what = format!(
        "index `{name}` of table `{of}` lacks {} of its entries, first the one of term {term} of key {key}: \
         drop the index and add it again, or repair",
        check.missing
    );
    Some(Finding::damage(manifest, None, what))
}

/// Why an index lacks entries without damage: its rule breaks the law of terms. Earlier versions
/// accepted such rules.
fn law_broken(store: &Store, table: &Arc<TableCore>, index: &IndexCore) -> Option<TermsBroken> {
    let samples = build::sample(store.engine(), table).ok()?;
    let extractor = index.extractor.as_ref().ok()?;
    match check_terms(&table.rules, extractor, &samples) {
        Err(TermsDoubt::Broken(case)) => Some(case),
        Ok(()) | Err(TermsDoubt::NotTried) => None,
    }
}
