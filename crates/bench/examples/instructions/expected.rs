//! The table of what kernels need, `expected.toml`: read, compared with, rewritten.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::Command;

use crate::Outcome;
use crate::kernels::{KERNELS, Kernel};

/// More instructions than this, in percent, are too many, unless the table says otherwise.
const TOLERANCE_PERCENT: f64 = 5.0;

const HEAD: &str = "\
# Instructions that an operation of each kernel needs
# (crates/bench/examples/instructions/kernels.rs), as counted by cachegrind in a release build for
# `-C target-cpu=x86-64-v2`, whatever the machine. `.ci/instructions` compares and fails where a
# kernel needs more than its tolerance allows; `.ci/instructions --update` rewrites the counts and
# keeps the tolerances. Another compiler gives other counts, which are shown and not judged: the one
# below made these.
";

/// What the table says of a kernel.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) instructions: f64,
    pub(crate) tolerance_percent: f64,
}

/// The table.
pub(crate) struct Expected {
    rustc: String,
    entries: Vec<Entry>,
}

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("examples/instructions/expected.toml")
}

/// The compiler in use, in a line.
fn rustc() -> String {
    let output = Command::new("rustc").arg("--version").output();
    output
        .map_or_else(|_| "unknown".to_owned(), |told| String::from_utf8_lossy(&told.stdout).trim().to_owned())
}

impl Expected {
    /// Reads the table; an absent one is empty.
    pub(crate) fn read() -> Outcome<Expected> {
        let text = std::fs::read_to_string(path()).unwrap_or_default();
        let table: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path().display()))?;
        let rustc = table.get("rustc").and_then(|value| value.as_str()).unwrap_or_default().to_owned();
        let entry = |(name, value): (&String, &toml::Value)| {
            let number = |field: &str| match value.get(field)? {
                toml::Value::Float(number) => Some(*number),
                toml::Value::Integer(number) => Some(*number as f64),
                _ => None,
            };
            let tolerance_percent = number("tolerance_percent").unwrap_or(TOLERANCE_PERCENT);
            Some(Entry { name: name.clone(), instructions: number("instructions")?, tolerance_percent })
        };
        Ok(Expected { rustc, entries: table.iter().filter_map(entry).collect() })
    }

    /// Says so if the table was made by another compiler than the one in use.
    pub(crate) fn note_on_toolchain(&self) -> Option<String> {
        let now = rustc();
        (now != self.rustc).then(|| format!("the table was made by {}; this is {now}", self.rustc))
    }

    pub(crate) fn entry(&self, name: &str) -> Option<&Entry> {
        self.entries.iter().find(|entry| entry.name == name)
    }

    /// Takes a new count.
    pub(crate) fn set(&mut self, kernel: &Kernel, measured: f64) {
        let tolerance_percent =
            self.entry(kernel.name).map_or(TOLERANCE_PERCENT, |entry| entry.tolerance_percent);
        self.entries.retain(|entry| entry.name != kernel.name);
        self.entries.push(Entry { name: kernel.name.to_owned(), instructions: measured, tolerance_percent });
    }

    /// Writes the table, in the order of the kernels. Kernels that no longer exist are left out.
    pub(crate) fn write(&self) -> Outcome<()> {
        let mut text = format!("{HEAD}rustc = \"{}\"\n", rustc());
        for kernel in &KERNELS {
            let Some(entry) = self.entry(kernel.name) else { continue };
            let (count, tolerance) = (entry.instructions, entry.tolerance_percent);
            let _ = write!(
                text,
                "\n[{}] # {}\ninstructions = {count:.1}\ntolerance_percent = {tolerance}\n",
                kernel.name, kernel.what
            );
        }
        std::fs::write(path(), text).map_err(|error| format!("{}: {error}", path().display()))
    }
}
