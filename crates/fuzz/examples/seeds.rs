//! Writes the seeds among the kept inputs: what the real encoders make today. The others are left
//! alone.
//!
//! `cargo run -p folddb-fuzz --release --example seeds`

use std::io;

use folddb_fuzz::{corpus, targets};

fn main() -> io::Result<()> {
    let (mut files, mut bytes) = (0, 0);
    for target in targets::all() {
        for (path, _) in corpus::load(&target)? {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            if name.starts_with("seed-") {
                std::fs::remove_file(&path)?;
            }
        }
        for (number, seed) in (target.seeds)().into_iter().enumerate() {
            corpus::save(&corpus::folder(&target).join(format!("seed-{number:02}")), &seed)?;
            (files, bytes) = (files + 1, bytes + seed.len());
        }
    }
    println!("{files} seeds, {bytes} bytes");
    Ok(())
}
