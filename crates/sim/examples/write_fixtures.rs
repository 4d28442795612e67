//! Writes stores as this version writes them, to be kept for all later versions to open:
//! `cargo run -p folddb-sim --release --example write_fixtures -- crates/sim/fixtures/v2`.
//!
//! The directory must not be there: what has been released once is never written again.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let Some(dir) = std::env::args_os().nth(1).map(PathBuf::from) else {
        eprintln!("name the directory to write, which must not be there yet");
        return ExitCode::from(2);
    };
    if let Err(error) =
        std::fs::create_dir_all(dir.parent().unwrap_or(&dir)).and_then(|()| std::fs::create_dir(&dir))
    {
        eprintln!("cannot create {}: {error}", dir.display());
        return ExitCode::FAILURE;
    }
    match folddb_sim::fixtures::write_all(&dir) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
