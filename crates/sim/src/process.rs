//! The resources of a process, and tests that are processes of their own.
//!
//! Memory, descriptors and threads belong to a process, so a test of their limits measures a
//! process in which nothing else runs: the test program, run again with one ignored test chosen,
//! which reports on its standard output.

use std::process::Command;

/// The resources of this process according to `/proc/self`; zeros where there is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// The most memory that it ever had resident, in bytes: its own, and pages of maps (the
    /// program, the journal).
    pub peak_bytes: u64,
    /// Memory that is resident now, in bytes.
    pub resident_bytes: u64,
    /// The part of that outside pages of files, in bytes.
    pub anonymous_bytes: u64,
    /// Open descriptors.
    pub descriptors: u64,
    /// Threads.
    pub threads: u64,
}

impl Usage {
    /// The present usage.
    pub fn now() -> Usage {
        let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
        let descriptors = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
        Usage::parse(&status, (descriptors as u64).saturating_sub(1)) // the one that lists them
    }

    /// The usage of another process of this user; none when it has ended.
    pub fn of(process: u32) -> Option<Usage> {
        let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
        let descriptors = std::fs::read_dir(format!("/proc/{process}/fd")).ok()?.count();
        Some(Usage::parse(&status, descriptors as u64))
    }

    fn parse(status: &str, descriptors: u64) -> Usage {
        let number = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
            let number = line.and_then(|line| line.split_whitespace().next());
            number.and_then(|number| number.parse::<u64>().ok()).unwrap_or(0)
        };
        Usage {
            peak_bytes: number("VmHWM") << 10,
            resident_bytes: number("VmRSS") << 10,
            anonymous_bytes: number("RssAnon") << 10,
            descriptors,
            threads: number("Threads"),
        }
    }
}

/// The task of a process that was started by [`report_of`].
const TASK: &str = "FOLDDB_TEST_TASK";

/// The prefix of the line that a child reports.
const REPORT: &str = "report: ";

/// Runs the ignored test `test` of this program alone in a process, with a task to do, and returns
/// what it reports.
///
/// # Panics
/// The process does not start, or ends without a report; its output is in the message.
pub fn report_of(test: &str, task: &str) -> String {
    let output = Command::new(std::env::current_exe().expect("this program has a path"))
        .args(["--exact", test, "--ignored", "--nocapture", "--test-threads=1"])
        .env(TASK, task)
        .output()
        .expect("this program starts again");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let report = text.lines().find_map(|line| line.split_once(REPORT).map(|(_, report)| report.to_owned()));
    let said = || {
        format!("`{test}` reports nothing on `{task}`: {text}\n{}", String::from_utf8_lossy(&output.stderr))
    };
    report.unwrap_or_else(|| panic!("{}", said()))
}

/// The task of this process; none when it was not started by [`report_of`].
pub fn task() -> Option<String> {
    std::env::var(TASK).ok()
}

/// Reports to the caller of [`report_of`].
pub fn report(what: impl std::fmt::Display) {
    println!("\n{REPORT}{what}");
}
