//! What a command runs in: the output, the settings for all verbs, and the way to a store.
//!
//! A single command opens the store that it names; a command that only reads opens it for reading.
//! In the shell all commands share the store that the shell holds open.

use std::cell::RefCell;
use std::fs;
use std::io::{self, BufWriter, Write};
use std::ops::Deref;
use std::path::Path;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

use folddb::{BytesTable, Durability, ErrorKind, Options, Store, Transaction, WriteOp};
use rustyline::error::ReadlineError;

use crate::args::Globals;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::pipe::Paged;
use crate::zones;

/// How often Ctrl-C is checked while an answer is waited for.
const ANSWER_TIME: Duration = Duration::from_millis(50);

/// What a command runs in.
pub(crate) struct Session {
    /// The settings for all verbs.
    pub(crate) globals: Globals,
    /// Where results go.
    pub(crate) out: Box<dyn Write>,
    /// The store that the shell holds open.
    pub(crate) shared: Option<Store>,
    /// The lines that are typed at the shell, if that reads them as they come: also answers.
    pub(crate) typed: Option<Rc<Receiver<io::Result<String>>>>,
    /// The shell reads lines by an editor, as answers are: it knows Ctrl-C as a key.
    pub(crate) has_editor: bool,
    /// The stores that the command has opened for writing. They are closed in order when it ends,
    /// also by an error.
    own: RefCell<Vec<Store>>,
    /// The store that the command has created to fill it. Where that fails before there is a table,
    /// nothing of it is left.
    created: RefCell<Option<Created>>,
    /// The transaction that the shell has begun: reads and writes of single keys belong to it.
    pub(crate) transaction: Option<Begun>,
}

/// A transaction that has begun, and the durability of its commit: the strongest that its writes
/// ask for.
pub(crate) struct Begun {
    pub(crate) transaction: Transaction,
    pub(crate) durability: Durability,
    /// A command of it has failed where no person saw that.
    pub(crate) has_failed: bool,
}

impl Begun {
    /// Notes a write of one key.
    pub(crate) fn write(
        &mut self,
        (table, op): (&BytesTable, WriteOp),
        (key, value): (&[u8], &[u8]),
        durability: Durability,
    ) {
        self.transaction.write(table, op, key, value);
        self.strengthen(durability);
    }

    /// Notes the durability of a write.
    pub(crate) fn strengthen(&mut self, durability: Durability) {
        if durability == Durability::Sync {
            self.durability = durability;
        }
    }
}

/// A store that was created on the way to something else.
struct Created {
    store: Store,
    /// Its directory was there already.
    had_dir: bool,
}

/// An open store, and whether it is this command's own.
#[derive(Clone)]
pub(crate) struct Opened {
    store: Store,
    shared: bool,
}

impl Session {
    /// A session that prints to the standard output.
    pub(crate) fn on_stdout(globals: Globals) -> Session {
        let out = Box::new(BufWriter::with_capacity(1 << 16, io::stdout()));
        zones::set(globals.zone.as_ref());
        Session {
            globals,
            out,
            shared: None,
            typed: None,
            has_editor: false,
            own: RefCell::default(),
            created: RefCell::default(),
            transaction: None,
        }
    }

    /// Asks a person, and returns the answer. Ctrl-C, and the end of input, are no answer.
    pub(crate) fn ask(&self, question: &str) -> io::Result<String> {
        if self.has_editor {
            return ask_by_editor(question);
        }
        let mut prompt = io::stderr();
        // Who cannot see it may still answer.
        let _ = write!(prompt, "{question}").and_then(|()| prompt.flush());
        let Some(lines) = &self.typed else {
            let mut answer = String::new();
            return io::stdin().read_line(&mut answer).map(|_| answer);
        };
        loop {
            match lines.recv_timeout(ANSWER_TIME) {
                Err(RecvTimeoutError::Timeout) if interrupt::check().is_ok() => {}
                Err(_) => return Ok(String::new()),
                Ok(line) => return line,
            }
        }
    }

    /// On a terminal, has the output shown screen by screen, unless that is not wanted.
    /// Returns the output before.
    pub(crate) fn page(&mut self) -> Option<Box<dyn Write>> {
        let paged = if self.globals.no_pager { None } else { Paged::of_process() }?;
        let out: Box<dyn Write> = Box::new(BufWriter::with_capacity(1 << 16, paged));
        Some(std::mem::replace(&mut self.out, out))
    }

    /// Ends the output: waits for a pager.
    pub(crate) fn end_output(&mut self) -> Result<(), Failure> {
        let flushed = self.flush();
        self.out = Box::new(io::sink());
        flushed
    }

    /// Flushes the buffer of the output.
    pub(crate) fn flush(&mut self) -> Result<(), Failure> {
        Ok(self.out.flush()?)
    }

    /// Prints a report: JSON with `--json`, else what `text` writes.
    pub(crate) fn report(
        &mut self,
        json: &dyn std::fmt::Display,
        text: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Failure> {
        if self.globals.json {
            writeln!(self.out, "{json}")?;
        } else {
            text(&mut self.out)?;
        }
        Ok(())
    }

    /// The options to open a store with.
    pub(crate) fn options(&self) -> Options {
        let mut options = Options::default().deletes_age_max(self.globals.deletes_age_max);
        if let Some(bytes) = self.globals.memory {
            options = options.memory_bytes(bytes);
        }
        if let Some(bytes) = self.globals.disk_reserve {
            options = options.disk_reserve_bytes(bytes as u64);
        }
        options
    }

    /// Opens a store to read it.
    pub(crate) fn read(&self, path: &Path) -> Result<Opened, Failure> {
        match &self.shared {
            Some(store) => Ok(Opened { store: store.clone(), shared: true }),
            None => Ok(Opened { store: self.open_to_read(path)?, shared: false }),
        }
    }

    /// A store opened for reading. Nothing on disk changes, and others may read it at the same
    /// time. Where another process writes to it, it is read as it is now.
    pub(crate) fn open_to_read(&self, path: &Path) -> Result<Store, Failure> {
        match Store::open_read_only(path, self.options()) {
            Err(error) if error.kind() == ErrorKind::Locked => {
                Ok(Store::open_secondary(path, self.options())?)
            }
            opened => Ok(opened?),
        }
    }

    /// Opens a store to write it, now: a transaction that has begun could not undo it.
    pub(crate) fn write(&self, path: &Path) -> Result<Opened, Failure> {
        match self.transaction {
            None => self.write_keys(path),
            Some(_) => Err(Failure::Usage(
                "that would be done at once, whether or not the transaction commits: commit or abort it first"
                    .to_owned(),
            )),
        }
    }

    /// Opens a store to write single keys, in the transaction where one has begun.
    pub(crate) fn write_keys(&self, path: &Path) -> Result<Opened, Failure> {
        match &self.shared {
            Some(store) => Ok(Opened { store: store.clone(), shared: true }),
            None => self.write_other(path),
        }
    }

    /// Opens a second store to read it; it may be the one that the shell holds open.
    pub(crate) fn read_other(&self, path: &Path) -> Result<Opened, Failure> {
        match &self.shared {
            Some(store) if is_one_place(store.path(), path) => {
                Ok(Opened { store: store.clone(), shared: true })
            }
            _ => Ok(Opened { store: self.open_to_read(path)?, shared: false }),
        }
    }

    /// Opens a second store to write it.
    pub(crate) fn write_other(&self, path: &Path) -> Result<Opened, Failure> {
        Ok(self.keep(self.open_to_write(path)?))
    }

    /// Opens a store to write it.
    pub(crate) fn open_to_write(&self, path: &Path) -> folddb::Result<Store> {
        self.once_unlocked(|| Store::open(path, self.options()))
    }

    /// Runs `work`, which locks a store, once no other process holds the lock, if it may wait for
    /// that.
    pub(crate) fn once_unlocked<T>(&self, work: impl FnMut() -> folddb::Result<T>) -> folddb::Result<T> {
        let Some(wait) = self.globals.wait_lock else {
            return once_unlocked_within(Duration::ZERO, || true, work);
        };
        once_unlocked_within(wait, || interrupt::flow().is_continue(), work).map_err(|error| {
            match error.kind() {
                ErrorKind::Locked => error
                    .context(format!("after --wait-lock {}", folddb::time::show_time(wait)))
                    .advise("wait longer, or end the other one; get, scan, export, dump and backup work meanwhile"),
                _ => error,
            }
        })
    }

    /// Notes that a store is to be closed.
    fn keep(&self, store: Store) -> Opened {
        self.own.borrow_mut().push(store.clone());
        Opened { store, shared: false }
    }

    /// Ends a command, failed or not: closes the stores that it has opened for writing, so that
    /// memory goes to runs and the log takes no space. Removes the store that it has created, if it
    /// failed to make a table in it.
    pub(crate) fn end(&self, done: Result<(), Failure>) -> Result<(), Failure> {
        let unused = self.created.take().filter(|made| done.is_err() && made.store.tables().is_empty());
        let removed = unused.map_or(Ok(()), Created::remove);
        let closed = self.close();
        done.and(removed).and(closed)
    }

    fn close(&self) -> Result<(), Failure> {
        let closed: Vec<_> = self.own.take().into_iter().map(Store::close).collect();
        Ok(closed.into_iter().collect::<Result<(), _>>()?)
    }

    /// Creates a store.
    pub(crate) fn create(&self, path: &Path) -> Result<Opened, Failure> {
        let created = match Store::create(path, self.options()) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                let _ = clear_unfinished(path); // what is wrong there is said by the next line
                Store::create(path, self.options())
            }
            created => created,
        };
        Ok(self.keep(created?))
    }

    /// Creates a store to be filled; it is removed where the command then fails without a table in
    /// it.
    pub(crate) fn create_to_fill(&self, path: &Path) -> Result<Opened, Failure> {
        let had_dir = path.exists();
        let was_empty = !had_dir || fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none());
        let opened = self.create(path).inspect_err(|failure| {
            // A full disk may end it between its first file and its last.
            let is_of_another = matches!(
                failure,
                Failure::Store(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::Locked)
            );
            if was_empty && !is_of_another && clear_created(path).is_ok() && !had_dir {
                let _ = fs::remove_dir(path);
            }
        })?;
        *self.created.borrow_mut() = Some(Created { store: opened.store.clone(), had_dir });
        Ok(opened)
    }
}

impl Created {
    fn remove(self) -> Result<(), Failure> {
        let path = self.store.path().to_owned();
        self.store.remove_unused()?;
        if self.had_dir {
            return Ok(());
        }
        match std::fs::remove_dir(&path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()), // no longer empty
            removed => removed.map_err(|error| Failure::file("remove", &path.display().to_string(), &error)),
        }
    }
}

/// Asks at a terminal that has a line editor.
fn ask_by_editor(question: &str) -> io::Result<String> {
    let mut editor = rustyline::DefaultEditor::new().map_err(io::Error::other)?;
    match editor.readline(question) {
        Err(ReadlineError::Interrupted | ReadlineError::Eof) => Ok(String::new()),
        answered => answered.map_err(io::Error::other),
    }
}

/// Runs `work`, which locks a store, when no other process holds the lock: within this time, and as
/// long as `goes_on` is true. Otherwise it fails as locked.
pub(crate) fn once_unlocked_within<T>(
    patience: Duration,
    goes_on: impl Fn() -> bool,
    mut work: impl FnMut() -> folddb::Result<T>,
) -> folddb::Result<T> {
    const PAUSE: Duration = Duration::from_millis(20);
    let since = Instant::now();
    loop {
        match work() {
            Err(error) if error.kind() == ErrorKind::Locked && since.elapsed() < patience && goes_on() => {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

/// Whether a table of this name is the command line's own: it is listed only where it is named.
pub(crate) fn is_reserved(table: &str) -> bool {
    table.starts_with("folddb_")
}

/// Removes what a creation of a store has left that was cut short: then there is no FORMAT, which
/// comes last. The lock shows that no other process is at it.
fn clear_unfinished(path: &Path) -> io::Result<()> {
    clear(path, |name| matches!(name, "LOCK" | "FORMAT.new") || name.starts_with("MANIFEST-"))
}

/// Removes what a creation of a store has left that failed, where nothing was before.
fn clear_created(path: &Path) -> io::Result<()> {
    clear(path, |name| {
        matches!(name, "LOCK" | "FORMAT.new" | "FORMAT")
            || name.starts_with("MANIFEST-")
            || name.ends_with(".log")
    })
}

/// Removes the files of a directory, if all are of a creation that no process is at.
fn clear(path: &Path, is_of_creation: impl Fn(&str) -> bool) -> io::Result<()> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(path)? {
        let entry = entry?;
        if !entry.file_name().to_str().is_some_and(&is_of_creation) {
            return Ok(());
        }
        paths.push(entry.path());
    }
    let lock = path.join("LOCK");
    if !paths.contains(&lock) || fs::File::open(&lock)?.try_lock().is_err() {
        return Ok(());
    }
    paths.iter().try_for_each(fs::remove_file)
}

/// Whether two paths lead to one directory.
pub(crate) fn is_one_place(one: &Path, other: &Path) -> bool {
    one.canonicalize().is_ok_and(|one| other.canonicalize().is_ok_and(|other| one == other))
}

impl Deref for Opened {
    type Target = Store;
    fn deref(&self) -> &Store {
        &self.store
    }
}

impl Opened {
    /// A table, or an error that suggests the one that was meant.
    pub(crate) fn known_table(&self, name: &str) -> Result<BytesTable, Failure> {
        self.store.bytes_table(name).map_err(|error| match error.kind() {
            ErrorKind::TableNotFound => Failure::NotFound(self.unknown_table(name)),
            _ => error.into(),
        })
    }

    fn unknown_table(&self, name: &str) -> String {
        let tables = self.store.tables();
        let known: Vec<&str> = tables.iter().map(String::as_str).filter(|name| !is_reserved(name)).collect();
        let path = self.store.path().display();
        format!("the store {path} has no table `{name}` ({})", human::suggestion(name, &known))
    }

    /// Closes the store before the command ends, for a command with more to say or do.
    pub(crate) fn close(self) -> Result<(), Failure> {
        if !self.shared {
            self.store.close()?;
        }
        Ok(())
    }
}
