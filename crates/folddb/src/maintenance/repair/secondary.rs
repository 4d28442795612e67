//! Secondary indexes are not salvaged, but rebuilt from the salvaged tables.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use folddb_base::{Result, SharedMap, TableId};
use folddb_manifest::{IndexBuild, State, TableState};
use folddb_rules::table_rules::BoundRules;

use crate::index::build;
use crate::maintenance::finding::Finding;
use crate::maintenance::repair::repairer::Repairer;
use crate::store::Store;
use folddb_engine::edit::indexes::extractor;

/// Leaves out indexes whose table is gone, whose function of terms is not available, or whose build
/// was not finished: the table may have keys that are too long for an index, which could not be
/// written again.
pub(crate) fn drop_indexes_not_at_hand(
    repairer: &mut Repairer<'_>,
    next: &mut State,
    rules: &BTreeMap<TableId, BoundRules>,
) {
    let names: BTreeSet<String> = next.tables.values().map(|table| table.name.clone()).collect();
    let findings = &mut repairer.report.findings;
    let mut is_at_hand = |table: &TableState| {
        let Some((rules, of)) = rules.get(&table.id).and_then(|rules| Some((rules, index_of(Some(rules))?)))
        else {
            return true;
        };
        let taken = match rules.rules.indexes.first().map(|rule| &rule.terms) {
            _ if table.build.building.is_some() => Err("its build was not finished".to_owned()),
            Some(rule) => extractor(rule, rules, &repairer.options.custom).map(drop),
            None => Ok(()),
        };
        if let Err(why) = &taken {
            let what = format!("the index is left out, to be added again: {why}");
            findings.push(Finding::note(table.name.as_str(), what));
        }
        taken.is_ok() && names.contains(of)
    };
    let gone: Vec<TableId> =
        next.tables.values().filter(|table| !is_at_hand(table)).map(|table| table.id).collect();
    gone.iter().for_each(|id| _ = next.tables.remove(id));
}

/// Rebuilds the indexes from the salvaged tables.
pub(crate) fn build_indexes(store: &Store) -> Result<()> {
    for table in store.engine().catalog().own() {
        for index in table.indexes().iter() {
            build::build_index(store.background(), table, index, &mut |_| ControlFlow::Continue(()))?;
        }
    }
    Ok(())
}

/// The table that this is an index of, if it is one.
pub(crate) fn index_of(rules: Option<&BoundRules>) -> Option<&String> {
    rules?.rules.index_of.as_ref()
}

/// Marks an index to be rebuilt instead of salvaged.
pub(crate) fn to_be_built(index: &mut TableState) {
    index.runs.clear();
    index.range_deletes = SharedMap::default();
    index.build = IndexBuild { since: 0, building: Some(Vec::new()) };
}
