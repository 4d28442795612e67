//! The last read state of the manifest that another process writes.

use std::path::Path;
use std::sync::Arc;

use folddb_base::{ErrorKind, FileNumber, Lsn, Result, TableId};
use folddb_host::Host;
use folddb_host::sync::thread;
use folddb_layout::file_name::FileName;
use folddb_manifest::State;
use folddb_rules::table_rules::{StoredRules, TableRules};

use folddb_engine::recovery::replay::replay_from;
use folddb_engine::recovery::secondary::{ATTEMPTS_MAX, PAUSE, may_pass};

/// The last read state of the manifest.
pub(crate) struct SeenManifest {
    pub(crate) state: Arc<State>,
    pub(crate) number: FileNumber,
    pub(crate) edits: u64,
    /// With this length it is unchanged; none if it must be read again in any case.
    pub(crate) len_bytes: Option<u64>,
}

impl SeenManifest {
    /// Reads it; `before` is a file and its earlier length.
    pub(crate) fn read(
        host: &Host,
        dir: &Path,
        before: Option<(FileNumber, Option<u64>)>,
    ) -> Result<SeenManifest> {
        let loaded = folddb_manifest::load(host, dir)?;
        let is_whole = |number: FileNumber| number == loaded.number && loaded.cut_bytes == 0;
        let len_bytes = before.and_then(|(number, len)| len.filter(|_| is_whole(number)));
        let (number, edits, state) = (loaded.number, loaded.edits, Arc::new(loaded.state));
        Ok(SeenManifest { state, number, edits, len_bytes })
    }

    /// The LSN up to which it records the log as durable.
    pub(crate) fn durable_lsn(&self) -> Lsn {
        replay_from(&self.state, self.edits).durable_lsn
    }

    /// The present length of its file; none if it is gone.
    pub(crate) fn length(&self, host: &Host, dir: &Path) -> Option<u64> {
        host.files.len_bytes(&dir.join(FileName::Manifest(self.number).to_string())).ok()
    }
}

/// The name and the rules of a table of the user.
pub(crate) fn living(state: &State, id: TableId) -> Option<(String, String)> {
    let table = state.tables.get(&id)?;
    match TableRules::from_stored(&table.rules_text) {
        Ok(rules) if rules.index_of.is_some() => None,
        Ok(rules) => Some((table.name.clone(), rules.to_string())),
        Err(_) => Some((table.name.clone(), table.rules_text.clone())),
    }
}

/// Does work that the writer may disturb, several times if necessary.
pub(crate) fn again<T>(mut work: impl FnMut() -> Result<T>) -> Result<T> {
    let mut attempt = 1;
    loop {
        match work() {
            Err(error)
                if attempt < ATTEMPTS_MAX
                    && (may_pass(&error) || error.kind() == ErrorKind::StoreNotFound) =>
            {
                thread::sleep(PAUSE * attempt as u32);
                attempt += 1;
            }
            worked => return worked,
        }
    }
}
