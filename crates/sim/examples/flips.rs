//! Flips every byte of two small stores, a closed one and one whose process died: all bits of it,
//! and one.
//!
//! ```text
//! cargo run -p folddb-sim --release --example flips [-- --every 7]
//! ```

use std::collections::BTreeMap;
use std::process::ExitCode;

use folddb_sim::flips::{Fixture, Outcome};

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let every = match &words[..] {
        [] => 1,
        [flag, count] if flag == "--every" => count.parse().unwrap_or(1).max(1),
        _ => {
            eprintln!("usage: flips [--every BYTES]");
            return ExitCode::from(2);
        }
    };
    std::panic::set_hook(Box::new(|_| {})); // a panic is an outcome here
    let mut wrong = 0;
    for closed in [true, false] {
        let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
        let fixture = Fixture::new(temp.path(), closed).expect("the store is written");
        println!("{}", if closed { "a closed store" } else { "a store whose process died" });
        for file in fixture.files() {
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            for at in (0..file.bytes.len()).step_by(every) {
                for mask in [0xff, 1 << (at % 8)] {
                    let outcome = fixture.flip(file, at, mask);
                    if let Outcome::Wrong(why) = &outcome {
                        wrong += 1;
                        if wrong <= 20 {
                            println!("  WRONG {} byte {at} ^ {mask:#04x}: {why}", file.name);
                        }
                    }
                    let name = match outcome {
                        Outcome::Refused => "refused".to_owned(),
                        Outcome::Named => "named by verify".to_owned(),
                        Outcome::Unused(what) => format!("unused: {what}"),
                        Outcome::Limit(what) => format!("limit: {what}"),
                        Outcome::Wrong(_) => "WRONG".to_owned(),
                    };
                    *counts.entry(name).or_default() += 1;
                }
            }
            let counts: Vec<String> = counts.iter().map(|(name, count)| format!("{count} {name}")).collect();
            println!("  {:16} {:6} bytes: {}", file.name, file.bytes.len(), counts.join(", "));
        }
    }
    match wrong {
        0 => ExitCode::SUCCESS,
        wrong => {
            println!("{wrong} flips gave wrong data, or were not named");
            ExitCode::FAILURE
        }
    }
}
