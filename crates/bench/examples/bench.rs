//! Runs one bench without the command line: `cargo run --release -p folddb-bench --example bench --
//! hugedb 0.1 [batch [memory_mb]]`.

use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().unwrap_or_else(|| "hugedb".to_owned());
    let scale = arguments.next().and_then(|scale| scale.parse().ok()).unwrap_or(0.01);
    let batch = arguments.next().and_then(|batch| batch.parse().ok());
    let memory_bytes =
        arguments.next().and_then(|memory_mb| memory_mb.parse().ok()).map(|memory_mb: usize| memory_mb << 20);
    let options = folddb_bench::BenchOptions { scale, batch, memory_bytes, ..Default::default() };
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
