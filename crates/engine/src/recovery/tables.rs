//! The tables of a store that is being opened: every listed part is opened and checked, and so are
//! the files of hash indexes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::{Error, FileNumber, Result, TableId, error};
use folddb_host::Files;
use folddb_layout::file_name::FileName;
use folddb_manifest::{State, TableState};
use folddb_rules::table_rules::{StoredRules, TableKind, TableRules};
use folddb_run::{Part, Shared};

use crate::options::Options;
use crate::state::catalog::TableCore;
use crate::state::hash_files::open_saved;
use crate::state::hash_index::{Hashed, new_salt};
use crate::state::range_deletes::RangeDeletes;
use crate::state::view::{PartFile, PartFiles, TableView, runs_of};

pub(crate) fn open_table(
    dir: &Path,
    options: &Options,
    host_files: &Arc<dyn Files>,
    (id, state): (TableId, &TableState),
    store: &State,
    shared: &Arc<Shared>,
) -> Result<Arc<TableCore>> {
    let in_table = |error: Error| error.context(format!("table `{}`", state.name));
    let rules = TableRules::from_stored(&state.rules_text).map_err(in_table)?;
    let rules = rules.bind(&options.custom).map_err(in_table)?;
    let mut files = PartFiles::new();
    for part in state.runs.iter().flat_map(|run| &run.parts) {
        let path: PathBuf = dir.join(FileName::Part(part.file).to_string());
        let is_gone = host_files.len_bytes(&path).is_err_and(|e| e.kind() == std::io::ErrorKind::NotFound);
        if is_gone {
            return Err(in_table(error::missing(&path, "the manifest lists it")));
        }
        let opened = Part::open(host_files, &path, part.file, &rules.order, shared).map_err(in_table)?;
        opened.check_listed(part).map_err(in_table)?;
        if let Some(used) =
            opened.facts().values.iter().find(|used| !store.has_values(FileNumber(u64::from(used.segment))))
        {
            let what =
                format!("it points to value segment {}, which the manifest does not list", used.segment);
            return Err(in_table(error::corrupt(&path, 0, what)));
        }
        files.insert(part.file, PartFile::new(opened, part.file, path, Arc::clone(host_files)));
    }
    let range_deletes = RangeDeletes::of(&rules.order, state.range_deletes.values().cloned());
    let runs = Arc::new(runs_of(state, &files, &rules.order));
    let view =
        |active| TableView { active, sealed: Vec::new(), runs, range_deletes: Arc::new(range_deletes) };
    let hashed = match rules.rules.kind {
        TableKind::Hashed => {
            Some(open_index(dir, options, host_files, (store.store_id, id), state).map_err(in_table)?)
        }
        _ => None,
    };
    let table = TableCore::new(id, &state.name, rules, hashed, view);
    table.note_altered(state.outdated_before, state.kept_since);
    Ok(Arc::new(table))
}

/// The index of a hashed table: reads the directory of its checkpoint, if it has one, and the
/// changes after it.
fn open_index(
    dir: &Path,
    options: &Options,
    files: &Arc<dyn Files>,
    (store_id, id): (u128, TableId),
    state: &TableState,
) -> Result<Hashed> {
    let (hashed, changes) = match open_saved(files, dir, state)? {
        Some((file, changes)) => (Hashed::open((file, &changes), state, options.index())?, changes),
        None => (Hashed::new(new_salt(store_id, id), options.index()), Vec::new()),
    };
    if !options.read_only {
        hashed.begin_replay(changes);
    }
    Ok(hashed)
}
