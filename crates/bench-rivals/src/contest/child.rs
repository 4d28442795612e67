//! A child of the contest: its command line, and how it ends.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

use crate::outcome::Outcome;
use crate::work::{Job, Workload};

/// Rivals that the program in `go/` runs.
const IN_GO: [&str; 3] = ["pebble", "pebble-separated", "badger"];
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// The command that does a job on a rival.
pub(super) fn command(rival: &str, job: &Job, dir: &Path, go_program: &Path) -> Result<Command> {
    let mut command = if IN_GO.contains(&rival) {
        ensure!(
            go_program.exists(),
            "there is no {}: build it by `go build -o rivals-go .` in go/, or name it by --go-program",
            go_program.display()
        );
        Command::new(go_program)
    } else {
        crate::rivals::entry(rival)?;
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("child");
        command
    };
    command.args(arguments(rival, job)).arg("--dir").arg(dir);
    Ok(command)
}

/// The contract's arguments, all of them, so that no program's defaults matter.
fn arguments(rival: &str, job: &Job) -> Vec<String> {
    let mut arguments = Vec::new();
    for (name, value) in [
        ("rival", rival.to_owned()),
        ("workload", job.workload.name().to_owned()),
        ("rows", job.rows.to_string()),
        ("keys", job.key_count().to_string()),
        ("batch", job.batch.to_string()),
        ("memory-bytes", job.memory_bytes.to_string()),
        ("durability", job.durability.name().to_owned()),
        ("threads", job.threads.to_string()),
        ("seed", job.seed.to_string()),
    ] {
        arguments.extend([format!("--{name}"), value]);
    }
    if job.workload == Workload::Leveled {
        arguments.extend(["--value-bytes".to_owned(), job.value_bytes.to_string()]);
        arguments.extend(job.heads.then(|| "--heads".to_owned()));
    }
    if job.workload == Workload::Indexed {
        arguments.extend(["--indexes".to_owned(), job.indexes.to_string()]);
    }
    for (name, rate) in
        [("--beside-writes-per-s", job.beside_writes_per_s), ("--beside-gets-per-s", job.beside_gets_per_s)]
    {
        arguments.extend(rate.into_iter().flat_map(|rate| [name.to_owned(), rate.to_string()]));
    }
    if job.optimize {
        arguments.push("--optimize".to_owned());
    }
    arguments
}

/// Runs a child to its end, or to the end of its time.
pub(super) fn run(command: &mut Command, time_max: Duration) -> Result<Outcome> {
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("start {:?}", command.get_program()))?;
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (status, figures, complaint) = std::thread::scope(|scope| {
        let figures = scope.spawn(move || stdout.and_then(last_line));
        let complaint = scope.spawn(move || stderr.and_then(last_line));
        (wait(&mut child, time_max), figures.join(), complaint.join())
    });
    let Some(status) = status? else {
        return Ok(Outcome::Failed(format!("not done within {} s", time_max.as_secs())));
    };
    let complaint = complaint.ok().flatten().unwrap_or_default();
    Ok(judge(status.success(), &status.to_string(), figures.ok().flatten().as_deref(), &complaint))
}

/// The outcome of a child, from its exit status and the last line of its output.
fn judge(succeeded: bool, status: &str, last_line: Option<&str>, complaint: &str) -> Outcome {
    if !succeeded {
        return Outcome::Failed(format!("{status}: {complaint}"));
    }
    let figures: Option<Value> = last_line.and_then(|line| serde_json::from_str(line).ok());
    match figures {
        Some(figures) if figures["verified"] == true => Outcome::Done(figures),
        Some(figures) => Outcome::Failed(format!(
            "refused: its state is wrong (checksum {}, expected {})",
            figures["checksum"], figures["checksum_expected"]
        )),
        None => Outcome::Failed("its last line is no JSON".to_owned()),
    }
}

/// Waits for the end; `None` when time ran out, and the child was killed.
fn wait(child: &mut Child, time_max: Duration) -> Result<Option<ExitStatus>> {
    let started = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if started.elapsed() > time_max {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

fn last_line(output: impl Read) -> Option<String> {
    BufReader::new(output).lines().map_while(Result::ok).filter(|line| !line.trim().is_empty()).last()
}

#[cfg(test)]
#[path = "child/tests.rs"]
mod tests;
