//! How many instructions the hot kernels need: a guard against regressions that a noisy machine
//! does not disturb.
//!
//! `.ci/instructions` builds this with fixed settings and runs it. A kernel runs twice under
//! cachegrind, the second time with three times as many operations. The difference, divided by the
//! number of operations, is compared with `expected.toml`. A kernel that needs more than its
//! tolerance allows fails the check. If it needs fewer, that is reported, so that the table can be
//! updated: `--update`.
//!
//! ```text
//! instructions [--update] [KERNEL..]     compares, all kernels or some
//! instructions run KERNEL OPERATIONS     what is counted
//! ```

mod expected;
mod kernels;

use std::process::{Command, ExitCode};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use expected::{Entry, Expected};
use kernels::{KERNELS, Kernel};

/// What can go wrong ends the check, with a sentence.
type Outcome<T> = Result<T, String>;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let done = match &arguments[..] {
        [verb, kernel, operations] if verb == "run" => run(kernel, operations).map(|()| true),
        [first, rest @ ..] if first == "--update" => check(rest, true),
        names => check(names, false),
    };
    match done {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(message) => {
            eprintln!("{message}");
            ExitCode::from(2)
        }
    }
}

fn run(kernel: &str, operations: &str) -> Outcome<()> {
    let kernel = KERNELS.iter().find(|known| known.name == kernel).ok_or("no such kernel")?;
    let operations = operations.parse().map_err(|_| "the number of operations is no number")?;
    (kernel.run)(operations).map_err(|error| error.to_string())
}

/// Measures and compares. False when a kernel needs too many instructions, or is not in the table.
fn check(names: &[String], update: bool) -> Outcome<bool> {
    let wanted = |kernel: &&Kernel| names.is_empty() || names.iter().any(|name| name == kernel.name);
    let chosen: Vec<&Kernel> = KERNELS.iter().filter(wanted).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = KERNELS.iter().map(|kernel| kernel.name).collect();
        return Err(format!("no such kernel: choose from {}", known.join(", ")));
    }
    let mut expected = Expected::read()?;
    let other_compiler = expected.note_on_toolchain();
    let counts = count_all(&chosen)?;
    println!("{:<18} {:>10} {:>10} {:>8}  one operation", "kernel", "expected", "measured", "");
    let mut all_hold = true;
    for (kernel, measured) in chosen.iter().zip(counts) {
        let entry = expected.entry(kernel.name);
        let verdict = entry.map_or(Verdict::Unknown, |entry| verdict(entry, measured));
        all_hold &= update || !matches!(verdict, Verdict::More | Verdict::Unknown);
        println!("{}", line(kernel, entry, measured, verdict));
        if update {
            expected.set(kernel, measured);
        }
    }
    if update {
        expected.write()?;
    } else if let Some(note) = other_compiler {
        println!("{note}: nothing is judged");
        return Ok(true);
    } else if !all_hold {
        println!(
            "If it is worth it, say why in the commit, and take the new counts: .ci/instructions --update"
        );
    }
    Ok(all_hold)
}

/// What a count means.
#[derive(Clone, Copy)]
enum Verdict {
    Holds,
    /// More than the tolerance allows.
    More,
    /// Less than expected by more than the tolerance: the table should follow.
    Less,
    /// Not in the table.
    Unknown,
}

fn verdict(entry: &Entry, measured: f64) -> Verdict {
    let percent = (measured / entry.instructions - 1.0) * 100.0;
    match () {
        () if percent > entry.tolerance_percent => Verdict::More,
        () if percent < -entry.tolerance_percent => Verdict::Less,
        () => Verdict::Holds,
    }
}

fn line(kernel: &Kernel, entry: Option<&Entry>, measured: f64, verdict: Verdict) -> String {
    let expected = entry.map_or("-".to_owned(), |entry| format!("{:.1}", entry.instructions));
    let change = entry
        .map_or(String::new(), |entry| format!("{:+.1} %", (measured / entry.instructions - 1.0) * 100.0));
    let remark = match verdict {
        Verdict::Holds => "",
        Verdict::More => "  TOO MANY",
        Verdict::Less => "  fewer: --update",
        Verdict::Unknown => "  NOT IN THE TABLE: --update",
    };
    format!("{:<18} {expected:>10} {measured:>10.1} {change:>8}  {}{remark}", kernel.name, kernel.what)
}

/// The instructions of an operation of each kernel; two are measured at once.
fn count_all(kernels: &[&Kernel]) -> Outcome<Vec<f64>> {
    let (next, counts) = (AtomicUsize::new(0), Mutex::new(vec![Ok(0.0); kernels.len()]));
    let work = || {
        while let Some(kernel) = kernels.get(next.fetch_add(1, Ordering::Relaxed)) {
            let index = kernels.iter().position(|other| other.name == kernel.name).unwrap_or(0);
            let count = count(kernel);
            if let Ok(mut counts) = counts.lock() {
                counts[index] = count;
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    counts.into_inner().map_err(|_| "a measurement panicked")?.into_iter().collect()
}

fn count(kernel: &Kernel) -> Outcome<f64> {
    let few = instructions(kernel, kernel.operations)?;
    let many = instructions(kernel, 3 * kernel.operations)?;
    Ok((many as f64 - few as f64) / (2 * kernel.operations) as f64)
}

/// Instructions of a whole process that runs a kernel.
fn instructions(kernel: &Kernel, operations: u64) -> Outcome<u64> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(program)
        .args(["run", kernel.name, &operations.to_string()])
        .output()
        .map_err(|error| format!("cannot run valgrind: {error}"))?;
    let told = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        return Err(format!("`{}` failed:\n{told}", kernel.name));
    }
    // ==123== I   refs:      1,234,567
    let counted =
        told.lines().find_map(|line| line.split_once("refs:")).map(|(_, count)| count.replace(',', ""));
    counted
        .and_then(|count| count.trim().parse().ok())
        .ok_or_else(|| format!("valgrind tells no count of instructions:\n{told}"))
}
