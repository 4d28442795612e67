//! `folddb shell STORE`: the verbs at a prompt, without the name of the store.
//!
//! On a terminal there are history and completion; other input is a script: an error does not end
//! it, and the exit code is that of the first failed command. That a key is absent is an answer: it
//! is the exit code only where nothing has failed. `#` begins a comment.
//!
//! For typed lines, Ctrl-C only ends the running command, or drops a half-typed line, also at a
//! terminal that moves no cursor (`TERM=dumb`). It stops a script, as in `psql`: it is not known
//! which line was meant, and later ones may depend on the stopped one. A stopped script ends with
//! exit code 130. Ctrl-C is handled from the first line to the last, so it never just ends the
//! process.
//!
//! `;` is between commands, and `|`, `>` and `>>` behind one send its output to a command of the
//! system's shell or to a file. `use` opens another store.
//!
//! `begin` begins a transaction: until `commit` or `abort`, `put`, `fold` and `delete` of keys are
//! done in it, and reads of keys and ranges see its writes; others do not. If one of its commands
//! fails in a script, `commit` writes nothing; a user who types sees the failure, and may continue.

use std::ffi::OsString;
use std::io::{self, BufRead, IsTerminal};
use std::path::PathBuf;
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::Duration;

use clap::ValueEnum;
use folddb::Durability;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{CompletionType, Config, Editor};

use crate::args::{DurabilityArgs, DurabilityName, ShellArgs, Verb};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::help;
use crate::interrupt::{self, Hearing};
use crate::messages;
use crate::pipe::{self, Ended};
use crate::render::look;
use crate::session::{Begun, Session, is_one_place};
use crate::store_word;
use crate::zones;

pub(crate) mod line;
mod target;
pub(crate) mod words;

use line::{commands_of, split};
use target::Target;
use words::Words;

/// The output of `help`: one screen.
const HELP: &str =
    "  get TABLE KEY...              the value of a key; a word for each element; history: its past
  head TABLE KEY...             size, hash and head of a value, which is not read for it
  scan TABLE [--prefix KEY]     rows; --from --after --before --through KEY, --reverse, --limit N
  count | aggregate TABLE       how many keys; what they fold to;   find TABLE INDEX TERM
  put | fold TABLE KEY... VALUE --ttl 15m: expires after that; put --if-absent, put ... --file FILE
  delete TABLE KEY...           or: --range FROM TO, or --prefix KEY
  begin   commit   abort        put, fold, delete together, seen by reads; commit --durability sync
  create TABLE [--key TYPE] [--fold SPEC]   alter | drop TABLE   tables   index add | drop | list
  import TABLE FILE... --key COLUMNS [--fold 'field: fold = column, ...'] [--create]   imports TABLE
  export TABLE --to FILE        rows as CSV, TSV, NDJSON, Markdown or SQL; packed: .gz, .zst
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
  use STORE   exit              another store;   VERB ... | COMMAND   VERB ... > FILE   VERB ; VERB
Put words with spaces in quotes. --json prints any report as JSON.
";

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
    session.shared = Some(store);
    let hearing = interrupt::hear();
    let input = Input::of_process();
    let path = args.store.clone();
    let read_only = args.read_only;
    let mut shell = Shell { path, read_only, run: verb, input, outcome: ExitCode::Done, hearing: &hearing };
    let ended = match input {
        Input::Editor => shell.at_prompt(session),
        Input::Typed => shell.over_typed(session),
        Input::Script => shell.over_script(session),
    };
    let store = session.shared.take();
    if session.transaction.take().is_some() {
        let why = "the transaction was not committed: nothing of it is written";
        shell.note(messages::report(Err(Failure::Refused(why.to_owned()))));
    }
    let closed = store.map_or(Ok(()), folddb::Store::close);
    ended?;
    closed?;
    match shell.outcome {
        ExitCode::Done => Ok(()),
        code => Err(Failure::Reported(code)),
    }
}

struct Shell<'a> {
    path: PathBuf,
    /// Stores are opened for reading.
    read_only: bool,
    run: RunVerb,
    input: Input,
    /// Of all lines so far.
    outcome: ExitCode,
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

/// What has no output that could be sent elsewhere.
const WITHOUT_OUTPUT: [&str; 7] = ["begin", "commit", "abort", "use", "exit", "quit", "help"];

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
    /// The store that it asked for is not open: what follows is not meant for the one that is.
    Astray,
    Exit,
}

impl Shell<'_> {
    fn over_typed(&mut self, session: &mut Session) -> Result<(), Failure> {
        let lines = Rc::new(lines());
        session.typed = Some(Rc::clone(&lines));
        loop {
            session.out.write_all(PROMPT.as_bytes())?;
            session.flush()?;
            match next_line(&lines)? {
                Next::Line(line) => match self.line(&line, session)? {
                    Line::Exit => break,
                    Line::Stopped => self.hearing.heed(),
                    Line::Done | Line::Astray => {}
                },
                // The terminal has dropped the typed part of this line.
                Next::Stopped => {
                    self.hearing.heed();
                    writeln!(session.out)?;
                }
                Next::End => break,
            }
        }
        self.outcome = ExitCode::Done; // the user has seen it
        Ok(())
    }

    fn over_script(&mut self, session: &mut Session) -> Result<(), Failure> {
        let lines = lines();
        let mut number = 0_u64;
        loop {
            unless_closed(session.flush())?; // whoever wants no more of it has not stopped the script
            match next_line(&lines)? {
                Next::Line(line) => {
                    number += 1;
                    let ended = self.line(&line, session)?;
                    match ended {
                        Line::Exit | Line::Astray => return Ok(()), // with the code of what failed
                        Line::Stopped => return Err(stopped(&format!("in line {number}"))),
                        Line::Done => {}
                    }
                }
                Next::Stopped => return Err(stopped(&format!("after line {number}"))),
                Next::End => return Ok(()),
            }
        }
    }

    fn at_prompt(&mut self, session: &mut Session) -> Result<(), Failure> {
        let failed = |error: ReadlineError| Failure::Refused(format!("cannot read the terminal: {error}"));
        let config = Config::builder().completion_type(CompletionType::List).build();
        let mut editor: Editor<Words, FileHistory> = Editor::with_config(config).map_err(failed)?;
        editor.set_helper(session.shared.clone().map(Words::of));
        let history = history_file();
        if let Some(file) = &history {
            let _ = editor.load_history(file); // there is none the first time
        }
        session.has_editor = true;
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
                    if let (Some(words), Some(store)) = (editor.helper_mut(), &session.shared) {
                        words.store = store.clone(); // `use` may have opened another one
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(ReadlineError::Eof) => break,
                Err(error) => return Err(failed(error)),
            }
        }
        self.outcome = ExitCode::Done; // the user has seen it
        if let Some(file) = &history {
            let _ = editor.save_history(file); // a lost history is not a failure
        }
        Ok(())
    }

    /// Runs the commands of a line. Only a closed output ends the shell, unless it is a script:
    /// what follows may write to the store.
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
        let is_json = session.globals.json;
        let split = target::of(line).and_then(|(line, target)| {
            let words = split(line).map_err(Failure::Usage)?;
            match words.first() {
                Some(verb) if target != Target::Usual && WITHOUT_OUTPUT.contains(&verb.as_str()) => {
                    Err(Failure::Usage(format!("the output of `{verb}` cannot be sent elsewhere")))
                }
                _ => Ok((words, target)),
            }
        });
        let (words, target) = match split {
            Ok(split) => split,
            Err(mistake) => {
                let code = messages::report_as(Err(mistake), is_json);
                self.note_in_transaction(code, session);
                let is_use = line.split_whitespace().next() == Some("use");
                return Ok(if is_use { Line::Astray } else { Line::Done });
            }
        };
        let is_json = is_json || store_word::asks_json(&words);
        match words.first().map(String::as_str) {
            None => return Ok(Line::Done),
            Some("exit" | "quit") => return Ok(Line::Exit),
            Some(_) => {}
        }
        let ended = match words[0].as_str() {
            "help" => help_about(words.get(1), session),
            "begin" | "commit" | "abort" => transact(&words, session),
            "use" => self.change_store(&words, session),
            _ => self.command_for(&words, &target, session),
        };
        let flushed = session.flush();
        let code = match ended.and(flushed) {
            Err(Failure::OutputClosed) if self.input == Input::Script => ExitCode::Done,
            Err(Failure::OutputClosed) => return Err(Failure::OutputClosed),
            done => messages::report_as(done, is_json),
        };
        match (code, words[0].as_str()) {
            (ExitCode::Absent, "get" | "head") => self.note(code), // an answer, not a failure
            _ => self.note_in_transaction(code, session),
        }
        Ok(match (code, words[0].as_str()) {
            (ExitCode::Interrupted, _) => Line::Stopped,
            (ExitCode::Done, _) => Line::Done,
            (_, "use") => Line::Astray,
            _ => Line::Done,
        })
    }

    /// Runs a command whose output goes to a target. A reader that wants no more of it is no
    /// failure; one that fails is, in a script.
    fn command_for(&self, words: &[String], target: &Target, session: &mut Session) -> Result<(), Failure> {
        let reader = Ended::default();
        let Some(out) = target.open(&reader)? else {
            return self.command(words, self.input == Input::Editor, session);
        };
        let usual = std::mem::replace(&mut session.out, out);
        let _narrow = look::elsewhere();
        let ended = self.command(words, false, session);
        let flushed = session.flush();
        drop(std::mem::replace(&mut session.out, usual)); // waits for a reader
        match ended.and(flushed) {
            Ok(()) | Err(Failure::OutputClosed) => self.judge(target, reader.get()),
            failed => failed,
        }
    }

    /// What a reader that failed is for a script: its output is lost. Who types has seen it.
    fn judge(&self, target: &Target, reader: Option<ExitStatus>) -> Result<(), Failure> {
        match (target, reader) {
            (Target::Command(line), Some(ended))
                if self.input == Input::Script && pipe::has_failed(ended) =>
            {
                Err(Failure::Refused(format!("`{line}` has failed: {ended}")))
            }
            _ => Ok(()),
        }
    }

    /// `use STORE`: opens another store, and closes the one before it.
    fn change_store(&mut self, words: &[String], session: &mut Session) -> Result<(), Failure> {
        let [_, path] = words else {
            return Err(Failure::Usage("`use` takes the directory of a store, and nothing else".to_owned()));
        };
        if session.transaction.is_some() {
            return Err(Failure::Usage("a transaction has begun: commit or abort it first".to_owned()));
        }
        let path = PathBuf::from(path);
        if session.shared.as_ref().is_some_and(|store| is_one_place(store.path(), &path)) {
            return Ok(());
        }
        let next = match self.read_only {
            true => session.open_to_read(&path)?,
            false => session.open_to_write(&path)?,
        };
        self.path = path;
        let before = session.shared.replace(next);
        Ok(before.map_or(Ok(()), folddb::Store::close)?)
    }

    /// Runs a command, whose output may be shown by a pager.
    fn command(&self, words: &[String], is_paged: bool, session: &mut Session) -> Result<(), Failure> {
        let cli = match help::parse(store_word::put_into(words, &self.path)) {
            Ok(cli) => cli,
            Err(said) => return unparsed(said, words, session),
        };
        let outer = std::mem::replace(&mut session.globals, cli.globals);
        session.globals.json |= outer.json;
        session.globals.memory = session.globals.memory.or(outer.memory);
        session.globals.deletes_age_max = session.globals.deletes_age_max.or(outer.deletes_age_max);
        session.globals.disk_reserve = session.globals.disk_reserve.or(outer.disk_reserve);
        session.globals.no_pager |= outer.no_pager;
        session.globals.wait_lock = session.globals.wait_lock.or(outer.wait_lock);
        session.globals.zone = session.globals.zone.take().or_else(|| outer.zone.clone());
        zones::set(session.globals.zone.as_ref());
        let usual = if is_paged && cli.verb.is_paged() { session.page() } else { None };
        let done = (self.run)(cli.verb, session);
        session.globals = outer;
        zones::set(session.globals.zone.as_ref());
        let done = session.end(done);
        let Some(usual) = usual else { return done };
        let flushed = session.flush();
        session.out = usual; // waits for the pager
        match done.and(flushed) {
            Err(Failure::OutputClosed) => Ok(()), // the reader has seen enough
            done => done,
        }
    }

    /// Notes how a line ended, also for a transaction in a script.
    fn note_in_transaction(&mut self, code: ExitCode, session: &mut Session) {
        self.note(code);
        if let Some(begun) = session.transaction.as_mut().filter(|_| self.input == Input::Script) {
            begun.has_failed |= code != ExitCode::Done;
        }
    }

    fn note(&mut self, code: ExitCode) {
        self.outcome = self.outcome.and_then(code);
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

/// The same, where a reader that wants no more of the output is no failure.
fn unless_closed(done: Result<(), Failure>) -> Result<(), Failure> {
    match done {
        Err(Failure::OutputClosed) => Ok(()),
        done => done,
    }
}

/// Prints all about a verb, or the verbs.
fn help_about(verb: Option<&String>, session: &mut Session) -> Result<(), Failure> {
    let Some(verb) = verb else { return Ok(session.out.write_all(HELP.as_bytes())?) };
    let words = ["folddb".to_owned(), verb.clone(), "--help".to_owned()];
    match help::parse(words.iter().map(OsString::from)) {
        Ok(_) => Ok(()), // a help has no other outcome
        Err(said) => unparsed(said, &words, session),
    }
}

/// Prints what is said of a line that is not run: help where the output goes, or a mistake.
fn unparsed(said: clap::Error, words: &[String], session: &mut Session) -> Result<(), Failure> {
    if !said.use_stderr() {
        let text = said.render();
        return Ok(match look::is_terminal() {
            true => write!(session.out, "{}", text.ansi()),
            false => write!(session.out, "{text}"),
        }?);
    }
    let asks_json = session.globals.json || store_word::asks_json(words);
    Err(Failure::Reported(messages::of_usage_with(said, None, asks_json)))
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

/// Where the history of lines is kept: with the user's own data, not in the store.
fn history_file() -> Option<PathBuf> {
    let data = std::env::var_os("XDG_DATA_HOME").filter(|dir| !dir.is_empty()).map(PathBuf::from);
    let dir =
        data.or_else(|| Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/share")))?.join("folddb");
    std::fs::create_dir_all(&dir).ok()?;
    Some(dir.join("history"))
}

#[cfg(test)]
#[path = "shell/tests.rs"]
mod tests;
