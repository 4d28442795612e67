//! `folddb shell STORE`: the verbs at a prompt, without the name of the store.
//!
//! On a terminal there are history and completion; other input is a script: an error does not end
//! it, and the exit code is that of the first failed command. `#` begins a comment.
//!
//! For typed lines, Ctrl-C only ends the running command, or drops a half-typed line, also at a
//! terminal that moves no cursor (`TERM=dumb`). It stops a script, as in `psql`: it is not known
//! which line was meant, and later ones may depend on the stopped one. A stopped script ends with
//! exit code 130. Ctrl-C is handled from the first line to the last, so it never just ends the
//! process.
//!
//! `begin` begins a transaction: until `commit` or `abort`, `put`, `fold` and `delete` of keys are
//! done in it, and reads of keys and ranges see its writes; others do not. If one of its commands
//! fails in a script, `commit` writes nothing; a user who types sees the failure, and may continue.

use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use clap::{CommandFactory, ValueEnum};
use folddb::{Durability, Store};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{Context, Editor, Helper};

use crate::args::{Cli, DurabilityArgs, DurabilityName, ShellArgs, Verb};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::help;
use crate::interrupt::{self, Hearing};
use crate::messages;
use crate::session::{Begun, Session, is_reserved};

/// The output of `help`: one screen.
const HELP: &str =
    "  get TABLE KEY...              the value of a key; a word for each element; history: its past
  head TABLE KEY...             size, hash and head of a value, which is not read for it
  scan TABLE [--prefix KEY]     rows; --from --after --before --through KEY, --reverse, --limit N
  count | aggregate TABLE       how many keys; what they fold to;   find TABLE INDEX TERM
  put | fold TABLE KEY... VALUE --ttl 15m: expires after that; put --if-absent, put ... --file FILE
  delete TABLE KEY...           or: --range FROM TO, or --prefix KEY
  begin   commit   abort        put, fold, delete together, seen by reads; commit --durability sync
  create TABLE [--key TYPE] [--fold SPEC]   drop TABLE   tables   index add | drop | list TABLE
  import TABLE FILE... --key COLUMNS [--fold 'field: fold = column, ...'] [--create]   imports TABLE
  export TABLE --to FILE        rows as CSV, TSV or NDJSON, compressed if FILE ends in .gz
  import-dir | export-dir TABLE DIR         files as values, and back
  explain TABLE KEY...          every record of a key, and why it is there
  stats [TABLE]   runs [TABLE]  figures; a picture of the tiers;   values   one of the value log
  compact [TABLE]   reclaim    merge all runs into one; give back the space of dead values
  digest TABLE   diff STORE   sync STORE     what a table holds; what differs; bring STORE up
  doctor   watch FEED   feed list           what is wrong; what has changed since the last watch
  check-fold --table TABLE      look for a counter-example to the laws of its fold
  backup DIR   backup list DIR  copies to go back to, while writing goes on; restore DIR NEW_STORE
  dump --to FILE   load FILE    the content as text, and back
  VERB --help                   all about a verb; Ctrl-C stops what a line does, and no more
  exit
Put words with spaces in quotes. --json prints any report as JSON.
";

/// Verbs that do not apply in a shell.
const OUTSIDE: [&str; 8] = ["shell", "completions", "man", "help", "verify", "repair", "freeze", "thaw"];

/// How a verb is run.
type RunVerb = fn(Verb, &mut Session) -> Result<(), Failure>;

pub(crate) fn run(args: &ShellArgs, session: &mut Session, verb: RunVerb) -> Result<(), Failure> {
    if session.shared.is_some() {
        return Err(Failure::Usage("this is already a shell".to_owned()));
    }
    let store = match args.read_only {
        true => session.open_to_read(&args.store)?,
        false => session.open_to_write(&args.store)?,
    };
    session.shared = Some(store.clone());
    let hearing = interrupt::hear();
    let input = Input::of_process();
    let path = args.store.clone();
    let mut shell = Shell { path, run: verb, input, first_failure: None, hearing: &hearing };
    let ended = match input {
        Input::Editor => shell.at_prompt(&store, session),
        Input::Typed => shell.over_typed(session),
        Input::Script => shell.over_script(session),
    };
    session.shared = None;
    if session.transaction.take().is_some() {
        let why = "the transaction was not committed: nothing of it is written";
        shell.note(messages::report(Err(Failure::Refused(why.to_owned()))));
    }
    let closed = store.close();
    ended?;
    closed?;
    match shell.first_failure {
        Some(code) => Err(Failure::Reported(code)),
        None => Ok(()),
    }
}

struct Shell<'a> {
    path: PathBuf,
    run: RunVerb,
    input: Input,
    first_failure: Option<ExitCode>,
    hearing: &'a Hearing,
}

/// Where lines come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Input {
    /// From a terminal, with history and completion.
    Editor,
    /// From a terminal that moves no cursor.
    Typed,
    /// Other input.
    Script,
}

impl Input {
    fn of_process() -> Input {
        // Also the terminals that the line editor does not handle itself.
        let is_dumb = std::env::var("TERM").is_ok_and(|term| ["dumb", "cons25", "emacs"].contains(&&*term));
        match io::stdin().is_terminal() {
            true if is_dumb => Input::Typed,
            true => Input::Editor,
            false => Input::Script,
        }
    }
}

/// The prompt of a typed line.
const PROMPT: &str = "folddb> ";

/// How often Ctrl-C is checked while waiting for a line.
const LOOKS_EVERY: Duration = Duration::from_millis(50);

/// The lines of the standard input, each read when the last one was taken.
fn lines() -> Receiver<io::Result<String>> {
    let (sender, lines) = mpsc::sync_channel(0);
    std::thread::spawn(move || io::stdin().lock().lines().try_for_each(|line| sender.send(line)));
    lines
}

/// The outcome of a line.
enum Line {
    Done,
    /// Ctrl-C stopped it.
    Stopped,
    Exit,
}

impl Shell<'_> {
    fn over_typed(&mut self, session: &mut Session) -> Result<(), Failure> {
        let lines = lines();
        loop {
            session.out.write_all(PROMPT.as_bytes())?;
            session.flush()?;
            match next_line(&lines)? {
                Next::Line(line) => match self.line(&line, session)? {
                    Line::Exit => break,
                    Line::Stopped => self.hearing.heed(),
                    Line::Done => {}
                },
                // The terminal has dropped the typed part of this line.
                Next::Stopped => {
                    self.hearing.heed();
                    writeln!(session.out)?;
                }
                Next::End => break,
            }
        }
        self.first_failure = None; // the user has seen it
        Ok(())
    }

    fn over_script(&mut self, session: &mut Session) -> Result<(), Failure> {
        let lines = lines();
        let mut number = 0_u64;
        loop {
            session.flush()?;
            match next_line(&lines)? {
                Next::Line(line) => {
                    number += 1;
                    let ended = self.line(&line, session)?;
                    match ended {
                        Line::Exit => return Ok(()),
                        Line::Stopped => return Err(stopped(&format!("in line {number}"))),
                        Line::Done => {}
                    }
                }
                Next::Stopped => return Err(stopped(&format!("after line {number}"))),
                Next::End => return Ok(()),
            }
        }
    }

    fn at_prompt(&mut self, store: &Store, session: &mut Session) -> Result<(), Failure> {
        let failed = |error: ReadlineError| Failure::Refused(format!("cannot read the terminal: {error}"));
        let mut editor: Editor<Words, FileHistory> = Editor::new().map_err(failed)?;
        editor.set_helper(Some(Words { verbs: verbs(), store: store.clone() }));
        let history = history_file();
        if let Some(file) = &history {
            let _ = editor.load_history(file); // there is none the first time
        }
        writeln!(session.out, "{}  (help lists the verbs)", self.path.display())?;
        session.flush()?;
        loop {
            match editor.readline(PROMPT) {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    self.hearing.heed(); // an earlier signal is not for this line
                    let ended = self.line(&line, session)?;
                    self.hearing.heed();
                    if let Line::Exit = ended {
                        break;
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(failed(error)),
            }
        }
        self.first_failure = None; // the user has seen it
        if let Some(file) = &history {
            let _ = editor.save_history(file); // a lost history is not a failure
        }
        Ok(())
    }

    /// Runs the commands of a line. Only a closed output ends the shell.
    fn line(&mut self, line: &str, session: &mut Session) -> Result<Line, Failure> {
        for command in commands_of(line) {
            match self.one(command, session)? {
                Line::Done => {}
                other => return Ok(other),
            }
        }
        Ok(Line::Done)
    }

    fn one(&mut self, line: &str, session: &mut Session) -> Result<Line, Failure> {
        let words = match split(line) {
            Ok(words) => words,
            Err(mistake) => {
                let code = messages::report(Err(Failure::Usage(mistake)));
                self.note_in_transaction(code, session);
                return Ok(Line::Done);
            }
        };
        match words.first().map(String::as_str) {
            None => return Ok(Line::Done),
            Some("exit" | "quit") => return Ok(Line::Exit),
            Some("help") if words.len() > 1 => {
                let help = help::parse(["folddb", &words[1], "--help"].map(OsString::from));
                messages::of_usage_or(help.err());
                return Ok(Line::Done);
            }
            Some("help") => {
                session.out.write_all(HELP.as_bytes())?;
                session.flush()?;
                return Ok(Line::Done);
            }
            Some(_) => {}
        }
        let ended = match words[0].as_str() {
            "begin" | "commit" | "abort" => transact(&words, session),
            _ => self.command(&words, session),
        };
        let flushed = session.flush();
        let code = match ended.and(flushed) {
            Err(Failure::OutputClosed) => return Err(Failure::OutputClosed),
            done => messages::report_as(done, session.globals.json),
        };
        match (code, words[0].as_str()) {
            (ExitCode::NotFound, "get" | "head") => self.note(code), // an answer, not a failure
            _ => self.note_in_transaction(code, session),
        }
        Ok(if code == ExitCode::Interrupted { Line::Stopped } else { Line::Done })
    }

    fn command(&self, words: &[String], session: &mut Session) -> Result<(), Failure> {
        let cli = match help::parse(with_store(words, &self.path)) {
            Ok(cli) => cli,
            Err(error) => return Err(Failure::Reported(messages::of_usage(error))),
        };
        let outer = std::mem::replace(&mut session.globals, cli.globals);
        session.globals.json |= outer.json;
        session.globals.memory = session.globals.memory.or(outer.memory);
        session.globals.deletes_age_max = session.globals.deletes_age_max.or(outer.deletes_age_max);
        let done = (self.run)(cli.verb, session);
        session.globals = outer;
        session.end(done)
    }

    /// Notes how a line ended, also for a transaction in a script.
    fn note_in_transaction(&mut self, code: ExitCode, session: &mut Session) {
        self.note(code);
        if let Some(begun) = session.transaction.as_mut().filter(|_| self.input == Input::Script) {
            begun.has_failed |= code != ExitCode::Done;
        }
    }

    fn note(&mut self, code: ExitCode) {
        if code != ExitCode::Done {
            self.first_failure.get_or_insert(code);
        }
    }
}

/// The outcome of waiting for a line.
enum Next {
    Line(String),
    /// Ctrl-C came first.
    Stopped,
    End,
}

/// Waits for the next line, or for Ctrl-C.
fn next_line(lines: &Receiver<io::Result<String>>) -> Result<Next, Failure> {
    loop {
        if interrupt::check().is_err() {
            return Ok(Next::Stopped);
        }
        match lines.recv_timeout(LOOKS_EVERY) {
            Ok(line) => {
                return line.map(Next::Line).map_err(|error| Failure::file("read", "stdin", &error));
            }
            Err(RecvTimeoutError::Disconnected) => return Ok(Next::End),
            Err(RecvTimeoutError::Timeout) => {}
        }
    }
}

/// The failure of a script that Ctrl-C stopped.
fn stopped(at: &str) -> Failure {
    messages::print(&format!("folddb: Ctrl-C stopped the script {at}; what follows it was not run"));
    Failure::Reported(ExitCode::Interrupted)
}

/// Begins or ends a transaction.
fn transact(words: &[String], session: &mut Session) -> Result<(), Failure> {
    let verb = words[0].as_str();
    let stated = stated_durability(words)?;
    let open = session.transaction.take();
    match (verb, open, &session.shared) {
        ("begin", None, Some(store)) => {
            session.transaction = Some(Begun {
                transaction: store.transaction(),
                durability: Durability::Process,
                has_failed: false,
            });
            Ok(())
        }
        ("begin", open, _) => {
            session.transaction = open;
            Err(Failure::Usage("a transaction has begun already: commit or abort it first".to_owned()))
        }
        ("commit", Some(Begun { has_failed: true, .. }), _) => Err(Failure::Refused(
            "a command of the transaction failed, so nothing of it is written".to_owned(),
        )),
        ("commit", Some(begun), _) => {
            let durability = match (begun.durability, stated) {
                (Durability::Sync, _) => Durability::Sync, // a write has requested it
                (usual, stated) => stated.unwrap_or(usual),
            };
            let seq = begun.transaction.commit(durability)?;
            session.report(&serde_json::json!({ "seq": u64::from(seq) }), |_| Ok(()))
        }
        (_, Some(_), _) => Ok(()), // a dropped transaction does nothing
        (verb, None, _) => {
            Err(Failure::Usage(format!("there is nothing to {verb}: begin a transaction first")))
        }
    }
}

/// The durability that a `commit` states, if any.
fn stated_durability(words: &[String]) -> Result<Option<Durability>, Failure> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let name = match words[..] {
        [_] => return Ok(None),
        ["commit", "--durability", name] => name,
        ["commit", option] if option.starts_with("--durability=") => &option["--durability=".len()..],
        ["commit", ..] => {
            let message = "`commit` takes --durability buffered, process or sync, and nothing else";
            return Err(Failure::Usage(message.to_owned()));
        }
        _ => {
            let message = format!(
                "`{}` must be alone on its line (durability is chosen at the end: commit --durability sync)",
                words[0]
            );
            return Err(Failure::Usage(message));
        }
    };
    let durability = DurabilityName::from_str(name, false);
    durability.map(|durability| Some(DurabilityArgs { durability }.into())).map_err(|_| {
        Failure::Usage(format!("there is no durability `{name}`; the choices are buffered, process, sync"))
    })
}

/// The line as a command line of the program: the store comes after the verb.
fn with_store(words: &[String], path: &Path) -> Vec<OsString> {
    let verb_at = words.iter().position(|word| !word.starts_with('-')).unwrap_or(0);
    let is_list = |at: usize| words.get(at).is_some_and(|word| word == "list");
    let of_two = match words.get(verb_at).map(String::as_str) {
        Some("index" | "feed") => true, // `index add`
        Some("backup") => is_list(verb_at + 1),
        _ => false,
    };
    let (before, rest) = words.split_at((verb_at + 1 + usize::from(of_two)).min(words.len()));
    let verb = before.last().map(String::as_str).unwrap_or_default();
    let mut line: Vec<OsString> = vec!["folddb".into()];
    line.extend(before.iter().map(Into::into));
    let names_table = rest.iter().any(|word| word == "--table" || word.starts_with("--table="));
    match verb {
        "bench" | "restore" => {}
        "list" if words[verb_at] == "backup" => {}
        "check-fold" if !names_table => {}
        "check-fold" => line.extend(["--store".into(), path.into()]),
        _ => line.push(path.into()),
    }
    line.extend(rest.iter().map(Into::into));
    line
}

/// The commands of a line: `;` is between them.
fn commands_of(line: &str) -> Vec<&str> {
    let (mut commands, mut begin, mut quote, mut is_word) = (Vec::new(), 0, None, false);
    let mut letters = line.char_indices();
    while let Some((at, letter)) = letters.next() {
        match (quote, letter) {
            (None | Some('"'), '\\') => drop(letters.next()),
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => quote = Some(letter),
            (None, '#') if !is_word => break, // the rest is a comment
            (None, ';') => {
                commands.push(&line[begin..at]);
                begin = at + 1;
            }
            _ => {}
        }
        is_word = quote.is_some() || !(letter.is_whitespace() || letter == ';');
    }
    commands.push(&line[begin..]);
    commands
}

/// Splits a line into words: spaces separate them, both kinds of quotes group, a backslash escapes
/// the next character (inside single quotes it is literal), `#` at the start of a word begins a
/// comment.
fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = line.chars();
    while let Some(letter) = letters.next() {
        match letter {
            '#' if word.is_none() => break,
            '\'' | '"' => quoted(&mut letters, letter, word.get_or_insert_default())?,
            '\\' => word.get_or_insert_default().extend(letters.next()),
            space if space.is_whitespace() => words.extend(word.take()),
            other => word.get_or_insert_default().push(other),
        }
    }
    words.extend(word);
    Ok(words)
}

fn quoted(letters: &mut std::str::Chars<'_>, quote: char, word: &mut String) -> Result<(), String> {
    while let Some(letter) = letters.next() {
        match letter {
            letter if letter == quote => return Ok(()),
            '\\' if quote == '"' => match letters.next() {
                Some(escaped @ ('"' | '\\')) => word.push(escaped),
                other => word.extend(std::iter::once('\\').chain(other)),
            },
            other => word.push(other),
        }
    }
    Err(format!("a quote {quote} is not closed"))
}

/// Where the history of lines is kept: with the user's own data, not in the store.
fn history_file() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let dir =
        data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")))?.join("folddb");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join("history"))
}

fn verbs() -> Vec<String> {
    let command = Cli::command();
    let names = command.get_subcommands().map(|verb| verb.get_name().to_owned());
    names
        .filter(|name| !OUTSIDE.contains(&name.as_str()))
        .chain(["help", "exit"].map(str::to_owned))
        .collect()
}

/// Completes the verb, then the names of tables.
struct Words {
    verbs: Vec<String>,
    store: Store,
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        let before = &line[..at];
        let start = before.rfind(char::is_whitespace).map_or(0, |space| space + 1);
        let tables;
        let known = if before[..start].trim().is_empty() {
            &self.verbs
        } else {
            tables = self.store.tables().into_iter().filter(|name| !is_reserved(name)).collect();
            &tables
        };
        let fits = known.iter().filter(|word| word.starts_with(&before[start..]));
        Ok((start, fits.map(|word| format!("{word} ")).collect()))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}

impl Validator for Words {}

impl Helper for Words {}

#[cfg(test)]
#[path = "shell/tests.rs"]
mod tests;
