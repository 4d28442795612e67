//! Runs one bench without the command line: `cargo run --release -p folddb-bench --example bench --
//! hugedb 0.1 [batch [memory_mb [merge_threads [seconds [merge_factor]]]]] [inserts] [alone]
//! [hashed]`; 0 is the default. With `inserts` rows of `hugedb` are put where there is none, with
//! `alone` nothing reads while `osmos` writes, with `hashed` the table of `elliptics` is hashed.

use std::process::ExitCode;

use folddb::table_rules::TableKind;

fn main() -> ExitCode {
    let (words, numbers): (Vec<String>, Vec<String>) =
        std::env::args().skip(1).partition(|word| ["inserts", "alone", "hashed"].contains(&word.as_str()));
    let is_chosen = |word: &str| words.iter().any(|chosen| chosen == word);
    let mut arguments = numbers.into_iter();
    let name = arguments.next().unwrap_or_else(|| "hugedb".to_owned());
    let scale = arguments.next().and_then(|scale| scale.parse().ok()).unwrap_or(0.01);
    let mut number = || arguments.next().and_then(|number| number.parse().ok()).filter(|number| *number > 0);
    let batch = number();
    let memory_bytes = number().map(|memory_mb| memory_mb << 20);
    let merge_threads = number().unwrap_or(1);
    let seconds = number().map(|seconds| seconds as f64);
    let options = folddb_bench::BenchOptions {
        scale,
        batch,
        memory_bytes,
        merge_threads,
        seconds,
        merge_factor: number(),
        inserts: is_chosen("inserts"),
        kind: if is_chosen("hashed") { TableKind::Hashed } else { TableKind::Sorted },
        reader: !is_chosen("alone"),
        ..Default::default()
    };
    let progress = &mut |at: folddb_bench::Progress| eprintln!("{} {}/{}", at.phase, at.done, at.total);
    match folddb_bench::run(&name, &options, progress) {
        Ok(report) => {
            println!("{report}");
            if report.verified() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("{error}");
            ExitCode::FAILURE
        }
    }
}
