//! Which indexes a table has: new ones are checked and get a table for their entries; those that
//! the manifest lists are linked to their tables when a store is opened.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::{Error, ErrorKind, Result, TableId};
use folddb_host::sync::RwLock;
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use folddb_layout::manifest_edit::{Change, IndexBuild};
use folddb_manifest::State;
use folddb_rules::table_rules::{BoundRules, Custom, StoredRules, TableKind, TableRules};
use folddb_rules::term_kind::why_no_terms;
use folddb_rules::term_law::{TermsDoubt, check_terms};
use folddb_rules::{Extractor, IndexRule, TermRule, terms};

use crate::state::catalog::{Catalog, IndexCore, TableCore};
use crate::state::committer::Active;
use crate::state::engine::Engine;
use crate::state::view::TableView;

pub(crate) const OTHER_TERMS: &str =
    "use an index of the key, of the head or of a field that replaces, or a table with another fold";

/// Some records of a table.
pub type Samples<'a> = &'a [(Vec<u8>, Vec<u8>)];

// ---- coming and going ---------------------------------------------------------------------------

/// Tables of entries that are being created: the changes that create them, and their state then.
pub struct NewIndexes {
    pub changes: Vec<Change>,
    cores: Vec<Arc<TableCore>>,
    rules: Vec<IndexRule>,
    build: IndexBuild,
}

impl NewIndexes {
    /// The tables of the entries of these indexes of a table, with numbers from `first_id` on. The
    /// rules have been checked.
    pub fn prepare(
        name: &str,
        rules: &[IndexRule],
        build: IndexBuild,
        first_id: u32,
        (catalog, custom): (&Catalog, &Custom),
    ) -> Result<NewIndexes> {
        let mut new = NewIndexes { changes: Vec::new(), cores: Vec::new(), rules: rules.to_vec(), build };
        for (rule, number) in rules.iter().zip(first_id..) {
            let (id, entries) = (TableId(number), entries_name(name, &rule.name));
            let own = TableRules::of_index(rule.clone(), name);
            if catalog.by_name(&entries).is_some() {
                let message = format!(
                    "the store already has a table `{entries}`, which is the name for the entries of the index"
                );
                return Err(Error::new(ErrorKind::AlreadyExists, message));
            }
            crate::state::catalog::check_name(&entries)?;
            let bound = own.bind(custom)?;
            new.changes.push(Change::CreateTable {
                table: id,
                name: entries.clone(),
                rules_text: own.to_string(),
            });
            if new.build != IndexBuild::default() {
                new.changes.push(Change::BuildIndex { table: id, build: new.build.clone() });
            }
            new.cores.push(Arc::new(TableCore::new(id, &entries, bound, None, TableView::of)));
        }
        Ok(new)
    }

    /// Makes them indexes of their table, in addition to existing ones. From here on batches
    /// include their entries.
    pub fn link(&self, engine: &Engine, table: &Arc<TableCore>) -> Vec<Arc<IndexCore>> {
        let custom = &engine.options.custom;
        let index = |(rule, entries)| new_index(rule, &table.rules, entries, self.build.clone(), custom);
        let new: Vec<Arc<IndexCore>> = self.rules.iter().zip(&self.cores).map(index).collect();
        engine.change_catalog(|catalog| self.cores.iter().for_each(|core| catalog.insert(Arc::clone(core))));
        let mut committer = engine.commit.lock();
        self.cores.iter().for_each(|core| committer.install_active(Active::new(Arc::clone(core), 0)));
        if !new.is_empty() {
            table.set_indexes(table.indexes().iter().chain(&new).cloned().collect());
            engine.index_epoch.fetch_add(1, Ordering::AcqRel);
        }
        new
    }
}

// ---- what there is ------------------------------------------------------------------------------

/// The name of the table of an index.
pub(crate) fn entries_name(table: &str, index: &str) -> String {
    format!("{table}/{index}")
}

/// Links the tables of a store that is being opened with their indexes. Returns the first epoch: 0
/// if there are no indexes.
pub(crate) fn link_indexes(catalog: &Catalog, state: &State, custom: &Custom) -> u64 {
    let mut found: BTreeMap<&str, Vec<Arc<IndexCore>>> = BTreeMap::new();
    for entries in catalog.all() {
        let rules = &entries.rules.rules;
        let (Some(of), Some(rule)) = (&rules.index_of, rules.indexes.first()) else { continue };
        let Some(table) = catalog.by_name(of) else { continue };
        let build = state.tables.get(&entries.id).map(|table| table.build.clone()).unwrap_or_default();
        found.entry(of).or_default().push(new_index(rule, &table.rules, entries, build, custom));
    }
    for (name, indexes) in &found {
        catalog.by_name(name).iter().for_each(|table| table.set_indexes(indexes.clone()));
    }
    u64::from(!found.is_empty())
}

pub(crate) fn new_index(
    rule: &IndexRule,
    table: &BoundRules,
    entries: &Arc<TableCore>,
    build: IndexBuild,
    custom: &Custom,
) -> Arc<IndexCore> {
    Arc::new(IndexCore {
        name: rule.name.clone(),
        extractor: extractor(&rule.terms, table, custom),
        table: Arc::clone(entries),
        build: RwLock::new(build),
        is_in_work: AtomicBool::new(false),
        read: AtomicU64::new(0),
        stale: AtomicU64::new(0),
        cleaned_at: AtomicU64::new(0),
    })
}

/// The extractor of a rule, or which function of it is not available.
pub fn extractor(
    rule: &TermRule,
    table: &BoundRules,
    custom: &Custom,
) -> std::result::Result<Extractor, String> {
    let function = match rule {
        TermRule::Custom { name, version } => Some(custom.terms(name, *version)?),
        _ => None,
    };
    Ok(Extractor::new(rule, table, function))
}

/// Checks that a table can have this index. `samples` are records of it, if it has some. Must be
/// called without locks: examining large records takes time.
pub fn check_rule(
    (name, table, samples): (&str, &BoundRules, Samples<'_>),
    rule: &IndexRule,
    custom: &Custom,
) -> Result<()> {
    let wrong = |why: &str| Error::invalid(format!("index `{}` of table `{name}`: {why}", rule.name));
    if table.rules.kind == TableKind::Hashed {
        return Err(wrong("a hashed table has no indexes; use a sorted table for them"));
    }
    if table.rules.index_of.is_some() {
        return Err(wrong("an index has no indexes"));
    }
    if let Some(why) = why_no_terms(&rule.terms, table) {
        return Err(wrong(&format!("`{}` never gives a term: {why}", rule.terms)));
    }
    terms::check_index(rule).map_err(|error| wrong(error.message()))?;
    let extractor = extractor(&rule.terms, table, custom).map_err(|why| wrong(&why))?;
    // A counter-example to the law of terms is searched for among these records and made-up ones.
    check_terms(table, &extractor, samples).map_err(|doubt| match doubt {
        TermsDoubt::Broken(_) => wrong(&doubt.to_string()).advise(OTHER_TERMS),
        TermsDoubt::NotTried => wrong(&doubt.to_string()),
    })
}
