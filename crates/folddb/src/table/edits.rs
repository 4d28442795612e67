//! Creating and dropping tables: the edits of the manifest.

use std::sync::Arc;

use folddb_base::ids::RunId;
use folddb_base::{Error, ErrorKind, Result, Seq, TableId};
use folddb_host::sync::atomic::Ordering;
use folddb_layout::manifest_edit::{Change, IndexBuild};
use folddb_merge::tier_of;
use folddb_rules::table_rules::{BoundRules, Custom, StoredRules, TableKind, TableRules};
use folddb_run::PartFacts;

use folddb_engine::background::merge;
use folddb_engine::background::state::Background;
use folddb_engine::edit::indexes::{NewIndexes, check_rule};
use folddb_engine::edit::install::{Installed, part_state};
use folddb_engine::edit::log_archive::log_feed;
use folddb_engine::edit::{feeds, install, log_archive, old_snapshots};
use folddb_engine::state::catalog::TableCore;
use folddb_engine::state::committer::Active;
use folddb_engine::state::engine::Engine;
use folddb_engine::state::hash_index::{Hashed, new_salt};
use folddb_engine::state::view::{PartFile, TableView};
use folddb_engine::state::{catalog, clock};

/// The initial content of a table: a run, with the seq of all of it.
#[derive(Default)]
pub(crate) struct Content {
    pub(crate) parts: Vec<(Arc<PartFile>, PartFacts)>,
    pub(crate) seq: Seq,
}

impl Content {
    /// Discards it: the table was not created.
    pub(crate) fn discard(&self) {
        self.parts.iter().for_each(|(part, _)| part.retire());
    }

    fn changes(&self, engine: &Engine, table: TableId) -> Vec<Change> {
        if self.parts.is_empty() {
            return Vec::new();
        }
        let run = RunId(engine.numbers.take().0);
        let bytes = self.parts.iter().map(|(_, facts)| facts.file_bytes).sum();
        let options = &engine.options;
        let tier = tier_of(bytes, options.memtable_bytes() as u64, options.merge_factor as u64);
        let add_part = |(part, facts): &(Arc<PartFile>, PartFacts)| Change::AddPart {
            table,
            run,
            tier,
            age: self.seq,
            part: part_state(part.number, facts),
        };
        let mut changes: Vec<Change> = self.parts.iter().map(add_part).collect();
        changes.push(Change::Flushed { table, seq: self.seq });
        changes
    }
}

/// Checks whether a table of this name with these rules is possible; returns them with their
/// functions.
pub(crate) fn check_rules(name: &str, rules: &TableRules, custom: &Custom) -> Result<BoundRules> {
    catalog::check_name(name)?;
    let in_table = |error: Error| error.context(format!("table `{name}`"));
    rules.validate(custom).map_err(in_table)?;
    rules.bind(custom).map_err(in_table)
}

/// Creates a table with this content, by one edit. A table with indexes must have none.
pub(crate) fn make(
    engine: &Arc<Engine>,
    name: &str,
    mut bound: BoundRules,
    content: Content,
) -> Result<Arc<TableCore>> {
    let discard = || content.discard();
    let indexes = std::mem::take(&mut bound.rules.indexes);
    let check = |rule| check_rule((name, &bound, &[]), rule, &engine.options.custom);
    indexes.iter().try_for_each(check).inspect_err(|_| discard())?;
    let mut manifest = engine.manifest.lock();
    if engine.catalog().by_name(name).is_some() {
        discard();
        let message = format!("the store has a table `{name}` already");
        return Err(Error::new(ErrorKind::AlreadyExists, message));
    }
    engine.check_open().and_then(|()| engine.health.check_writable(false)).inspect_err(|_| discard())?;
    let id = TableId(manifest.state().next_table_id);
    let catalog = engine.catalog();
    let with = (&*catalog, &engine.options.custom);
    let new = NewIndexes::prepare(name, &indexes, IndexBuild::default(), id.0 + 1, with)?;
    let rules_text = bound.rules.to_string();
    let mut changes = vec![Change::CreateTable { table: id, name: name.to_owned(), rules_text }];
    changes.extend(content.changes(engine, id));
    if bound.rules.archives_log {
        changes.push(log_archive::archive_log(engine, manifest.state(), name).inspect_err(|_| discard())?);
    }
    if !content.parts.is_empty() {
        feeds::check_no_feed_of(manifest.state(), name).inspect_err(|_| discard())?;
        changes.extend(clock::times_change(engine, manifest.state())); // readers of the past need it
    }
    let note = feeds::note_of_table(engine, manifest.state(), (id, name, bound.rules.to_string()), false);
    changes.extend(note.inspect_err(|_| discard())?);
    changes.extend(new.changes.iter().cloned());
    feeds::edit_tables(engine, &mut manifest, &changes).inspect_err(|error| {
        if error.kind() == ErrorKind::NoSpace {
            discard(); // the edit has certainly not taken place
        }
    })?;
    let hashed = (bound.rules.kind == TableKind::Hashed)
        .then(|| Hashed::new(new_salt(manifest.state().store_id, id), engine.options.index()));
    let core = Arc::new(TableCore::new(id, name, bound, hashed, TableView::of));
    core.active_since_ms.store(if core.is_timed { clock::now_ms(engine) } else { 0 }, Ordering::Release);
    if let Some(state) = manifest.state().tables.get(&id) {
        let parts = content.parts.iter().map(|(part, _)| Arc::clone(part)).collect();
        install::show(engine, &core, state, &Installed { parts, flushed: None });
        old_snapshots::show_to_old_snapshots(engine, &core, content.seq);
    }
    engine.commit.lock().install_active(Active::new(Arc::clone(&core), content.seq));
    new.link(engine, &core);
    engine.change_catalog(|catalog| catalog.insert(Arc::clone(&core)));
    engine.work.changed.lock().insert(id);
    drop(manifest);
    Ok(core)
}

/// Removes a table, its indexes, and everything in them.
pub(crate) fn remove(background: &Background, core: &Arc<TableCore>) -> Result<()> {
    let (engine, name) = (&background.engine, &*core.name);
    let mut manifest = engine.manifest.lock();
    core.check_alive()?;
    engine.health.check_writable(true)?;
    let rules_text = core.present().rules.to_string();
    let note = feeds::note_of_table(engine, manifest.state(), (core.id, name, rules_text), true)?;
    let indexes = core.indexes();
    let gone: Vec<&Arc<TableCore>> =
        std::iter::once(core).chain(indexes.iter().map(|index| &index.table)).collect();
    let dropped = gone.iter().map(|table| Change::DropTable { table: table.id });
    let kept = log_feed(manifest.state(), name).map(|log| Change::DropFeed { name: log.name.clone() });
    let edit: Vec<Change> = dropped.chain(note).chain(kept).collect();
    feeds::edit_tables(engine, &mut manifest, &edit)?;
    {
        let mut committer = engine.commit.lock();
        gone.iter().for_each(|table| engine.retire_active(&mut committer, table));
    }
    engine.change_catalog(|catalog| gone.iter().for_each(|table| catalog.remove(table)));
    drop(manifest);
    gone.iter().for_each(|table| merge::forget_table(background, table));
    feeds::let_go_of_history(engine);
    gone.iter().for_each(|table| merge::note_overdue_of(background, table));
    Ok(())
}
