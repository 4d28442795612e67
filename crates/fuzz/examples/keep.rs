//! Keeps what a search led by coverage found: copies some inputs of a folder into the corpus, short
//! ones and longer ones.
//!
//! `cargo run -p folddb-fuzz --release --example keep -- FOUND [COUNT]`, where FOUND holds a folder
//! for each target, with inputs that libFuzzer has merged to those that reach something of their
//! own. COUNT is the most that a target may keep of them, 16 by default; none is longer than 512
//! bytes.

use std::error::Error;
use std::path::Path;

use folddb_base::checksum::hash64;
use folddb_fuzz::{Target, corpus, run, targets};

const KEPT_MAX: usize = 16;
const INPUT_BYTES_MAX: usize = 512;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let found = arguments.next().ok_or("name the folder of what was found")?;
    let kept_max = arguments.next().map_or(Ok(KEPT_MAX), |count| count.parse())?;
    for target in targets::all() {
        let folder = Path::new(&found).join(target.name);
        if folder.is_dir() {
            let kept = keep(&target, &folder, kept_max)?;
            println!("{:<22} {kept} inputs kept", target.name);
        }
    }
    Ok(())
}

/// Copies inputs that hold, evenly from the shortest to the longest.
fn keep(target: &Target, folder: &Path, kept_max: usize) -> Result<usize, Box<dyn Error>> {
    let mut inputs = Vec::new();
    for entry in std::fs::read_dir(folder)? {
        inputs.push(std::fs::read(entry?.path())?);
    }
    inputs.retain(|input| input.len() <= INPUT_BYTES_MAX);
    inputs.sort_by_key(|input| (input.len(), hash64(0, input)));
    let step = inputs.len().div_ceil(kept_max.max(1)).max(1);
    let mut kept = 0;
    for input in inputs.iter().rev().step_by(step) {
        run::try_input(target, input)?;
        corpus::save(&corpus::folder(target).join(format!("{:016x}", hash64(0, input))), input)?;
        kept += 1;
    }
    Ok(kept)
}
