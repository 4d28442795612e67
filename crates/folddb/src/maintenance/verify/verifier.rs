//! A running verification.

use crate::maintenance::progress::Counter;
use std::collections::BTreeSet;
use std::sync::Arc;

use folddb_base::FileNumber;
use folddb_layout::file_name::FileName;
use folddb_run::{Depth, Shared};

use crate::maintenance::survey::Survey;
use crate::maintenance::verify::report::VerifyReport;
use folddb_engine::options::Options;
use folddb_engine::values::at_rest::ValuesAtRest;

pub(crate) struct Verifier<'a> {
    pub(crate) survey: &'a Survey,
    pub(crate) options: &'a Options,
    pub(crate) at_rest: ValuesAtRest<'a>,
    pub(crate) depth: Depth,
    pub(crate) shared: Arc<Shared>,
    pub(crate) report: &'a mut VerifyReport,
    /// The files that tables have claimed.
    pub(crate) seen: BTreeSet<FileNumber>,
    /// Some listed part is missing.
    pub(crate) is_missing_parts: bool,
    pub(crate) counter: Counter<'a>,
}

impl Verifier<'_> {
    pub(crate) fn manifest_name(&self) -> String {
        manifest_name(self.survey)
    }

    pub(crate) fn advance(&mut self, bytes: u64) {
        self.report.checked.bytes += bytes;
        self.counter.add(bytes);
    }
}

pub(crate) fn manifest_name(survey: &Survey) -> String {
    let listing = survey.listing.as_ref();
    listing.map_or_else(|| "MANIFEST".to_owned(), |listing| FileName::Manifest(listing.number).to_string())
}
