//! Builds the new store: values, tables, indexes, list, log, in this order.

use std::collections::BTreeMap;
use std::sync::Arc;

use folddb_base::{Result, TableId};
use folddb_layout::version::Version;
use folddb_manifest::State;
use folddb_rules::table_rules::BoundRules;

use crate::maintenance::closed_index::is_hashed;
use crate::maintenance::finding::Finding;
use crate::maintenance::manifest_file::write_manifest;
use crate::maintenance::rebuilt::Rebuilt;
use crate::maintenance::repair::repairer::Repairer;
use crate::maintenance::repair::{hashed, log, parts, secondary, values};
use crate::store::Store;
use folddb_engine::options::OpenMode;
use folddb_engine::recovery::format;
use folddb_engine::values::at_rest::ValuesAtRest;

/// Builds it at the draft's place.
pub(crate) fn build(
    repairer: &mut Repairer<'_>,
    state: &State,
    rules: &BTreeMap<TableId, BoundRules>,
    rebuilt: &Rebuilt,
    past_holes: bool,
) -> Result<()> {
    let host = &repairer.options.host;
    let mut next = State {
        store_id: format::new_store_id(repairer.options),
        log_open: false,
        feeds: Arc::default(), // what they would give differs from what was salvaged
        ..state.clone()
    };
    secondary::drop_indexes_not_at_hand(repairer, &mut next, rules);
    values::take_over(repairer, &mut next)?;
    let (placed, options, draft) = (next.clone(), repairer.options, repairer.draft);
    let values = ValuesAtRest::new(&options.host.files, draft, &placed);
    let ids: Vec<TableId> = next.tables.iter().map(|(id, _)| id).collect();
    for id in ids {
        let Some(table) = next.tables.get_mut(&id) else { continue };
        let is_kept = rebuilt.logs.iter().any(|log| log.table == table.name);
        if rules.get(&table.id).is_some_and(|rules| rules.rules.archives_log) && !is_kept {
            let what = "the log that it archived ends here, and what is written from now on is not archived";
            repairer.report.findings.push(Finding::note(table.name.as_str(), what));
        }
        match rules.get(&table.id) {
            rules if secondary::index_of(rules).is_some() => secondary::to_be_built(table),
            Some(rules) => parts::salvage_table(repairer, table, rules, &values)?,
            None => {}
        }
        let flushed_seq = table.flushed_seq;
        next.last_seq = next.last_seq.max(flushed_seq);
    }
    let hashed: Vec<TableId> =
        state.tables.values().filter(|table| is_hashed(table)).map(|table| table.id).collect();
    for &table in &hashed {
        hashed::save_whole(repairer, (state, &placed), table, &mut next, past_holes)?;
    }
    next.log_start_lsn = next.log_start_lsn.max(next.durable_lsn);
    next.durable_lsn = next.log_start_lsn;
    next.log_copied = Some(false); // it has no log at all
    next.next_number = repairer.numbers.peek();
    repairer.report.store_id = next.store_id;
    let version = Version::current(next.store_id);
    write_manifest(host, repairer.draft, next)?;
    format::write_format(&*host.files, repairer.draft, &version)?;
    let store = Store::open_as(repairer.draft, repairer.options.clone(), OpenMode::Primary)?;
    log::rebuild_from_archives(repairer, &store, state, rebuilt)?;
    log::commit_log(repairer, &store, state, past_holes)?;
    secondary::build_indexes(&store)?;
    store.close()
}
