//! Writes stores as this version writes them, to be kept for all later versions to open: `cargo run
//! -p folddb-sim --example write_fixtures -- crates/sim/fixtures/v6`; with names behind it, of
//! `folddb_sim::fixtures::NAMES`, only those. Not with `--release`: there an index is built in
//! fewer steps, and none is left half built.
//!
//! The directory must not exist: fixtures of a release are never written again.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use folddb_sim::fixtures::{NAMES, cut, write};

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let Some(dir) = arguments.next().map(PathBuf::from) else {
        eprintln!("name the directory to write, which must not be there yet");
        return ExitCode::from(2);
    };
    let names: Vec<String> = arguments.collect();
    match write_into(&dir, &names) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("{why}");
            ExitCode::FAILURE
        }
    }
}

fn write_into(dir: &Path, names: &[String]) -> Result<(), String> {
    let cannot = |error: std::io::Error| format!("cannot create {}: {error}", dir.display());
    std::fs::create_dir_all(dir.parent().unwrap_or(dir)).map_err(cannot)?;
    std::fs::create_dir(dir).map_err(cannot)?;
    for name in NAMES.iter().filter(|name| names.is_empty() || names.iter().any(|wanted| wanted == *name)) {
        write(dir, name).map_err(|error| error.to_string())?;
    }
    cut(dir).map_err(cannot)
}
