//! Output that another program reads: a pager on a terminal, or what a line of the shell names.
//!
//! A pager is started once there is more than a screen of output. While it runs, Ctrl-C stops the
//! command and not the program, which waits until the reader has left the pager.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::rc::Rc;

use crate::interrupt::{self, Hearing};

/// How a reader ended, once it has.
pub(crate) type Ended = Rc<Cell<Option<ExitStatus>>>;

/// A program that reads the output; dropping this waits for its end.
pub(crate) struct Reader {
    child: Child,
    ended: Ended,
    _hearing: Option<Hearing>,
}

impl Reader {
    /// Starts a line of the system's shell.
    pub(crate) fn start(line: &str, ended: &Ended) -> io::Result<Reader> {
        Reader::of(Command::new("sh").args(["-c", line]), ended)
    }

    fn of(command: &mut Command, ended: &Ended) -> io::Result<Reader> {
        let hearing = interrupt::flag().is_none().then(interrupt::hear); // a shell does this itself
        let child = command.stdin(Stdio::piped()).spawn()?;
        Ok(Reader { child, ended: Rc::clone(ended), _hearing: hearing })
    }
}

impl Write for Reader {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.child.stdin {
            Some(stdin) => stdin.write(bytes),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        self.ended.set(self.child.wait().ok());
    }
}

/// Output on a terminal, by a pager where it is more than a screen.
pub(crate) struct Paged {
    pager: String,
    screen: Screen,
    state: State,
}

/// Lines and columns of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Screen {
    pub(crate) lines: usize,
    pub(crate) columns: usize,
}

enum State {
    /// So far it fits the screen.
    Held(Vec<u8>),
    Pager(Reader),
    /// No pager could be started.
    Plain,
}

impl Paged {
    /// None where the output is no terminal, or no pager is wanted.
    pub(crate) fn of_process() -> Option<Paged> {
        let var = |name: &str| std::env::var(name).ok();
        let (lines, columns) = console::Term::stdout().size_checked()?;
        let screen = Screen { lines: lines.into(), columns: columns.into() };
        let is_terminal = io::stdout().is_terminal() && io::stdin().is_terminal();
        let pager = pager(is_terminal, var("TERM").as_deref(), var("PAGER").as_deref())?;
        Some(Paged { pager, screen, state: State::Held(Vec::new()) })
    }

    /// Starts the pager with what is held.
    fn overflow(&mut self, held: &[u8]) -> io::Result<()> {
        let mut command = Command::new("sh");
        command.args(["-c", &with_cat(&self.pager)]);
        if std::env::var_os("LESS").is_none() {
            command.env("LESS", "FRX"); // ends on one screen, shows colors, leaves the text there
        }
        match Reader::of(&mut command, &Ended::default()) {
            Ok(mut reader) => {
                let written = reader.write_all(held);
                self.state = State::Pager(reader);
                written
            }
            Err(_) => {
                self.state = State::Plain;
                io::stdout().write_all(held)
            }
        }
    }
}

impl Write for Paged {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.state {
            State::Pager(reader) => return reader.write(bytes),
            State::Plain => return io::stdout().write(bytes),
            State::Held(held) => {
                held.extend_from_slice(bytes);
                if !is_more_than(held, self.screen) {
                    return Ok(bytes.len());
                }
            }
        }
        if let State::Held(held) = std::mem::replace(&mut self.state, State::Plain) {
            self.overflow(&held)?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(()) // what is held may be the beginning of more
    }
}

impl Drop for Paged {
    fn drop(&mut self) {
        if let State::Held(held) = &self.state {
            let _ = io::stdout().write_all(held); // a terminal that is gone shows nothing
        }
        let _ = io::stdout().flush();
    }
}

/// The pager, where one is wanted: `PAGER`, else less.
fn pager(is_terminal: bool, term: Option<&str>, stated: Option<&str>) -> Option<String> {
    let moves_cursor = !matches!(term, None | Some("" | "dumb"));
    let pager = stated.unwrap_or("less").trim();
    (is_terminal && moves_cursor && !matches!(pager, "" | "cat")).then(|| pager.to_owned())
}

/// A line of the system's shell that runs a pager, or cat where there is no such program.
fn with_cat(pager: &str) -> String {
    match pager.split_whitespace().next() {
        // What sets a variable first, or is quoted, is left to the shell.
        Some(word) if word.chars().all(|letter| letter.is_alphanumeric() || "_-./+".contains(letter)) => {
            format!("if command -v {word} >/dev/null 2>&1; then {pager}; else cat; fi")
        }
        _ => pager.to_owned(),
    }
}

/// Whether a reader has failed: it wants no more by ending well, or by closing the pipe.
pub(crate) fn has_failed(ended: ExitStatus) -> bool {
    const CLOSED_PIPE: i32 = 13;
    !ended.success() && ended.signal() != Some(CLOSED_PIPE) && ended.code() != Some(128 + CLOSED_PIPE)
}

/// Whether a text, with a prompt below it, is more than a screen shows.
fn is_more_than(text: &[u8], screen: Screen) -> bool {
    let lines = |line: &[u8]| String::from_utf8_lossy(line).chars().count() / screen.columns.max(1) + 1;
    let mut room = screen.lines.saturating_sub(1);
    let mut whole = text.split(|&byte| byte == b'\n');
    !whole.by_ref().take(screen.lines + 1).all(|line| {
        let needed = if line.is_empty() { 1 } else { lines(line) };
        let fits = needed <= room;
        room = room.saturating_sub(needed);
        fits
    })
}

#[cfg(test)]
#[path = "pipe/tests.rs"]
mod tests;
