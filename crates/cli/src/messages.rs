//! What is printed on the error output: what failed, and what else somebody should know.
//!
//! The one place that prints errors.

use std::borrow::Cow;
use std::io::Write;

use clap::error::{ContextKind, ContextValue};

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;

/// Prints what failed, on one line of its own, and says how the process ends.
pub(crate) fn report(done: Result<(), Failure>) -> ExitCode {
    let Err(failure) = done else { return ExitCode::Done };
    let message = failure.to_string();
    if !message.is_empty() {
        tell(&format!("folddb: {message}"));
    }
    failure.exit_code()
}

/// Longest message that is printed whole, in characters; of a longer one the ends are.
const MESSAGE_CHARS_MAX: usize = 4000;

/// Prints a message on the error output: as text, whatever the names and values in it do to a
/// terminal. When nobody reads that any more, there is nobody to tell.
pub(crate) fn tell(line: &str) {
    tell_whole(&in_short(line));
}

/// The same, however long it is: somebody needs all of it.
pub(crate) fn tell_whole(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", as_text(line));
}

/// A message without its middle, where that is long: the value of a key, say, which may be one of
/// many.
fn in_short(message: &str) -> Cow<'_, str> {
    let chars = message.chars().count();
    if chars <= MESSAGE_CHARS_MAX {
        return Cow::Borrowed(message);
    }
    let (first, last) = (MESSAGE_CHARS_MAX / 4, chars - MESSAGE_CHARS_MAX / 4);
    let (head, tail): (String, String) =
        (message.chars().take(first).collect(), message.chars().skip(last).collect());
    Cow::Owned(format!("{head}… ({} characters more) …{tail}", human::count((last - first) as u64)))
}

/// A message with its control characters spelled out, but for the ends of its lines and the tabs in
/// them.
fn as_text(message: &str) -> Cow<'_, str> {
    let is_spelled = |letter: char| letter.is_control() && !matches!(letter, '\n' | '\t');
    if !message.contains(is_spelled) {
        return Cow::Borrowed(message);
    }
    let spell = |letter: char| match is_spelled(letter) {
        true => letter.escape_debug().to_string(),
        false => letter.to_string(),
    };
    Cow::Owned(message.chars().map(spell).collect())
}

/// Whoever types `--to KEY` means the end of a range, which `--before` is now. The likest word
/// would be `--through`, which takes the key in.
fn with_the_end_of_a_range(mut error: clap::Error) -> clap::Error {
    let is = |kind, word: &str| matches!(error.get(kind), Some(ContextValue::String(said)) if said == word);
    if is(ContextKind::InvalidArg, "--to") && is(ContextKind::SuggestedArg, "--through") {
        error.insert(ContextKind::SuggestedArg, ContextValue::String("--before".to_owned()));
        if let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) {
            let usage = usage.ansi().to_string().replace("--through", "--before");
            error.insert(ContextKind::Usage, ContextValue::StyledStr(usage.into()));
        }
    }
    error
}

/// Prints what clap says: help on the output, a mistake on the error output.
pub(crate) fn of_usage(error: clap::Error) -> ExitCode {
    let error = with_the_end_of_a_range(error);
    let printed = error.print();
    match (error.use_stderr(), printed) {
        (true, _) => ExitCode::Usage,
        (false, Ok(())) => ExitCode::Done,
        (false, Err(error)) => report(Err(error.into())),
    }
}
