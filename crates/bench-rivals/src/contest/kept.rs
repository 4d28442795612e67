//! The figures of each finished run, in a file of its own until the contest is over: so a contest
//! that was stopped can continue, by `--resume`. Called by the contest before and after each run.

use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// The kept runs of a contest that may have begun before.
pub(super) struct Kept {
    dir: PathBuf,
    /// Runs with other settings do not belong to this contest.
    settings: Value,
}

impl Kept {
    /// Opens what an earlier contest has left, if it is to be resumed; otherwise that is removed.
    pub(super) fn open(dir: PathBuf, settings: Value, resume: bool) -> Result<Kept> {
        if !resume && dir.exists() {
            std::fs::remove_dir_all(&dir).with_context(|| format!("remove {}", dir.display()))?;
        }
        std::fs::create_dir_all(&dir).with_context(|| format!("create {}", dir.display()))?;
        Ok(Kept { dir, settings })
    }

    /// The figures of a finished run. A file that is not whole counts as none.
    pub(super) fn get(&self, round: usize, rival: &str) -> Option<Value> {
        let text = std::fs::read_to_string(self.path(round, rival)).ok()?;
        let mut kept: Value = serde_json::from_str(&text).ok()?;
        (kept["contest"] == self.settings).then(|| kept["run"].take())
    }

    pub(super) fn put(&self, round: usize, rival: &str, figures: &Value) -> Result<()> {
        let path = self.path(round, rival);
        let text = json!({ "contest": self.settings, "run": figures }).to_string();
        std::fs::write(&path, text).with_context(|| format!("write {}", path.display()))
    }

    /// Removes all files: the results contain the figures.
    pub(super) fn forget(self) -> Result<()> {
        std::fs::remove_dir_all(&self.dir).with_context(|| format!("remove {}", self.dir.display()))
    }

    fn path(&self, round: usize, rival: &str) -> PathBuf {
        self.dir.join(format!("{}-{rival}.json", round + 1))
    }
}

#[cfg(test)]
#[path = "kept/tests.rs"]
mod tests;
