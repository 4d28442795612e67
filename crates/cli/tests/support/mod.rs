//! Helpers of the tests of the command line: a directory, the program, and the samples.

#![allow(dead_code, reason = "each test file uses its own share of this")]

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

/// The program.
pub(crate) const FOLDDB: &str = env!("CARGO_BIN_EXE_folddb");

/// A small generator of random numbers (xorshift), of a seed that is not 0.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    pub(crate) fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }
}

/// A directory of its own for each test.
pub(crate) struct Place {
    dir: tempfile::TempDir,
}

impl Place {
    pub(crate) fn new() -> Place {
        Place { dir: tempfile::tempdir().expect("a directory for temporary files") }
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    /// The program, in this directory.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(FOLDDB);
        command.args(words).current_dir(self.path()).env("HOME", self.path()).env_remove("XDG_DATA_HOME");
        without_settings(&mut command).stdin(Stdio::null());
        command
    }

    /// Runs the program.
    pub(crate) fn run(&self, words: &[&str]) -> Ran {
        Ran::from(self.command(words).output().expect("the program starts"))
    }

    /// Runs the program, which must succeed; returns its output.
    pub(crate) fn done(&self, words: &[&str]) -> String {
        let ran = self.run(words);
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        ran.out
    }

    /// Runs the program, which reads these lines and must succeed; returns its output.
    pub(crate) fn fed(&self, words: &[&str], lines: &str) -> String {
        let mut command = self.command(words);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the program starts");
        let mut pipe = child.stdin.take().expect("a pipe");
        pipe.write_all(lines.as_bytes()).expect("the program reads");
        drop(pipe);
        let ran = Ran::from(child.wait_with_output().expect("the program ends"));
        assert_eq!(ran.code, 0, "{words:?}: {}", ran.err);
        ran.out
    }

    /// Runs the program with `--json`, which must succeed; returns its report.
    pub(crate) fn json(&self, words: &[&str]) -> serde_json::Value {
        let out = self.done(&[&["--json"], words].concat());
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{words:?}: {error}: {out}"))
    }

    pub(crate) fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        std::fs::write(self.path().join(name), text).expect("the file is written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path().join(name)).expect("the file is there")
    }
}

/// Takes out of the environment what would change what the program prints.
pub(crate) fn without_settings(command: &mut Command) -> &mut Command {
    command.env_remove("FOLDDB_STORE").env_remove("COLUMNS").env_remove("PAGER")
}

/// How a run of the program ended.
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl From<Output> for Ran {
    fn from(output: Output) -> Ran {
        Ran {
            code: output.status.code().expect("no signal ended it"),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }
}

/// A shell that holds a store open for writing, which has a table `t`.
pub(crate) struct Shell {
    child: Child,
    lines: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Shell {
    pub(crate) fn of(place: &Place, store: &str) -> Shell {
        let mut command = place.command(&["shell", store]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("the shell starts");
        let (lines, answers) = (child.stdin.take().expect("a pipe"), child.stdout.take().expect("a pipe"));
        let mut shell = Shell { child, lines, answers: BufReader::new(answers) };
        // It holds the lock before anything else that is started may take it.
        shell.counts("");
        shell
    }

    /// Runs a line that prints nothing, and waits until it is done.
    pub(crate) fn does(&mut self, line: &str) {
        self.counts(&format!("{line}\n"));
    }

    fn counts(&mut self, after: &str) {
        let count = self.ask(&format!("{after}count t"));
        assert!(count.trim().parse::<u64>().is_ok(), "{after}: {count}");
    }

    /// Runs lines that print one line.
    pub(crate) fn ask(&mut self, line: &str) -> String {
        writeln!(self.lines, "{line}").expect("the shell reads");
        let mut answer = String::new();
        self.answers.read_line(&mut answer).expect("the shell answers");
        answer
    }

    /// Ends it normally, which must succeed.
    pub(crate) fn end(mut self) {
        drop(self.lines);
        assert!(self.child.wait().expect("the shell ends").success());
    }
}

/// Longer than any machine needs for a few rows.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A program at a terminal, which `script` provides.
pub(crate) struct Screen {
    script: Child,
    keys: ChildStdin,
    shown: std::sync::Arc<std::sync::Mutex<String>>,
    reader: Option<std::thread::JoinHandle<()>>,
}

impl Screen {
    /// Starts a line of `sh`; none where there is no `script`.
    pub(crate) fn of(place: &Place, line: &str) -> Option<Screen> {
        let mut script = Command::new("script");
        script.args(["-qefc", line, "/dev/null"]).current_dir(place.path()).env("HOME", place.path());
        without_settings(&mut script).env("TERM", "dumb").stdin(Stdio::piped()).stdout(Stdio::piped());
        let Ok(mut script) = script.spawn() else {
            eprintln!("there is no `script` to make a terminal with: nothing is tried");
            return None;
        };
        let (keys, mut out) = (script.stdin.take().expect("a pipe"), script.stdout.take().expect("a pipe"));
        let shown = std::sync::Arc::new(std::sync::Mutex::new(String::new()));
        let shows = std::sync::Arc::clone(&shown);
        let reader = std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            while let Ok(len @ 1..) = out.read(&mut bytes) {
                let text = String::from_utf8_lossy(&bytes[..len]).into_owned();
                shows.lock().expect("nobody panicked").push_str(&text);
            }
        });
        Some(Screen { script, keys, shown, reader: Some(reader) })
    }

    pub(crate) fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).expect("the terminal takes keys");
    }

    /// Waits until something was shown this many times.
    pub(crate) fn shows(&self, what: &str, times: usize) {
        let since = Instant::now();
        loop {
            let shown = self.shown.lock().expect("nobody panicked").clone();
            if shown.matches(what).count() >= times {
                return;
            }
            assert!(since.elapsed() < PATIENCE, "`{what}` is not shown {times} times: {shown}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    pub(crate) fn ends_well(self) {
        self.ends_with(0);
    }

    pub(crate) fn ends_with(self, code: i32) {
        self.all_until(code);
    }

    /// Waits for the end; returns all that was shown.
    pub(crate) fn all_until(mut self, code: i32) -> String {
        let ended = self.script.wait().expect("it ends").code();
        if let Some(reader) = self.reader.take() {
            reader.join().expect("nobody panicked");
        }
        let shown = self.shown.lock().expect("nobody panicked").clone();
        assert_eq!(ended, Some(code), "{shown}");
        shown
    }
}

/// The root of the project.
pub(crate) fn project() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The sample of real flights.
pub(crate) fn flights_sample() -> PathBuf {
    project().join("samples/flights-2013-01-first-days.csv.gz")
}
