//! `folddb dump STORE [TABLE...]`: the contents of a store as text, which `load` reads, on stdout
//! or in a file; with `--at` as of a past moment.

use std::io::{self, Write};

use folddb::Store;
use folddb::maintenance::DumpReport;
use serde_json::json;

use crate::args::DumpArgs;
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::messages;
use crate::out_file;
use crate::progress;
use crate::session::Session;

pub(crate) fn run(args: &DumpArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    for name in &args.tables {
        store.known_table(name)?;
    }
    human::check_over(args.at, store.now())?;
    let Some(to) = args.to.as_deref().filter(|to| *to != "-") else {
        let mut out = Watched::new(&mut session.out);
        let dumped = seen(&store, args, &mut out);
        return out.report(dumped).map(|_| ());
    };
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let (dumped, bytes) = out_file::write_new(to, |out| dump(&store, args, out))?;
    report(session, to, &dumped, bytes)
}

fn dump(store: &Store, args: &DumpArgs, out: &mut dyn Write) -> Result<(DumpReport, u64), Failure> {
    let bar = progress::bytes_bar(None, "dumping");
    let mut out = Watched { bar: Some(bar.clone()), ..Watched::new(out) };
    let dumped = seen(store, args, &mut out);
    bar.finish_and_clear();
    let bytes = out.bytes;
    Ok((out.report(dumped)?, bytes))
}

/// The dump of the present, or of the requested moment.
fn seen(store: &Store, args: &DumpArgs, out: &mut dyn Write) -> folddb::Result<DumpReport> {
    match args.at {
        Some(as_of) => store.dump_at(&args.tables, as_of, out),
        None => store.dump(&args.tables, out),
    }
}

fn report(session: &mut Session, to: &str, dumped: &DumpReport, bytes: u64) -> Result<(), Failure> {
    let DumpReport { seq, tables, records, failing, hash, .. } = *dumped;
    if session.globals.json {
        let report = json!({
            "file": to,
            "seq": u64::from(seq),
            "tables": tables,
            "records": records,
            "failing": failing,
            "bytes": bytes,
            "hash": format!("{hash:016x}"),
        });
        return session.report(&report, |_| Ok(()));
    }
    let (tables, records) = (human::plural(tables, "table"), human::plural(records, "record"));
    let mut line = format!("dumped {records} of {tables} into {to}, as of seq {}", human::count(seq.into()));
    if failing > 0 {
        line.push_str(&format!("; the fold fails on {}, dumped as their ops", human::plural(failing, "key")));
    }
    messages::print(&line);
    Ok(())
}

/// Counts what is written, and remembers why writing failed.
struct Watched<'a> {
    out: &'a mut dyn Write,
    bytes: u64,
    bar: Option<indicatif::ProgressBar>,
    failed: Option<io::Error>,
}

impl<'a> Watched<'a> {
    fn new(out: &'a mut dyn Write) -> Watched<'a> {
        Watched { out, bytes: 0, bar: None, failed: None }
    }

    fn note(&mut self, error: io::Error) -> io::Error {
        let kind = error.kind();
        self.failed = Some(error);
        kind.into()
    }

    /// The outcome: a reader that wants no more is not a failure.
    fn report(self, dumped: folddb::Result<DumpReport>) -> Result<DumpReport, Failure> {
        match (dumped, self.failed) {
            (Err(_), Some(cause)) => Err(cause.into()),
            (dumped, _) => Ok(dumped?),
        }
    }
}

impl Write for Watched<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let len = self.out.write(bytes).map_err(|error| self.note(error))?;
        self.bytes += len as u64;
        if let Some(bar) = &self.bar {
            bar.set_position(self.bytes);
        }
        Ok(len)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush().map_err(|error| self.note(error))
    }
}
