//! How rows are to look to people.

use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::args::{LookArgs, OutputFormat};

/// The output goes elsewhere than to that of the process; this has one output at a time.
static IS_ELSEWHERE: AtomicBool = AtomicBool::new(false);

/// While it lives, the output goes to a file or to a program.
pub(crate) struct Elsewhere(());

/// Notes that the output goes to a file or to a program.
pub(crate) fn elsewhere() -> Elsewhere {
    IS_ELSEWHERE.store(true, Ordering::Relaxed);
    Elsewhere(())
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        IS_ELSEWHERE.store(false, Ordering::Relaxed);
    }
}

/// Whether the output is a terminal.
pub(crate) fn is_terminal() -> bool {
    !IS_ELSEWHERE.load(Ordering::Relaxed) && std::io::stdout().is_terminal()
}

/// How rows are to look to people.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Look {
    /// Columns of the terminal; none where lines may have any length.
    pub(crate) width: Option<usize>,
    /// All digits of figures, and all of long texts.
    pub(crate) is_full: bool,
    /// Each row has a line for each column.
    pub(crate) is_upright: bool,
}

impl Look {
    /// The one that the terminal and the environment ask for.
    pub(crate) fn of_terminal() -> Look {
        let size = || console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns));
        let is_elsewhere = IS_ELSEWHERE.load(Ordering::Relaxed);
        let stated = std::env::var("COLUMNS").ok().filter(|_| !is_elsewhere);
        Look { width: width(stated.as_deref(), is_terminal().then(size).flatten()), ..Look::default() }
    }

    /// The same, with what a command line says.
    pub(crate) fn with(args: &LookArgs) -> Look {
        let look = Look::of_terminal();
        let width = look.width.filter(|_| !args.full);
        Look { width, is_full: args.full, is_upright: args.vertical }
    }
}

/// The width that is stated, else that of the terminal, if there is one.
fn width(stated: Option<&str>, of_terminal: Option<usize>) -> Option<usize> {
    let stated = stated.and_then(|text| text.trim().parse().ok());
    stated.or(of_terminal).filter(|&columns| columns > 0)
}

/// The format of rows, and how they look where that is for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Form {
    pub(crate) format: OutputFormat,
    pub(crate) look: Look,
    /// A picture of a column instead of the rows.
    pub(crate) picture: Option<Picture>,
}

/// A picture of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Picture {
    /// A bar for each row.
    Bars(String),
    /// A sign for each row, and a line for each key without its last element.
    Sparkline(String),
}

impl Form {
    /// What a command line asks for.
    pub(crate) fn of(format: Option<OutputFormat>, is_json: bool, args: &LookArgs) -> Form {
        let usual = if is_json { OutputFormat::Ndjson } else { OutputFormat::Table };
        Form { format: format.unwrap_or(usual), look: Look::with(args), picture: None }
    }
}

impl Form {
    /// The same, with the picture that a command line asks for.
    pub(crate) fn drawn(self, bars: Option<&String>, sparkline: Option<&String>) -> Form {
        let picture = bars.cloned().map(Picture::Bars).or(sparkline.cloned().map(Picture::Sparkline));
        Form { picture, ..self }
    }
}

impl From<OutputFormat> for Form {
    fn from(format: OutputFormat) -> Form {
        Form { format, look: Look::of_terminal(), picture: None }
    }
}

#[cfg(test)]
#[path = "look/tests.rs"]
mod tests;
