//! The command line of the search: `cargo run -p folddb-fuzz --release -- --help`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::Parser;
use folddb_fuzz::run::{self, Failure, Limit, STACK_BYTES};
use folddb_fuzz::{Target, corpus, targets};

/// Feeds every decoder of FoldDB with bytes from anywhere, and looks for what does not hold.
#[derive(Parser)]
#[command(name = "folddb-fuzz")]
struct Arguments {
    /// Only this target, or those whose names begin so; `--list` names all.
    #[arg(long, value_name = "NAME")]
    target: Vec<String>,
    /// Minutes for all targets together.
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    minutes: f64,
    /// Inputs for each target, instead of minutes.
    #[arg(long, value_name = "N")]
    runs: Option<u64>,
    /// The search follows from this number.
    #[arg(long, value_name = "S", default_value_t = 1)]
    seed: u64,
    /// Runs an input again, and prints the panic with its backtrace. The target is the name of its
    /// folder, or --target.
    #[arg(long, value_name = "FILE")]
    replay: Option<PathBuf>,
    /// Makes the checksums of the input right before it is replayed.
    #[arg(long, requires = "replay")]
    seal: bool,
    /// Prints the names of the targets.
    #[arg(long)]
    list: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let work = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(move || run_with(&arguments));
    let outcome = work.map_err(|error| error.to_string()).and_then(|thread| match thread.join() {
        Ok(outcome) => outcome,
        Err(_) => Err("the input fails".to_owned()),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::FAILURE
        }
    }
}

fn run_with(arguments: &Arguments) -> Result<(), String> {
    if arguments.list {
        targets::all().iter().for_each(|target| println!("{}", target.name));
        return Ok(());
    }
    if let Some(path) = &arguments.replay {
        return replay(path, arguments);
    }
    let chosen = chosen(&arguments.target)?;
    let share = Duration::from_secs_f64(arguments.minutes.clamp(0.0, 1e6) * 60.0 / chosen.len() as f64);
    for target in &chosen {
        search(target, arguments, share)?;
    }
    Ok(())
}

fn chosen(names: &[String]) -> Result<Vec<Target>, String> {
    let is_meant = |target: &Target, name: &String| match targets::named(name) {
        Some(exact) => exact.name == target.name,
        None => target.name.starts_with(name),
    };
    let wanted = |target: &Target| names.is_empty() || names.iter().any(|name| is_meant(target, name));
    let chosen: Vec<Target> = targets::all().into_iter().filter(wanted).collect();
    if chosen.is_empty() { Err("there is no such target; --list names all".to_owned()) } else { Ok(chosen) }
}

fn replay(path: &Path, arguments: &Arguments) -> Result<(), String> {
    let folder = path.parent().and_then(Path::file_name).map(|name| name.to_string_lossy().into_owned());
    let name = arguments.target.first().cloned().or(folder).unwrap_or_default();
    let target = targets::named(&name).ok_or_else(|| format!("`{name}` is no target: say --target"))?;
    let mut input = std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    if arguments.seal {
        (target.seal)(&mut input);
    }
    (target.run)(&input); // a panic shows itself, with its backtrace
    run::try_input(&target, &input)?;
    println!("{name} holds for {}", path.display());
    Ok(())
}

fn search(target: &Target, arguments: &Arguments, share: Duration) -> Result<(), String> {
    let kept = kept_inputs(target)?;
    run::replay(target, &kept).map_err(|failure| report(&failure))?;
    let limit = match arguments.runs {
        Some(runs_max) => Limit { runs_max, deadline: None },
        None => Limit { runs_max: u64::MAX, deadline: Some(Instant::now() + share) },
    };
    let begun = Instant::now();
    let done = run::search(target, &kept, arguments.seed, limit).map_err(|failure| report(&failure))?;
    println!(
        "{:<22} {:>9} inputs from {:>3} kept, {:>7.0}/s, slowest {:?} for {} bytes",
        target.name,
        done.runs,
        kept.len(),
        done.runs as f64 / begun.elapsed().as_secs_f64().max(1e-9),
        done.slowest,
        done.slowest_bytes
    );
    Ok(())
}

/// What is in the corpus, or the seeds where nothing is.
fn kept_inputs(target: &Target) -> Result<Vec<Vec<u8>>, String> {
    let kept = corpus::load(target).map_err(|error| format!("the corpus of {}: {error}", target.name))?;
    if kept.is_empty() {
        Ok((target.seeds)())
    } else {
        Ok(kept.into_iter().map(|(_, input)| input).collect())
    }
}

/// Saves an input that failed, and says how to run it again.
fn report(failure: &Failure) -> String {
    let path = corpus::failing_path(&failure.target, &failure.input);
    let replay = match corpus::save(&path, &failure.input) {
        Ok(()) => format!("cargo run -p folddb-fuzz --release -- --replay {}", path.display()),
        Err(error) => format!("(it could not be saved to {}: {error})", path.display()),
    };
    format!(
        "{} fails on an input of {} bytes: {}\n{}",
        failure.target.name,
        failure.input.len(),
        failure.what,
        replay
    )
}
