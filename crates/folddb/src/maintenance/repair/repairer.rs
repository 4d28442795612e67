//! The new store while it is built: its source, its place, and the findings so far.

use crate::maintenance::progress::Counter;
use std::path::Path;
use std::sync::Arc;

use folddb_run::Shared;

use crate::maintenance::repair::report::RepairReport;
use crate::maintenance::survey::Survey;
use folddb_engine::options::Options;
use folddb_engine::state::numbers::Numbers;

// ---- building the new store ---------------------------------------------------------------------

pub(crate) struct Repairer<'a> {
    pub(crate) survey: &'a Survey,
    pub(crate) options: &'a Options,
    pub(crate) draft: &'a Path,
    pub(crate) numbers: Numbers,
    pub(crate) shared: Arc<Shared>,
    pub(crate) report: RepairReport,
    pub(crate) counter: Counter<'a>,
}
