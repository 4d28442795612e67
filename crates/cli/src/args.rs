//! The command line: every verb, its arguments and its help, defined once. Help, completions and
//! the man page are generated from here.

mod common;
mod data;
mod indexes;
mod feeds;
mod maintenance;
mod tools;

use clap::{Args, Parser, Subcommand};

use crate::human;

pub(crate) use common::{
    InputFormat, KeyArgs, OutputFormat, RangeArgs, RowsArgs, StoreArgs, StoreTableArgs, WriteArgs,
};
pub(crate) use data::{
    CountArgs, CreateArgs, DeleteArgs, DropArgs, ExportArgs, ExportDirArgs, FoldArgs, GetArgs, HeadArgs,
    HistoryArgs, ImportArgs, ImportDirArgs, PutArgs, ScanArgs,
};
pub(crate) use feeds::{FeedArgs, FeedDropArgs, FeedVerb, WatchArgs};
pub(crate) use indexes::{FindArgs, IndexAddArgs, IndexArgs, IndexDropArgs, IndexListArgs, IndexVerb};
pub(crate) use maintenance::{
    BackupArgs, BackupListArgs, BackupVerb, CheckFoldArgs, CompactArgs, DiffArgs, DigestArgs, DumpArgs,
    LoadArgs, ReclaimArgs, RepairArgs, RestoreArgs, SyncArgs, ValuesArgs, VerifyArgs,
};
pub(crate) use tools::{BenchArgs, CompletionsArgs, ManArgs, ShellArgs};

/// A store where the value of a key is the fold of everything written to it.
#[derive(Parser, Debug)]
#[command(name = "folddb", version, max_term_width = 100, propagate_version = true)]
#[command(
    after_help = "Exit codes: 0 done, 1 not found, 2 usage, 3 damaged or refused, 4 looked and found something wrong, \
    5 imported, but some rows (or all) were bad, or no row had a field that was named, 130 stopped by Ctrl-C.\n\
    Only `create`, `import --create`, `import-dir --create`, `restore`, `repair` and `load --create` make a store; a mistyped path never does."
)]
pub(crate) struct Cli {
    /// The settings for all verbs.
    #[command(flatten)]
    pub(crate) globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub(crate) verb: Verb,
}

/// The settings for all verbs.
#[derive(Args, Clone, Debug)]
pub(crate) struct Globals {
    /// Print reports and rows as JSON
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Memory for memtables, caches and merges together [default: 64MiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = human::parse_bytes)]
    pub(crate) memory: Option<usize>,
    /// Merge deletes that are older with what they delete, so that it is gone from the runs (90s,
    /// 36h, 30d)
    ///
    /// Ages are known of what is written while this is given: so give it to each verb that writes,
    /// and to the shell. Merges are made while a store is open, so that one of a program that is
    /// open all the time keeps to it best.
    #[arg(long, global = true, value_name = "TIME", value_parser = human::parse_time)]
    pub(crate) deletes_age_max: Option<std::time::Duration>,
    /// Wait until no other process writes to the store, at most this long (5s, 1m) [default: do not
    /// wait]
    #[arg(long, global = true, value_name = "TIME", value_parser = human::parse_time)]
    pub(crate) wait_lock: Option<std::time::Duration>,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Create a store, or a table in one
    Create(CreateArgs),
    /// List the tables of a store
    Tables(StoreArgs),
    /// Fold rows of a file (CSV, TSV, NDJSON; gzip; `-` is stdin) into a table
    ///
    /// Each row is folded into the value of its key. Rows have no identity: a file that is imported
    /// twice counts twice. An import that is broken off keeps the rows that were in, and folds them
    /// a second time when it is run again; so import again from what is left of the file, or into a
    /// new table. (Where a later value replaces the earlier, nothing is counted twice.) Without
    /// --fold, the fields of a table are fed by the columns of their names.
    ///
    /// Exit codes: 0 all rows are in, 5 some rows, or all, were bad and are not in, 3 the import
    /// stopped before the end (--strict stops at the first bad row; what was in by then stays), 2
    /// nothing was imported since the command line does not fit the file, 130 stopped by Ctrl-C,
    /// which says how many rows are in. Rows that come through a pipe are committed at least each
    /// second.
    Import(Box<ImportArgs>),
    /// Write rows to a file or to stdout, as CSV, TSV or NDJSON
    ///
    /// Until when values last is left out, which is said where some do not last for ever: `dump`
    /// keeps that.
    Export(ExportArgs),
    /// Make each file below a directory the value of its path, unless unchanged since
    ///
    /// A file that cannot be read, or whose name or bytes the table does not take, is refused by
    /// its name, and the others are stored.
    ///
    /// Exit codes: 0 all files are in, 5 some were refused, 3 it stopped before the end, 130 by
    /// Ctrl-C: what is stored stays, it says how much that is, and the next time goes on with the
    /// rest.
    ImportDir(ImportDirArgs),
    /// Write each value to a file below a directory, at the path that is its key
    ///
    /// A file that is there stays. Where it has other bytes than the value, or a key cannot be a
    /// file, that is said, and the exit code is 3.
    ExportDir(ExportDirArgs),
    /// Print the rows of a table, or of a range of it
    Scan(ScanArgs),
    /// Print the value of a key
    Get(GetArgs),
    /// Print what is known of the value of a key without reading it: size, hash, head
    Head(HeadArgs),
    /// Print what a key has been, newest first, as far as its table keeps that
    ///
    /// Long values are cut, and their size is told; --json has all of values of up to 16 MiB, and
    /// of longer ones only how long they are.
    ///
    /// When a state was written is known to about a second: several may have the same time. Hashed
    /// tables know it, and all tables know until when a value lasts, to the millisecond.
    History(HistoryArgs),
    /// Make the value of a key this one, whatever it was; reads nothing
    ///
    /// With --file the bytes of a file are the value, up to 4 GiB where the table separates them.
    Put(PutArgs),
    /// Fold an operand onto the value of a key; reads nothing
    Fold(FoldArgs),
    /// Make a key, or a range of keys, absent
    Delete(DeleteArgs),
    /// Count the keys of a table, or of a range of it
    Count(CountArgs),
    /// What the values of all keys fold to, or of a range of them
    ///
    /// It folds values as they are stored, in the order of the keys, which may be more than is
    /// shown of them. With `json-merge` a value may hold nulls, each of which takes a member out of
    /// what stands before it: {"a":1}, and behind it a key that shows {} and was written as
    /// {"a":null}, come to {}.
    Aggregate(CountArgs),
    /// Print the figures of a store, or of one table
    Stats(StoreTableArgs),
    /// Draw the tiers of a table: runs, parts, sizes
    Runs(StoreTableArgs),
    /// Draw the value log: its segments, and how much of each is alive
    ///
    /// A value that was overwritten or deleted counts as alive until a merge has met both;
    /// `compact` merges a table now.
    Values(ValuesArgs),
    /// Print what a change feed has to give: the rows the first time, then every batch since
    ///
    /// A feed is a name under which the store keeps what its consumer has not acknowledged. A watch
    /// prints what there is by then, acknowledges it and ends; run it again for what has come
    /// since.
    ///
    /// With --wait it goes on, and prints each batch as another process writes it, until --limit,
    /// or until nothing has come for as long as --wait says, or Ctrl-C. It holds no lock meanwhile.
    /// What it has printed it acknowledges when it ends; where another process has the store open
    /// by then it cannot, and says so. So each batch is printed at least once, and once only where
    /// a watch ends in order: one that was killed, or could not acknowledge, is followed by one
    /// that prints the same again. A batch shows when it is with the kernel, which may be before it
    /// is synced. Where the store is open for writing when such a watch begins, the feed has to be
    /// there, its rows printed: make it by a watch while nobody writes, or in the shell that
    /// writes.
    Watch(WatchArgs),
    /// List the change feeds of a store and what is held for them, or drop one
    Feed(FeedArgs),
    /// Give back the space of dead values
    Reclaim(ReclaimArgs),
    /// Merge all runs of a table into one
    #[command(alias = "optimize")]
    Compact(CompactArgs),
    /// Show every record of a key: where it lies and why it is still there
    Explain(KeyArgs),
    /// Look for a counter-example to the laws of a fold
    CheckFold(CheckFoldArgs),
    /// Check the files of a store that need not open: checksums, with --deep every record
    Verify(VerifyArgs),
    /// Salvage what is whole of a damaged store into a new one, and say what is lost
    Repair(RepairArgs),
    /// Say what is wrong with a store, what it costs, and what to do
    Doctor(StoreArgs),
    /// Remove a table and everything in it
    Drop(DropArgs),
    /// Freeze a store: from then on it is only read, by any number of processes
    Freeze(StoreArgs),
    /// Thaw a store, so that it can be written to again
    Thaw(StoreArgs),
    /// Print the rows that an index finds by a term, or by a range of terms
    Find(Box<FindArgs>),
    /// Add an index to a table, drop one, or list what there are
    Index(IndexArgs),
    /// Add a backup of a store to a directory of them, or list those that are there
    ///
    /// What the directory has already is not copied again.
    Backup(BackupArgs),
    /// Make a new store from a backup, which is checked first
    Restore(RestoreArgs),
    /// Write the content of a store as text, which `load` reads
    Dump(DumpArgs),
    /// Load what `dump` wrote
    Load(LoadArgs),
    /// Print the digest of a table or a range of it; keep it, or compare it with a kept one
    Digest(DigestArgs),
    /// List the keys that two stores do not have alike
    Diff(DiffArgs),
    /// Make the tables of a store what those of another are; only what differs is written
    Sync(SyncArgs),
    /// Run a benchmark
    Bench(BenchArgs),
    /// Type commands at a prompt, with history and completion
    Shell(ShellArgs),
    /// Print the completions for a shell
    Completions(CompletionsArgs),
    /// Print the man pages, or write them to files, one for each verb
    Man(ManArgs),
}

#[cfg(test)]
#[path = "args/tests.rs"]
mod tests;
