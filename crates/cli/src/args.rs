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
use crate::zones::Zone;

pub(crate) use common::{
    DurabilityArgs, DurabilityName, ImportsArgs, InputFormat, KeyArgs, LookArgs, OutputFormat, RangeArgs,
    RowsArgs, StatsArgs, StoreArgs, StoreTableArgs, WriteArgs,
};
pub(crate) use data::{
    AggregateArgs, AlterArgs, CountArgs, CreateArgs, DeleteArgs, DropArgs, ExportArgs, ExportDirArgs,
    FoldArgs, GetArgs, HeadArgs, HistoryArgs, ImportArgs, ImportDirArgs, PutArgs, ScanArgs, Switch,
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
    after_help = "Exit codes: 0 done; 1 the key has no value; 2 the command line is wrong; 3 the store or the system refuses; \
    4 damaged, or a check found something wrong; 5 imported, but some rows (or all) were bad, or no row had a field that was named; \
    6 no such store or table; 7 no such file; 8 busy: later it may succeed; 130 stopped by Ctrl-C.\n\
    Only `create`, `import --create`, `import-dir --create`, `restore`, `repair` and `load --create` make a store; a mistyped path never does.\n\
    FOLDDB_STORE: where this is set, it is the store, and lines are typed without one, as in the shell: folddb get TABLE KEY."
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
    /// Within this time after a delete, remove what it deleted from the runs (90s, 36h, 30d)
    ///
    /// The age of a delete is known only if this is given when it is written, so give it to each
    /// verb that writes, and to the shell. Merges run while a store is open: the limit is kept best
    /// by a program that keeps the store open.
    #[arg(long, global = true, value_name = "TIME", value_parser = human::parse_time)]
    pub(crate) deletes_age_max: Option<std::time::Duration>,
    /// Refuse writes, but not deletes, while less of the file system than this is free [default:
    /// 64MiB]
    #[arg(long, global = true, value_name = "SIZE", value_parser = human::parse_bytes)]
    pub(crate) disk_reserve: Option<usize>,
    /// Do not show long output screen by screen; otherwise PAGER does, or less, on a terminal
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,
    /// Wait until no other process writes to the store, at most this long (5s, 1m) [default: do not
    /// wait]
    #[arg(long, global = true, value_name = "TIME", value_parser = human::parse_time)]
    pub(crate) wait_lock: Option<std::time::Duration>,
    /// Show times in this zone: Europe/Berlin, +02:00 [default: UTC]
    ///
    /// It is also that of keys that are times, where they are typed without an offset, and of
    /// `import`: there it is the zone of times that name none, and in which days and hours are cut.
    #[arg(long, global = true, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) zone: Option<Zone>,
}

/// What to do.
#[derive(Subcommand, Debug)]
pub(crate) enum Verb {
    /// Create a store, or a table in one
    Create(CreateArgs),
    /// Alter rules of a table that do not change what its data mean
    ///
    /// Blocks, filters, compression and summaries are taken over by the parts that flushes and
    /// merges write from then on; `stats` shows how much was written before, and `compact` rewrites
    /// it at once. Everything else about values applies to those that are written from then on.
    /// What would change the meaning (keys, order, fold, kind, ...) is refused: dump the table,
    /// change the rule in its line, leave out the last line, and load that with --partial. Indexes
    /// are added and dropped by `index`.
    Alter(AlterArgs),
    /// List the tables of a store
    Tables(StoreArgs),
    /// Fold rows of files (CSV, JSON, logs, ...; packed or not; `-` is stdin) into a table
    ///
    /// Each row is folded into the value of its key. The store notes how far each file is in,
    /// together with its rows: after an import that was interrupted the same command goes on where
    /// that ended, and a file that is in is passed over (--again counts it again). A file is known
    /// by its content, whatever its name is; where it has grown, the rest is read. Of a pipe
    /// nothing is known. Without --fold, each field of a table takes the column of its name.
    ///
    /// Exit codes: 0 all rows are in, 5 some rows, or all, were bad and are not in, 3 the import
    /// stopped before the end (--strict stops at the first bad row; the rows before it stay), 2
    /// nothing was imported because the command line does not fit the file, 130 stopped by Ctrl-C,
    /// which reports how many rows are in. Rows from a pipe are committed at least once a second.
    Import(Box<ImportArgs>),
    /// List the files that were imported into a table, and how far each is in
    Imports(ImportsArgs),
    /// Write rows to a file or to stdout, as CSV, TSV, NDJSON, Markdown or SQL
    ///
    /// The times at which values expire are left out, with a note if there are any; `dump` keeps
    /// them.
    Export(ExportArgs),
    /// Store each file below a directory as the value of its path, unless it is unchanged
    ///
    /// A file that cannot be read, or whose name or bytes the table does not take, is refused by
    /// name, and the others are stored.
    ///
    /// Exit codes: 0 all files are in, 5 some were refused, 3 it stopped before the end, 130
    /// stopped by Ctrl-C. What is stored stays, and is reported; the next import continues with the
    /// rest.
    ImportDir(ImportDirArgs),
    /// Write each value to a file below a directory, at the path that is its key
    ///
    /// Existing files are left alone. If one differs from the value, or a key cannot be the name of
    /// a file, that is reported, and the exit code is 3; it is 4 if a value is damaged.
    ExportDir(ExportDirArgs),
    /// Print the rows of a table, or of a range of it
    Scan(ScanArgs),
    /// Print the value of a key
    Get(GetArgs),
    /// Print what is known of the value of a key without reading it: size, hash, head
    Head(HeadArgs),
    /// Print the states that a key had, newest first, as far back as its table keeps them
    ///
    /// Long values are cut, and their size is printed; --json has values of up to 16 MiB in full,
    /// and the size of longer ones.
    ///
    /// The time of a write is known to about a second, so several states may have the same time.
    /// Hashed tables have it to the millisecond, as all tables have the times at which values
    /// expire.
    History(HistoryArgs),
    /// Set the value of a key, whatever it was; reads nothing
    ///
    /// With --file the bytes of a file are the value, up to 4 GiB if the table separates values.
    Put(PutArgs),
    /// Fold an operand onto the value of a key; reads nothing
    Fold(FoldArgs),
    /// Delete a key, or a range of keys
    Delete(DeleteArgs),
    /// Count the keys of a table, or of a range of it
    Count(CountArgs),
    /// Fold the values of all keys, or of a range of them, into one
    ///
    /// It folds values as they are stored, in the order of the keys. That can be more than is
    /// shown: with `json-merge` a stored value may hold nulls, each of which removes a member of
    /// the values before it. {"a":1} and then a key that was written as {"a":null}, and shows {},
    /// fold to {}. With --by there is a row for each value of some elements of the key.
    Aggregate(AggregateArgs),
    /// Print the figures of a store, or of one table
    Stats(StatsArgs),
    /// Draw the tiers of a table: runs, their files, sizes
    Runs(StoreTableArgs),
    /// Show the value log: its segments, and how much of each is alive
    ///
    /// A value that was overwritten or deleted counts as alive until a merge has seen both records;
    /// `compact` merges a table now.
    Values(ValuesArgs),
    /// Print a change feed: the present rows the first time, then every batch since
    ///
    /// A feed is a name under which the store keeps every change until its consumer acknowledges
    /// it. A watch prints what is there, acknowledges it and ends; run it again for what came
    /// since.
    ///
    /// With --wait it continues, and prints each batch as another process writes it, until --limit,
    /// until nothing has come for the time that --wait gives, or until Ctrl-C. Meanwhile it holds
    /// no lock. It acknowledges what it has printed when it ends; if another process has the store
    /// open then, it cannot, and says so. So each batch is printed at least once: a watch that was
    /// killed, or could not acknowledge, is followed by one that prints the same again. A batch is
    /// printed when the kernel has it, which may be before it is synced. If the store is open for
    /// writing when such a watch begins, the feed must exist and its first rows must have been
    /// printed: create it by a watch while nobody writes, or in the shell that writes.
    Watch(WatchArgs),
    /// List the change feeds of a store and what is held for them, or drop one
    Feed(FeedArgs),
    /// Free the space of dead values
    Reclaim(ReclaimArgs),
    /// Merge all runs of a table into one
    #[command(alias = "optimize")]
    Compact(CompactArgs),
    /// Show every record of a key: where it is, and why it is still there
    Explain(KeyArgs),
    /// Look for a counter-example to the laws of a fold
    CheckFold(CheckFoldArgs),
    /// Check the files of a store: their checksums, or with --deep every record
    ///
    /// This needs no store that opens.
    Verify(VerifyArgs),
    /// Save what is intact of a damaged store into a new one, and report what is lost
    Repair(RepairArgs),
    /// Report what is wrong with a store, what it costs, and what to do
    Doctor(StoreArgs),
    /// Remove a table and everything in it
    Drop(DropArgs),
    /// Freeze a store: from then on it can only be read, by any number of processes
    Freeze(StoreArgs),
    /// Thaw a store, so that it can be written to again
    Thaw(StoreArgs),
    /// Print the rows that an index finds for a term, or for a range of terms
    Find(Box<FindArgs>),
    /// Add an index to a table, drop one, or list them
    Index(IndexArgs),
    /// Back up a store to a directory of backups, or list those
    ///
    /// Files that the directory already has are not copied again.
    Backup(BackupArgs),
    /// Make a new store from a backup, which is checked first
    Restore(RestoreArgs),
    /// Write the content of a store as text, which `load` reads
    Dump(DumpArgs),
    /// Load what `dump` wrote
    Load(LoadArgs),
    /// Print the digest of a table or a range of it; save it, or compare it with a saved one
    Digest(DigestArgs),
    /// List the keys in which two stores differ
    Diff(DiffArgs),
    /// Make the tables of one store equal to those of another; writes only what differs
    Sync(SyncArgs),
    /// Run a benchmark
    Bench(BenchArgs),
    /// Type commands at a prompt, with history and completion
    ///
    /// Other input is a script: an error does not end it. Its exit code is the first one that is
    /// neither 0 nor 1, of a command or of a transaction that was not committed; if nothing failed,
    /// it is 1 where a key was absent, and else 0.
    Shell(ShellArgs),
    /// Print the completions for a shell
    Completions(CompletionsArgs),
    /// Print the man pages, or write them to files, one for each verb
    Man(ManArgs),
}

impl Verb {
    /// Whether it prints what a person reads screen by screen.
    pub(crate) fn is_paged(&self) -> bool {
        match self {
            Verb::Get(args) => !args.raw && args.to.is_none(),
            Verb::Export(args) => args.to.is_none() && args.file.is_none(),
            Verb::Dump(args) => args.to.is_none(),
            Verb::Stats(args) => args.watch.is_none(),
            Verb::Scan(_) | Verb::Find(_) | Verb::Aggregate(_) | Verb::History(_) | Verb::Explain(_) => true,
            Verb::Tables(_) | Verb::Runs(_) | Verb::Values(_) | Verb::Imports(_) | Verb::Diff(_) => true,
            _ => false,
        }
    }
}

#[cfg(test)]
#[path = "args/tests.rs"]
mod tests;
