//! `folddb import STORE TABLE FILE...`: reads rows and folds them into a table.
//!
//! All errors of the command line are found before a store is created. Rows are written in batches
//! as they are read, so memory is bounded for files of any size, and at the end all are synced.
//! Each batch says how far its file is in, so that the same command goes on after any end.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use folddb::table_rules::TableRules;
use folddb::{ErrorKind, Store};

use crate::args::{ImportArgs, OutputFormat, RowsArgs};
use crate::exit_code::ExitCode;
use crate::failure::Failure;
use crate::import::aside::Asked;
use crate::import::bad_rows::BadRows;
use crate::import::files::{self, Named};
use crate::import::identity::Records;
use crate::import::in_pieces;
use crate::import::kept;
use crate::import::ledger::{self, Entry};
use crate::import::lines::Pattern;
use crate::import::mapping::{Mapping, Stated};
use crate::import::opening::{OpenFile, said};
use crate::import::parallel;
use crate::import::reading::{Import, Waits};
use crate::import::report::Totals;
use crate::import::sink::{Counts, Into, Reached, Sink};
use crate::import::source::{self, Source};
use crate::import::tape;
use crate::interrupt::{self, Hearing};
use crate::progress;
use crate::render::print_rows;
use crate::rules_words::{check_expires, check_table_name};
use crate::session::{Opened, Session};

pub(crate) fn run(args: &ImportArgs, session: &mut Session) -> Result<(), Failure> {
    let mut stated = Stated::parse(args, session.globals.zone.as_ref())?;
    args.regex.iter().try_for_each(|text| Pattern::given(text).map(drop))?;
    check_table_name(&args.table)?;
    if args.files.iter().any(|file| file == "-") && session.shared.is_some() {
        return Err(Failure::Usage("in a shell, stdin has the commands; name a file".to_owned()));
    }
    let Named { files: mut names, mut refused } = files::named(&args.files, &args.store)?;
    check_follow(args, &names, &mut refused)?;
    check_aside(args, &names)?;
    let hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let is_single = names == args.files && names.len() == 1;
    let source = if is_single { Some(open_source(args, &names, 0)?) } else { None };
    let (mut sink, known) = match open_sink(args, &mut stated, session) {
        Err(failure) if args.key.is_empty() => {
            return Err(with_columns(failure, args, &stated, (&names, source)));
        }
        opened => opened?,
    };
    let files = names.len() + refused.len();
    let mut blank = Vec::new();
    stated.settle_asked(sink.rules().as_table_rules());
    let first = match source {
        Some(source) => Some((0, OpenFile::of(args, &stated, &names[0], source)?)),
        None => first_that_fits(args, &stated, (&mut names, &mut blank), sink.rules().as_table_rules())?,
    };
    let again = args.again.then(|| import_again(args, &stated));
    let bad = match &first {
        Some((_, first)) => {
            let asked = asked(args, &stated, first, (&names, &known), again);
            BadRows::new(asked, &first.form, &first.rows.header())?
        }
        None => BadRows::default(),
    };
    let began = Instant::now();
    let bar = progress::bytes_bar(bytes_of(&names), "importing");
    let how = stated.how(args);
    let totals = Totals { files, is_single, blank, is_again: args.again, how, ..Totals::default() };
    let mut import = Import {
        args,
        stated: Arc::new(stated),
        bad,
        totals,
        known: Records::of(known),
        again,
        counts: Counts::default(),
        settled: BTreeSet::new(),
        moved: BTreeSet::new(),
        before: Reached::default(),
        before_open: None,
        is_broken: false,
        is_misfit: false,
        waits: Waits::default(),
        bar,
    };
    let ended = refused.into_iter().try_for_each(|(name, failure)| import.refuse(&name, failure));
    let ended = ended.and_then(|()| read_all(&mut import, &mut sink, &names, first));
    let ended = ended.and_then(|()| import.check_fits());
    let is_all_well = import.bad.count == 0 && import.totals.is_all_read();
    let ended = ended.and_then(|()| sink.finish(is_all_well));
    if ended.is_err() {
        sink.take_back_unfilled();
    }
    (import.totals.written, import.totals.left) = (sink.written(), sink.left());
    import.totals.can_go_on = sink.entry().is_some() && sink.written() > 0;
    import.bar.finish_and_clear();
    // Rows that were committed before a failure stay, and the report says how many.
    let ended = end(import, session, sink.into_store(), ended, began);
    hearing.into_iter().for_each(Hearing::stay);
    ended
}

/// The same, for a command line that names no key, with the columns of the first file to choose it
/// from.
fn with_columns(
    failure: Failure,
    args: &ImportArgs,
    stated: &Stated,
    (names, source): (&[String], Option<Source>),
) -> Failure {
    let (Failure::Usage(message), Some(name)) = (&failure, names.first()) else { return failure };
    let source = match source {
        Some(source) => Ok(source),
        // Of several, a pipe is not open yet, and could be opened once only.
        None if !std::fs::metadata(name).is_ok_and(|facts| facts.is_file()) => return failure,
        None => source::open_rows(name, said(args)),
    };
    match source.and_then(|source| OpenFile::of(args, stated, name, source)) {
        Ok(open) if !open.rows.names().is_empty() => {
            Failure::Usage(format!("{message} (of `{}`)", open.rows.names().join("`, `")))
        }
        _ => failure,
    }
}

/// Opens a file, as one that grows if it is the one that is followed.
fn open_source(args: &ImportArgs, names: &[String], file: usize) -> Result<Source, Failure> {
    match args.follow && file + 1 == names.len() {
        true => source::follow(&names[file], said(args)),
        false => source::open_rows(&names[file], said(args)),
    }
}

/// The first of several files that has what is asked for, and its number: bad rows are kept under
/// its columns. What is wrong with those before it is said when their turn comes. A pipe that has
/// nothing is taken out of their names: it cannot be opened again.
fn first_that_fits(
    args: &ImportArgs,
    stated: &Stated,
    (names, blank): (&mut Vec<String>, &mut Vec<String>),
    rules: &TableRules,
) -> Result<Option<(usize, OpenFile)>, Failure> {
    let mut file = 0;
    while let Some(name) = names.get(file) {
        let is_pipe = std::fs::metadata(name).is_ok_and(|facts| !facts.is_file() && !facts.is_dir());
        let opened = open_source(args, names, file).and_then(|source| {
            let mut open = OpenFile::of(args, stated, name, source)?;
            Mapping::bind(stated, rules, &mut open.rows).map(|_| open)
        });
        match opened {
            Ok(open) => return Ok(Some((file, open))),
            Err(failure) if args.strict || args.sorted || !failure.is_of_file() => return Err(failure),
            Err(Failure::Empty(_)) if is_pipe => blank.push(names.remove(file)),
            Err(failure) if is_pipe => return Err(failure),
            Err(_) => file += 1,
        }
    }
    Ok(None)
}

/// Which import it is that counts files again: the same command has the same number.
fn import_again(args: &ImportArgs, stated: &Stated) -> u128 {
    let absolute = |file: &String| std::path::absolute(file).unwrap_or_else(|_| file.into());
    let mut files: Vec<PathBuf> = args.files.iter().map(absolute).collect();
    files.sort_unstable();
    tape::hash(format!("{files:?} {}", stated.how(args)).as_bytes())
}

/// The file that keeps bad rows, if one is asked for. What comes from a pipe does not go on where
/// it was. One that counts files again goes on where its own records are, or, before any of it is
/// in, where the next records will be. Others go on in the file of one that has ended.
fn asked(
    args: &ImportArgs,
    stated: &Stated,
    first: &OpenFile,
    (names, known): (&[String], &[Entry]),
    again: Option<u128>,
) -> Option<Asked> {
    let path = args.bad_rows.clone()?;
    let own = || known.iter().filter(|entry| again.is_none() || entry.again == again);
    let next = || known.iter().map(|entry| entry.number).max().unwrap_or(0) + 1;
    let number = match again {
        Some(_) => own().map(|entry| entry.number).min().or_else(|| Some(next())),
        None => kept::again_of(&path),
    };
    let of = kept::import_of(&args.store.to_string_lossy(), &args.table, &stated.how(args), number);
    let noted = || own().filter_map(|entry| Some((entry.kept.clone()?, entry.done))).collect();
    Some(Asked { path, of, noted: first.inode.is_some().then(noted), read: names.to_vec() })
}

/// The file for bad rows must not be one that is read, by this import or by its next.
fn check_aside(args: &ImportArgs, names: &[String]) -> Result<(), Failure> {
    let Some(aside) = &args.bad_rows else { return Ok(()) };
    if aside.as_os_str() == "-" {
        let message = "--bad-rows names a file (for one that is called so: ./-; for an output: /dev/stderr)";
        return Err(Failure::Usage(message.to_owned()));
    }
    let is_same = |file: &String| match (aside.canonicalize(), Path::new(file).canonicalize()) {
        (Ok(aside), Ok(file)) => aside == file,
        _ => false,
    };
    if names.iter().any(is_same) {
        return Err(Failure::Usage("--bad-rows names a file that is read; name another".to_owned()));
    }
    let parent = aside.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let is_inside = |dir: &String| match (parent.canonicalize(), Path::new(dir).canonicalize()) {
        (Ok(parent), Ok(dir)) => dir.is_dir() && parent.starts_with(dir),
        _ => false,
    };
    match args.files.iter().find(|file| is_inside(file)) {
        Some(dir) => Err(Failure::Usage(format!(
            "--bad-rows names a file in the directory {dir}, of which all files are read; name one elsewhere"
        ))),
        None => Ok(()),
    }
}

/// What is followed is the last of the files that are named, which has to be there.
fn check_follow(
    args: &ImportArgs,
    names: &[String],
    refused: &mut Vec<(String, Failure)>,
) -> Result<(), Failure> {
    if let Some((_, failure)) = refused.pop_if(|(name, _)| args.follow && args.files.last() == Some(name)) {
        return Err(failure);
    }
    let is_dir = |file: &String| Path::new(file).is_dir() || !Path::new(file).exists();
    match names.last() {
        Some(last) if args.follow && last == "-" => Err(Failure::Usage(
            "a pipe is read until it ends, and committed each second: leave --follow out".to_owned(),
        )),
        Some(_) if args.follow && args.files.last().is_some_and(is_dir) => {
            let message = "--follow is for a file: name it, after those that are read before it";
            Err(Failure::Usage(message.to_owned()))
        }
        _ => Ok(()),
    }
}

/// The bytes of all files; none if one is a pipe.
fn bytes_of(names: &[String]) -> Option<u64> {
    let bytes =
        |name: &String| std::fs::metadata(name).ok().filter(|facts| facts.is_file()).map(|facts| facts.len());
    names.iter().map(bytes).sum()
}

/// Opens the table, or determines everything needed to create it, if requested. Also returns what
/// was imported into it.
fn open_sink<'a>(
    args: &'a ImportArgs,
    stated: &mut Stated,
    session: &'a Session,
) -> Result<(Sink<'a>, Vec<Entry>), Failure> {
    let store = match session.write(&args.store) {
        Ok(store) => Some(store),
        Err(Failure::Store(error)) if error.kind() == ErrorKind::StoreNotFound && args.create => None,
        Err(failure) => return Err(failure),
    };
    let existing = match store.as_ref().map(|store| store.known_table(&args.table)) {
        None => None,
        Some(Ok(table)) => Some(table),
        Some(Err(Failure::NotFound(_))) if args.create => None,
        Some(Err(Failure::NotFound(message))) => {
            return Err(Failure::NotFound(format!("{message}; --create creates it")));
        }
        Some(Err(failure)) => return Err(failure),
    };
    let known = existing.as_ref().map(|table| table.rules().as_table_rules());
    stated.settle_key(&args.table, known)?;
    let rules = stated.rules(&args.table, known)?;
    if args.ttl.ttl.is_some() {
        check_expires(&args.table, &rules)?;
    }
    let into = Into {
        path: &args.store,
        table: &args.table,
        is_sorted: args.sorted,
        lifetime: args.ttl.lifetime(),
        durability: args.durability.into(),
        is_strict: args.strict,
    };
    if let (Some(store), Some(table)) = (&store, existing) {
        table.rules().check_writable()?;
        if args.sorted {
            let message =
                format!("--sorted loads a new table, and `{}` exists; leave --sorted out", args.table);
            return Err(Failure::Usage(message));
        }
        let known = ledger::entries(store, Some(&args.table))?.into_iter().map(|(_, entry)| entry).collect();
        return Ok((Sink::of_table(session, into, store.clone(), table), known));
    }
    let rules = Store::check_table(&args.table, &rules, &session.options())?;
    Ok((Sink::to_come(session, into, store, rules), Vec::new()))
}

/// Imports all files, the first of which is open.
fn read_all(
    import: &mut Import<'_>,
    sink: &mut Sink<'_>,
    names: &[String],
    mut first: Option<(usize, OpenFile)>,
) -> Result<(), Failure> {
    let (followed, read) = match names.split_last() {
        Some((last, before)) if import.args.follow => (Some(last), before),
        _ => (None, names),
    };
    let of_followed = first.take_if(|(file, _)| *file == read.len()).map(|(_, open)| open);
    match threads_of(import.args) {
        Some(threads) if !read.is_empty() => in_pieces::import(import, sink, read, first, threads)?,
        _ => {
            let mut bytes_before = 0;
            for (file, name) in read.iter().enumerate() {
                import.bar.set_position(bytes_before);
                let open = first.take_if(|(first, _)| *first == file).map(|(_, open)| open);
                import.file(sink, name, open, bytes_before, false)?;
                bytes_before += std::fs::metadata(name).map_or(0, |facts| facts.len());
            }
        }
    }
    match followed {
        Some(name) => import.follow(sink, name, of_followed),
        None => Ok(()),
    }
}

/// On how many threads files are read in pieces; none if rows are read one by one.
fn threads_of(args: &ImportArgs) -> Option<usize> {
    let is_one_by_one = args.strict || args.sorted || args.ttl.ttl.is_some();
    match args.threads {
        _ if is_one_by_one => None,
        Some(1) => None,
        stated => Some(stated.unwrap_or_else(parallel::threads)),
    }
}

/// Reports, and says by its result whether all rows are in.
fn end(
    mut import: Import<'_>,
    session: &mut Session,
    store: Option<Opened>,
    ended: Result<(), Failure>,
    began: Instant,
) -> Result<(), Failure> {
    let set_aside = import.bad.finish();
    store.as_ref().map(|store| store.sync()).transpose()?;
    let has_table = |store: &Opened| store.tables().contains(&import.args.table);
    let is_there = store.as_ref().is_some_and(has_table);
    import.totals.has_table = is_there;
    import.note_open_ended();
    let how = match &ended {
        Ok(()) => "",
        Err(Failure::Interrupted) => ", then stopped by Ctrl-C",
        Err(_) => ", then stopped",
    };
    if let (Err(failure), 0, true) = (&ended, import.totals.files_read, import.totals.passed.is_empty())
        && !matches!(failure, Failure::Interrupted)
    {
        return ended; // before anything was read
    }
    let seconds = began.elapsed().as_secs_f64();
    import.totals.report(session, &import.args.table, &import.bad, (how, seconds))?;
    ended.map_err(|failure| match failure {
        Failure::Interrupted => Failure::Reported(ExitCode::Interrupted),
        other => other.after(import.totals.written > 0),
    })?;
    set_aside?;
    if let Some(store) = store.as_ref().filter(|_| is_there) {
        note_end(&import, store)?; // it is told, also where Ctrl-C ends what is shown
        show(import.args, session, store)?;
    }
    store.map(Opened::close).transpose()?;
    let is_lost = import.bad.count + import.totals.bad_before() > 0;
    match is_lost || !import.totals.is_all_in() {
        true => Err(Failure::Reported(ExitCode::NotAllIn)),
        false => Ok(()),
    }
}

/// Notes that the import has ended: the same command, which passes its files over, has no need to
/// tell of their bad rows, and counts them anew where it counts again. Who is killed before that
/// has said what is in.
fn note_end(import: &Import<'_>, store: &Opened) -> Result<(), Failure> {
    ledger::note_all(store, &import.args.table, &import.at_end())
}

/// Prints the first rows of the table, if that is asked for.
fn show(args: &ImportArgs, session: &mut Session, store: &Opened) -> Result<(), Failure> {
    let Some(limit) = args.show else { return Ok(()) };
    let table = store.known_table(&args.table)?;
    let rows = RowsArgs { limit: Some(limit), ..RowsArgs::default() };
    let format = if session.globals.json { OutputFormat::Ndjson } else { OutputFormat::Table };
    print_rows::print(&mut session.out, &table, &rows, format, None)?;
    Ok(())
}
