//! What is printed on the error output: failures, and notes for the user.
//!
//! The one place that prints errors.

use std::borrow::Cow;
use std::io::Write;
use std::path::Path;

use clap::error::{ContextKind, ContextValue};
use serde_json::json;

use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::human;

/// The environment variable that names the store.
pub(crate) const STORE_VARIABLE: &str = "FOLDDB_STORE";

/// Prints a failure, on a line of its own, and returns the exit code of the process.
pub(crate) fn report(done: Result<(), Failure>) -> ExitCode {
    report_as(done, false)
}

/// The same, as an object of JSON if that is asked for.
pub(crate) fn report_as(done: Result<(), Failure>, is_json: bool) -> ExitCode {
    let Err(failure) = done else { return ExitCode::Done };
    let (message, code) = (failure.to_string(), failure.exit_code());
    match (message.is_empty(), is_json) {
        (true, _) => {}
        (false, true) => print_json(&json!({ "error": message, "exit_code": code as u8 })),
        (false, false) => print(&format!("folddb: {message}")),
    }
    code
}

/// Longest message that is printed completely, in characters; of a longer one, both ends are
/// printed.
const MESSAGE_CHARS_MAX: usize = 4000;

/// Prints a message on the error output: as text, with control characters in names and values
/// escaped. Ignores a closed error output.
pub(crate) fn print(line: &str) {
    print_whole(&in_short(line));
}

/// The same without a limit of length, for messages that are needed completely.
pub(crate) fn print_whole(line: &str) {
    let _ = writeln!(std::io::stderr(), "{}", human::spelled(line));
}

/// Prints an object of JSON, in which control characters are escaped as JSON has it.
fn print_json(object: &serde_json::Value) {
    let mut text = String::new();
    for letter in object.to_string().chars() {
        match human::is_obeyed(letter) {
            true => text.push_str(&format!("\\u{:04x}", u32::from(letter))), // none is beyond four digits
            false => text.push(letter),
        }
    }
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// A message without its middle, if it is long: it may contain a long value, for example.
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

/// `--to KEY` was the end of a range, which is `--before` now. The nearest word would be
/// `--through`, which includes the key.
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

/// A key may begin as an option does: where an option that is alike is suggested, it is also said
/// how the word is passed as it is. Where only options take such words, that is said.
fn with_the_way_of_words(mut error: clap::Error) -> clap::Error {
    let usage = error.get(ContextKind::Usage).map(ToString::to_string).unwrap_or_default();
    let behind_table = usage.split("<TABLE>").nth(1).unwrap_or_default();
    let takes_words = ["<KEY>", "[KEY]", "[VALUE]"].iter().any(|word| behind_table.contains(word));
    let Some(ContextValue::String(word)) = error.get(ContextKind::InvalidArg) else { return error };
    let is_short = word.starts_with('-') && !word.starts_with("--");
    let tip = match takes_words {
        true => format!("to pass '{word}' as a value, use '-- {word}'"),
        false => format!("a value of an option that begins with - is behind =, as in '--prefix={word}'"),
    };
    let has_tip = error.get(ContextKind::Suggested).is_some();
    let has_suggestion = error.get(ContextKind::SuggestedArg).is_some();
    let is_wanted = match takes_words {
        true => word.starts_with('-') && !has_tip,
        // There `--` leads nowhere.
        false => usage.contains("<TABLE>") && (is_short || has_tip) && !has_suggestion,
    };
    if error.kind() == clap::error::ErrorKind::UnknownArgument && is_wanted {
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(vec![tip.into()]));
    }
    error
}

/// Prints what clap says; a mistake is followed by the store that the line does not name, if there
/// is one.
///
/// With `--json` a mistake is an object, as any other error.
pub(crate) fn of_usage_with(error: clap::Error, store: Option<&Path>, is_json: bool) -> ExitCode {
    if is_json && error.use_stderr() {
        let text = with_the_way_of_words(with_the_end_of_a_range(error)).render().to_string();
        let message = text.trim().trim_start_matches("error: ").to_owned();
        return report_as(Err(Failure::Usage(message)), true);
    }
    let code = of_usage(error);
    if let (ExitCode::Usage, Some(store)) = (code, store) {
        print(&format!("{STORE_VARIABLE} names the store, so the line does not: it is {}", store.display()));
    }
    code
}

/// Prints what clap says: help on the output, a mistake on the error output.
pub(crate) fn of_usage(error: clap::Error) -> ExitCode {
    let error = with_the_way_of_words(with_the_end_of_a_range(error));
    let printed = error.print();
    match (error.use_stderr(), printed) {
        (true, _) => ExitCode::Usage,
        (false, Ok(())) => ExitCode::Done,
        (false, Err(error)) => report(Err(error.into())),
    }
}
