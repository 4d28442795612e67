//! Building a test in the copy, running it, and judging how it ended.
//!
//! A fault counts as caught only where the named test ran and its harness says that it failed. A
//! test that does not build says nothing about the engine, and one that hangs or dies gives no
//! readable verdict.

use std::fs::{self, File};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use crate::list::{Mutation, Test};
use crate::tree::Tree;

/// How a test ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It passed.
    Passed,
    /// It failed by an assertion or another panic; what it said first.
    Failed(String),
    /// It does not build; the first error.
    NotBuilt(String),
    /// It did not end in time.
    Hung,
    /// It ended without a verdict; its last words.
    Died(String),
}

/// A workshop: the copy, and how tests are run in it.
pub(crate) struct Workshop {
    /// The copy.
    pub(crate) tree: Tree,
    /// How long a test may run.
    pub(crate) limit: Duration,
    /// How often a test is run on each fault: tests that try at random must find it each time.
    pub(crate) times: u32,
}

impl Workshop {
    /// Builds a test and runs it, in the tree as it is. Returns the first outcome that is no
    /// failure, otherwise the last failure.
    pub(crate) fn run(&self, test: &Test, times: u32) -> Outcome {
        let program = match self.build(test) {
            Ok(program) => program,
            Err(why) => return Outcome::NotBuilt(why),
        };
        let mut outcome = self.run_built(&program, test);
        for _ in 1..times {
            if !matches!(outcome, Outcome::Failed(_)) {
                break;
            }
            outcome = self.run_built(&program, test);
        }
        outcome
    }

    /// Puts a fault in, runs its test, and takes it out again.
    ///
    /// # Errors
    /// The file cannot be changed.
    pub(crate) fn run_mutated(&self, mutation: &Mutation) -> Result<Outcome, String> {
        let name = PathBuf::from(&mutation.file);
        let told = |error: std::io::Error| format!("{}: {error}", mutation.file);
        let whole = fs::read(self.tree.root.join(&name)).map_err(told)?;
        let mutated = mutation.mutated(&self.tree.root)?;
        self.tree.put(&name, mutated.as_bytes()).map_err(told)?;
        let outcome = self.run(&mutation.test, self.times);
        self.tree.put(&name, &whole).map_err(told)?;
        Ok(outcome)
    }

    /// Builds the target of a test; where its program is.
    fn build(&self, test: &Test) -> Result<PathBuf, String> {
        let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
        cargo.args(["test", "--no-run", "--message-format", "json", "-p", &test.package]);
        match test.target.as_str() {
            "lib" => cargo.arg("--lib"),
            target => cargo.args(["--test", target]),
        };
        cargo.current_dir(&self.tree.root).env("CARGO_TARGET_DIR", &self.tree.build_dir);
        if is_scheduled(test) {
            cargo.env(
                "RUSTC_WORKSPACE_WRAPPER",
                concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ci/rustc/schedules"),
            );
        }
        // No debugger steps through it, and dependencies are built more often than they are used: a
        // sixth of the time.
        cargo.env("CARGO_PROFILE_DEV_DEBUG", "0");
        cargo.args(["--config", "profile.dev.package.\"*\".opt-level=0"]);
        let built = cargo.output().map_err(|error| format!("cannot start cargo: {error}"))?;
        let messages = String::from_utf8_lossy(&built.stdout);
        let messages =
            messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
        let (mut program, mut fault) = (None, None);
        for message in messages {
            if let Some(path) = message["executable"].as_str()
                && message["profile"]["test"] == true
            {
                program = Some(PathBuf::from(path));
            }
            if message["message"]["level"] == "error" && fault.is_none() {
                fault = message["message"]["message"].as_str().map(str::to_owned);
            }
        }
        let words = String::from_utf8_lossy(&built.stderr);
        match program {
            Some(program) if built.status.success() => Ok(program),
            _ => Err(fault.unwrap_or_else(|| last_line(&words))),
        }
    }

    fn run_built(&self, program: &std::path::Path, test: &Test) -> Outcome {
        let log = self.tree.build_dir.join("test.out");
        match self.run_to_file(program, test, &log) {
            Err(error) => Outcome::Died(error.to_string()),
            Ok(None) => Outcome::Hung,
            Ok(Some(status)) => verdict(status, &fs::read(&log).unwrap_or_default()),
        }
    }

    /// Runs the program for this one test. Returns how it ended, or nothing when its time was over.
    fn run_to_file(
        &self,
        program: &std::path::Path,
        test: &Test,
        log: &std::path::Path,
    ) -> std::io::Result<Option<ExitStatus>> {
        let out = File::create(log)?;
        let package_dir = self.tree.root.join(test.package_dir());
        let mut child = Command::new(program)
            .args(["--exact", &test.name, "--include-ignored"])
            .current_dir(&package_dir)
            .env("CARGO_MANIFEST_DIR", &package_dir)
            // A counterexample is neither kept nor shrunk: its existence is enough.
            .env("PROPTEST_DISABLE_FAILURE_PERSISTENCE", "1")
            .env("PROPTEST_MAX_SHRINK_ITERS", "0")
            .stdin(Stdio::null())
            .stderr(out.try_clone()?)
            .stdout(out)
            .spawn()?;
        let deadline = Instant::now() + self.limit;
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(Some(status));
            }
            if Instant::now() >= deadline {
                child.kill()?;
                child.wait()?;
                return Ok(None);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

/// What the harness's output says about the one test that it ran.
fn verdict(status: ExitStatus, output: &[u8]) -> Outcome {
    let output = String::from_utf8_lossy(output);
    let result = output.lines().rev().find_map(|line| line.strip_prefix("test result: "));
    match result {
        Some(result) if status.success() && result.contains(" 1 passed; 0 failed;") => Outcome::Passed,
        Some(result) if result.contains(" 0 passed; 1 failed;") => Outcome::Failed(first_words(&output)),
        Some(result) if result.contains(" 0 passed; 0 failed;") => {
            Outcome::Died("the test is not there".to_owned())
        }
        _ => Outcome::Died(last_line(&output)),
    }
}

/// The message of a panic: the line after the one with its place.
fn first_words(output: &str) -> String {
    let mut lines =
        output.lines().skip_while(|line| !(line.starts_with("thread '") && line.contains("panicked at")));
    let said = lines.nth(1).unwrap_or("it failed").trim();
    said.chars().take(200).collect()
}

fn last_line(text: &str) -> String {
    text.lines().rev().map(str::trim).find(|line| !line.is_empty()).unwrap_or("it said nothing").to_owned()
}

/// Whether it runs under a scheduler, which asks for a build of its own: see `.ci/races`.
fn is_scheduled(test: &Test) -> bool {
    test.target == "schedules" || test.name.split("::").any(|module| module == "schedules")
}
