//! Creates and opens stores: for the one writer, for readers, or as a secondary.

use std::path::Path;
use std::sync::Arc;

use folddb_base::Result;
use folddb_host::sync::thread;
use folddb_host::{Files, Host};
use folddb_layout::version::Version;
use folddb_manifest::ManifestLog;

use crate::background::state::Background;
use crate::options::Options;
use crate::recovery::secondary::{ATTEMPTS_MAX, Held, PAUSE};
use crate::recovery::{format, primary, secondary};
use crate::state::numbers::Numbers;

/// Creates an empty store in a directory that does not exist yet, or is empty.
pub fn create(dir: &Path, options: &Options) -> Result<()> {
    let files = &*options.host.files;
    format::make_empty_dir(files, dir)?;
    let _lock = format::lock(dir, options)?;
    let numbers = Numbers::starting_at(1);
    let store_id = format::new_store_id(options);
    ManifestLog::create(&options.host, dir, store_id, Arc::new(move || numbers.take()))?;
    format::write_format(files, dir, &Version::current(store_id))
}

/// Opens a store: afterwards everything that was acknowledged is there, and it can be written to.
pub fn open(dir: &Path, options: Options) -> Result<Background> {
    if options.secondary { open_secondary(dir, &options) } else { primary::open_once(dir, options) }
}

/// Opens a store that may be open for writing elsewhere.
pub(crate) fn open_secondary(dir: &Path, options: &Options) -> Result<Background> {
    let beneath = options.underlying.clone().unwrap_or_else(|| options.host.clone());
    let mut attempt = 1;
    loop {
        let held = Arc::new(Held::new(dir, Arc::clone(&beneath.files)));
        let mut options = options.clone();
        options.host = Host { files: Arc::clone(&held) as Arc<dyn Files>, ..beneath.clone() };
        options.underlying = Some(beneath.clone());
        match primary::open_once(dir, options) {
            Ok(background) => {
                held.set_open();
                return Ok(background);
            }
            Err(error) if attempt >= ATTEMPTS_MAX || !secondary::may_pass(&error) => return Err(error),
            Err(_) => thread::sleep(PAUSE * attempt as u32),
        }
        attempt += 1;
    }
}
