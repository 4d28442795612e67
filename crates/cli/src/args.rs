//! The command line: every verb, its arguments and its help, defined once. Help, completions and the man page
//! are generated from here.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use folddb::{AsOf, Durability, Lifetime};

use crate::human;

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
    /// Merge deletes that are older with what they delete, so that it is gone from the runs (90s, 36h, 30d)
    ///
    /// Ages are known of what is written while this is given: so give it to each verb that writes, and to the shell. Merges
    /// are made while a store is open, so that one of a program that is open all the time keeps to it best.
    #[arg(long, global = true, value_name = "TIME", value_parser = human::parse_time)]
    pub(crate) deletes_age_max: Option<std::time::Duration>,
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
    /// Each row is folded into the value of its key. Rows have no identity: a file that is imported twice counts twice. An
    /// import that is broken off keeps the rows that were in, and folds them a second time when it is run again; so import
    /// again from what is left of the file, or into a new table. (Where a later value replaces the earlier, nothing is
    /// counted twice.) Without --fold, the fields of a table are fed by the columns of their names.
    ///
    /// Exit codes: 0 all rows are in, 5 some rows, or all, were bad and are not in, 3 the import stopped before the end (--strict
    /// stops at the first bad row; what was in by then stays), 2 nothing was imported since the command line does not fit the file,
    /// 130 stopped by Ctrl-C, which says how many rows are in. Rows that come through a pipe are committed at least each second.
    Import(Box<ImportArgs>),
    /// Write rows to a file or to stdout, as CSV, TSV or NDJSON
    ///
    /// Until when values last is left out, which is said where some do not last for ever: `dump` keeps that.
    Export(ExportArgs),
    /// Make each file below a directory the value of its path, unless unchanged since
    ///
    /// A file that cannot be read, or whose name or bytes the table does not take, is refused by its name, and the others are stored.
    ///
    /// Exit codes: 0 all files are in, 5 some were refused, 3 it stopped before the end, 130 by Ctrl-C: what is stored stays, it says
    /// how much that is, and the next time goes on with the rest.
    ImportDir(ImportDirArgs),
    /// Write each value to a file below a directory, at the path that is its key
    ///
    /// A file that is there stays. Where it has other bytes than the value, or a key cannot be a file, that is said, and the exit
    /// code is 3.
    ExportDir(ExportDirArgs),
    /// Print the rows of a table, or of a range of it
    Scan(ScanArgs),
    /// Print the value of a key
    Get(GetArgs),
    /// Print what is known of the value of a key without reading it: size, hash, head
    Head(HeadArgs),
    /// Print what a key has been, newest first, as far as its table keeps that
    ///
    /// Long values are cut, and their size is told; --json has all of values of up to 16 MiB, and of longer ones only how
    /// long they are.
    ///
    /// When a state was written is known to about a second: several may have the same time. Hashed tables know it, and all
    /// tables know until when a value lasts, to the millisecond.
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
    /// It folds values as they are stored, in the order of the keys, which may be more than is shown of them. With
    /// `json-merge` a value may hold nulls, each of which takes a member out of what stands before it: {"a":1}, and behind it
    /// a key that shows {} and was written as {"a":null}, come to {}.
    Aggregate(CountArgs),
    /// Print the figures of a store, or of one table
    Stats(StoreTableArgs),
    /// Draw the tiers of a table: runs, parts, sizes
    Runs(StoreTableArgs),
    /// Draw the value log: its segments, and how much of each is alive
    ///
    /// A value that was overwritten or deleted counts as alive until a merge has met both; `compact` merges a table now.
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

/// A store.
#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
}

/// `values`.
#[derive(Args, Debug)]
pub(crate) struct ValuesArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Also say when the living values of each segment were written, as far as keys tell it; reads all keys, and no value
    #[arg(long)]
    pub(crate) ages: bool,
}

/// A store, and perhaps one of its tables.
#[derive(Args, Debug)]
pub(crate) struct StoreTableArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Only this table
    pub(crate) table: Option<String>,
}

/// `create`.
#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// The directory of the store; made when it is not there
    pub(crate) store: PathBuf,
    /// A table to create in it
    pub(crate) table: Option<String>,
    /// Ready-made rules: replace, counter, stats, blob, blobs, postings
    #[arg(long, value_name = "NAME", requires = "table", conflicts_with_all = ["key", "fold", "value"])]
    pub(crate) like: Option<String>,
    /// sorted, or hashed: an index in memory, one read for a get, no order of keys [default: sorted]
    #[arg(long, value_name = "KIND", requires = "table")]
    pub(crate) kind: Option<String>,
    /// Type of the keys: bytes, utf8, u64, i64, u32, tuple, tuple(text,int,...)
    #[arg(long, value_name = "TYPE", requires = "table", default_value = "utf8")]
    pub(crate) key: String,
    /// Names of the parts of the key, which head its columns
    #[arg(long, value_name = "NAMES", requires = "table", value_delimiter = ',')]
    pub(crate) key_names: Vec<String>,
    /// An index, as NAME:RULE, see `index add`; may be given several times
    #[arg(long, value_name = "INDEX", requires = "table")]
    pub(crate) index: Vec<String>,
    /// How values fold: sum:u64, stats:f64, set, {name: fold, ...}, ... [default: replace]
    ///
    /// replace, first: the latest, the first value.
    /// sum:i64: the sum; beyond 2^63 it wraps around, without a word.
    /// sum:u64: the sum; once it is 2^64-1 it stays there, and is shown as "or more".
    /// sum:i128: the sum, where one of these might not hold it; it wraps beyond 2^127.
    /// sum:f64: the sum, exact until it is read.
    /// min:T, max:T: the extreme; T is i64, u64, f64 or bytes.
    /// stats:f64: count, sum, smallest, largest, mean, variance.
    /// append:SEP: everything, one after the other.
    /// set, intersect, bitmap: union, intersection of byte strings; union of u32.
    /// counters: a map of names to counts, each as sum:i64.
    /// lww:ts: the latest by a time inside the value.
    /// top:K: the K members with the largest scores.
    /// hll:P: about how many distinct members.
    /// quantiles:ALPHA: any quantile, within a relative error.
    /// json-merge: JSON documents, merged name by name.
    /// matmul:N:T: the product of matrices, in order.
    /// patch: an object and edits on it.
    /// {a: SPEC, b: SPEC}: a record, each field by its own fold.
    #[arg(long, value_name = "SPEC", requires = "table", verbatim_doc_comment)]
    pub(crate) fold: Option<String>,
    /// Type of the values of a table that replaces: bytes, utf8, u8 to u128, i8 to i128, f32, f64, bool, json
    #[arg(long, value_name = "TYPE", requires = "table")]
    pub(crate) value: Option<String>,
    /// Keys run backwards
    #[arg(long, requires = "table")]
    pub(crate) reversed: bool,
    /// A complete value equal to this one means that the key is absent
    #[arg(long, value_name = "VALUE", requires = "table", allow_hyphen_values = true)]
    pub(crate) delete_when: Option<String>,
    /// Values of so many bytes and more are separated from their keys, and are written once
    #[arg(long, value_name = "SIZE", requires = "table", value_parser = human::parse_bytes)]
    pub(crate) separate: Option<usize>,
    /// Where values separated lie: segments, or files: each in a file of its own [default: segments]
    #[arg(long, value_name = "PLACE", requires = "table")]
    pub(crate) value_placement: Option<String>,
    /// What of a value is its head, which lies with its key: none, first:N bytes, json:POINTER
    #[arg(long, value_name = "RULE", requires = "table")]
    pub(crate) head: Option<String>,
    /// How much of the past is kept: latest, versions:N of each key, window:TIME (90s, 15m, 30d), forever
    #[arg(long, value_name = "HOW_MUCH", requires = "table")]
    pub(crate) keep: Option<String>,
    /// How long values last: a time (90s, 15m, 30d), or by-write: as --ttl of each write says, else for ever
    #[arg(long, value_name = "TIME", requires = "table")]
    pub(crate) expire: Option<String>,
    /// Keep its log for ever, so that repair --rebuild-index can make its runs anew
    #[arg(long, requires = "table")]
    pub(crate) archive_log: bool,
    /// Blocks say what they come to, so that count and aggregate read little once runs are merged
    #[arg(long, requires = "table")]
    pub(crate) summaries: bool,
    /// Size of a block, the unit of reading, in bytes
    #[arg(long, value_name = "SIZE", requires = "table", value_parser = human::parse_bytes)]
    pub(crate) block: Option<usize>,
    /// Compress runs with LZ4
    #[arg(long, requires = "table")]
    pub(crate) lz4: bool,
    /// Filter bits a key, 0 for none [default: 10]
    #[arg(long, value_name = "BITS", requires = "table")]
    pub(crate) filter_bits: Option<u8>,
}

/// `import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The file to read; `-` is stdin
    pub(crate) file: String,
    /// Create the store and the table when they are not there
    #[arg(long)]
    pub(crate) create: bool,
    /// Rows come in the order of their keys, and make a new table at once, each written once; nothing is imported where one does not
    ///
    /// Refused for a table that is hashed, whose values are separated or expire, that has indexes or archives its log (--archive-log),
    /// and where a feed tells of it: an import without it, in batches, serves these. Indexes can be added afterwards.
    #[arg(long, requires = "create", conflicts_with_all = ["durability", "ttl"])]
    pub(crate) sorted: bool,
    /// Columns that make the key, in the order of its elements; a table that is there may know their names
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',')]
    pub(crate) key: Vec<String>,
    /// Types of the key's columns: text, int, double, bool, bytes, uuid, ...; one column may also be u64, i64, u32
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) key_types: Option<Vec<String>>,
    /// The fold, and the columns that feed it: 'flights: sum:u64 = 1, delay: stats:f64 = dep_delay'; `create --help` lists folds
    #[arg(long, value_name = "FIELDS", conflicts_with_all = ["value_json"])]
    pub(crate) fold: Option<String>,
    /// The column that holds the value; a list or an object in it is its JSON text, but with --value-type json
    #[arg(long, value_name = "COLUMN")]
    pub(crate) value: Option<String>,
    /// The type of the values, where a later one replaces the earlier: bytes, utf8, u8 to u128, i8 to i128, f32, f64, bool, json
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["fold", "value_json"])]
    pub(crate) value_type: Option<String>,
    /// All other columns are the value, as a JSON object
    #[arg(long, conflicts_with = "value")]
    pub(crate) value_json: bool,
    /// What the file holds, where its name does not say
    #[arg(long, value_enum)]
    pub(crate) format: Option<InputFormat>,
    /// What stands between fields
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// The first line is a row; columns are called c1, c2, ...
    #[arg(long)]
    pub(crate) no_header: bool,
    /// A text that means a missing value: NA, NULL, \N; for folds an empty field does too
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) null: Vec<String>,
    /// Fields that no row of an NDJSON file need have; one that is misspelt would feed nothing
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) optional: Vec<String>,
    /// Write bad rows to this CSV file, which must not be there yet, with line number and reason
    #[arg(long, value_name = "FILE")]
    pub(crate) bad_rows: Option<PathBuf>,
    /// Stop at the first bad row
    #[arg(long)]
    pub(crate) strict: bool,
    /// How long the values last
    #[command(flatten)]
    pub(crate) ttl: TtlArgs,
    /// Print the first rows of the table afterwards
    #[arg(long, value_name = "ROWS", num_args = 0..=1, default_missing_value = "10")]
    pub(crate) show: Option<usize>,
    /// When a batch is acknowledged
    #[command(flatten)]
    pub(crate) durability: DurabilityArgs,
}

/// `import-dir`.
#[derive(Args, Debug)]
pub(crate) struct ImportDirArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table, whose keys are text or bytes
    pub(crate) table: String,
    /// The directory; keys are paths in it, with `/` between names
    pub(crate) dir: PathBuf,
    /// Create the store and the table (as `create --value bytes --block 32KiB --separate 2KiB` does) when they are not there
    #[arg(long)]
    pub(crate) create: bool,
    /// Take files too that have the size of what is stored and are not younger
    #[arg(long)]
    pub(crate) overwrite: bool,
    /// When a write is acknowledged
    #[command(flatten)]
    pub(crate) durability: DurabilityArgs,
}

/// `export-dir`.
#[derive(Args, Debug)]
pub(crate) struct ExportDirArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table, whose keys are paths
    pub(crate) table: String,
    /// The directory to write to; made when it is not there
    pub(crate) dir: PathBuf,
    /// Write over files that are there
    #[arg(long)]
    pub(crate) overwrite: bool,
}

/// What a file of rows holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Fields between commas
    Csv,
    /// Fields between tabs
    Tsv,
    /// A JSON object on each line
    Ndjson,
}

fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one byte, or \\t".to_owned()),
    }
}

/// Which keys of a table.
#[derive(Args, Debug, Default)]
pub(crate) struct RangeArgs {
    /// Only keys that begin with this: the first elements of a tuple, the first letters of text
    #[arg(long, value_name = "KEY", num_args = 1.., allow_negative_numbers = true)]
    pub(crate) prefix: Vec<String>,
    /// Begin at this key, included
    #[arg(long, value_name = "KEY", num_args = 1.., conflicts_with = "after", allow_negative_numbers = true)]
    pub(crate) from: Vec<String>,
    /// Begin after this key
    #[arg(long, value_name = "KEY", num_args = 1.., allow_negative_numbers = true)]
    pub(crate) after: Vec<String>,
    /// End before this key
    #[arg(long, value_name = "KEY", num_args = 1.., conflicts_with = "through", allow_negative_numbers = true)]
    pub(crate) before: Vec<String>,
    /// End with this key, included
    #[arg(long, value_name = "KEY", num_args = 1.., allow_negative_numbers = true)]
    pub(crate) through: Vec<String>,
    /// Keys are given and shown as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,
    /// As it was then: after a seq, at a time (2026-11-22T08:30:00Z; writes of one second may count as one), or so long ago (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
}

/// Which rows of a table, and what of them.
#[derive(Args, Debug, Default)]
pub(crate) struct RowsArgs {
    /// Which keys
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// From the last key to the first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most so many rows
    #[arg(long, value_name = "ROWS")]
    pub(crate) limit: Option<usize>,
    /// Only the keys
    #[arg(long)]
    pub(crate) keys: bool,
    /// Heads instead of values: size, hash, and what the table's rules take out
    #[arg(long, conflicts_with = "keys")]
    pub(crate) heads: bool,
    /// Only these columns
    #[arg(long, value_name = "COLUMNS", value_delimiter = ',', conflicts_with = "keys")]
    pub(crate) columns: Vec<String>,
    /// Print, on the error output, the cursor from which the next scan goes on
    #[arg(long, conflicts_with = "heads")]
    pub(crate) cursor: bool,
    /// Go on where this cursor stood, in the same range and direction
    #[arg(long, value_name = "CURSOR", conflicts_with_all = ["prefix", "from", "after", "before", "through", "reverse", "at"])]
    pub(crate) resume: Option<String>,
    /// Only if the scan still sees what it saw: nothing was written to the store since, or the table keeps its past
    #[arg(long, requires = "resume")]
    pub(crate) strict: bool,
}

/// `scan`.
#[derive(Args, Debug)]
pub(crate) struct ScanArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// Which rows
    #[command(flatten)]
    pub(crate) rows: RowsArgs,
    /// How rows look [default: table, or ndjson with --json]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
}

/// `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The file to write, as --to says it
    #[arg(conflicts_with = "to")]
    pub(crate) file: Option<String>,
    /// The file to write, which must not be there yet, packed where its name ends in .gz; `-` is stdout [default: -]
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<String>,
    /// Which rows
    #[command(flatten)]
    pub(crate) rows: RowsArgs,
    /// How rows look [default: by the name of the file, else csv]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
}

/// How rows look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum OutputFormat {
    /// Columns for people
    Table,
    /// Fields between commas, with a header
    Csv,
    /// Fields between tabs, with a header
    Tsv,
    /// A JSON object on each line
    Ndjson,
}

/// `get`.
#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) of: KeyArgs,
    /// Print the bytes of the value as they are stored, and nothing else
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// Write those bytes to this file, which must not be there yet; `-` is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    pub(crate) to: Option<PathBuf>,
    /// As it was then: after a seq, at a time (2026-11-22T08:30:00Z; writes of one second may count as one), or so long ago (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
}

/// `find`.
#[derive(Args, Debug)]
pub(crate) struct FindArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The index
    pub(crate) index: String,
    /// The term: numbers (inf and nan where all terms are numbers) and true as they are, in quotes as text, bytes as 0x...;
    /// without it all terms, or a range. Numbers by json: are doubles: those beyond 2^53 with the same double are found together
    #[arg(allow_negative_numbers = true, conflicts_with_all = ["prefix", "from", "after", "before", "through"])]
    pub(crate) term: Option<String>,
    /// Only terms that begin with this text, or with these bytes, as 0x...
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["from", "after", "before", "through"])]
    pub(crate) prefix: Option<String>,
    /// Begin at this term, included
    #[arg(long, value_name = "TERM", conflicts_with = "after", allow_negative_numbers = true)]
    pub(crate) from: Option<String>,
    /// Begin after this term
    #[arg(long, value_name = "TERM", allow_negative_numbers = true)]
    pub(crate) after: Option<String>,
    /// End before this term
    #[arg(long, value_name = "TERM", conflicts_with = "through", allow_negative_numbers = true)]
    pub(crate) before: Option<String>,
    /// End with this term, included
    #[arg(long, value_name = "TERM", allow_negative_numbers = true)]
    pub(crate) through: Option<String>,
    /// From the last term to the first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most so many rows
    #[arg(long, value_name = "ROWS")]
    pub(crate) limit: Option<usize>,
    /// Only the keys
    #[arg(long)]
    pub(crate) keys: bool,
    /// Heads instead of values
    #[arg(long, conflicts_with = "keys")]
    pub(crate) heads: bool,
    /// How many there are, and nothing else
    #[arg(long, conflicts_with_all = ["keys", "heads"])]
    pub(crate) count: bool,
    /// Keys are shown as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,
    /// As it was then: after a seq, at a time (2026-11-22T08:30:00Z; writes of one second may count as one), or so long ago (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
    /// How rows look [default: table, or ndjson with --json]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
}

/// `index`.
#[derive(Args, Debug)]
pub(crate) struct IndexArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) verb: IndexVerb,
}

/// What `index` does.
#[derive(Subcommand, Debug)]
pub(crate) enum IndexVerb {
    /// Add an index to a table, and build it of what the table has; one that was broken off goes on
    ///
    /// The rule says what records are found by: `json:/a/b` what stands there in a JSON value (of an array each element), `value`,
    /// `field:NAME` of a record, `tuple:N` and `key:N` an element of a tuple, `head` the head as bytes, `head:` a head that is JSON,
    /// `head:/a/b` what stands in such a one, `custom:NAME@VERSION`.
    Add(IndexAddArgs),
    /// Drop an index and its entries
    Drop(IndexDropArgs),
    /// List the indexes of a table, or of all
    List(IndexListArgs),
}

/// `index add`.
#[derive(Args, Debug)]
pub(crate) struct IndexAddArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The index, as NAME:RULE
    pub(crate) index: String,
}

/// `index drop`.
#[derive(Args, Debug)]
pub(crate) struct IndexDropArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The name of the index
    pub(crate) index: String,
}

/// `index list`.
#[derive(Args, Debug)]
pub(crate) struct IndexListArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table; all without it
    pub(crate) table: Option<String>,
}

/// `history`.
#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) of: KeyArgs,
    /// At most so many states
    #[arg(long, value_name = "STATES")]
    pub(crate) limit: Option<NonZeroUsize>,
}

/// `fold`.
#[derive(Args, Debug)]
pub(crate) struct FoldArgs {
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    /// Print what the value comes to, by a transaction: nobody else's fold is between
    #[arg(long)]
    pub(crate) get: bool,
}

/// `head`.
#[derive(Args, Debug)]
pub(crate) struct HeadArgs {
    #[command(flatten)]
    pub(crate) of: KeyArgs,
    /// As it was then: after a seq, at a time (2026-11-22T08:30:00Z; writes of one second may count as one), or so long ago (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
}

/// A key of a table: all that `explain` asks for.
#[derive(Args, Debug)]
pub(crate) struct KeyArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The key; one word for each element of a tuple
    #[arg(required = true, allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,
    /// The key is given as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,
}

/// `put`.
#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The key, one word for each element of a tuple, and last the value (but with --file)
    #[arg(required = true, num_args = 1.., value_names = ["KEY", "VALUE"], allow_negative_numbers = true)]
    pub(crate) key_and_value: Vec<String>,
    /// The bytes of this file are the value; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Leave a key alone that has a value
    #[arg(long)]
    pub(crate) if_absent: bool,
    /// The key is given as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,
    /// How long the value lasts
    #[command(flatten)]
    pub(crate) ttl: TtlArgs,
    /// When the write is acknowledged
    #[command(flatten)]
    pub(crate) durability: DurabilityArgs,
}

/// What is written to one key: `fold`, and `put` of a value that is given.
#[derive(Args, Debug)]
pub(crate) struct WriteArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The key, one word for each element of a tuple, and last the value
    #[arg(required = true, num_args = 2.., value_names = ["KEY", "VALUE"], allow_negative_numbers = true)]
    pub(crate) key_and_value: Vec<String>,
    /// The key is given as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,
    /// How long the value lasts
    #[command(flatten)]
    pub(crate) ttl: TtlArgs,
    /// When the write is acknowledged
    #[command(flatten)]
    pub(crate) durability: DurabilityArgs,
}

/// `delete`.
#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The key; one word for each element of a tuple
    #[arg(required_unless_present = "range", conflicts_with = "range", allow_negative_numbers = true)]
    pub(crate) key: Vec<String>,
    /// All keys from the first on and before the second; a tuple in one word: UA,EWR
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], allow_negative_numbers = true)]
    pub(crate) range: Vec<String>,
    /// Keys are given as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,
    /// When the write is acknowledged
    #[command(flatten)]
    pub(crate) durability: DurabilityArgs,
}

/// How long a value lasts.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TtlArgs {
    /// The value lasts so long from now on: 90s, 15m, 30d [default: as the table says; if that is by-write, for ever,
    /// whatever was before]
    #[arg(long, value_name = "TIME", value_parser = human::parse_time)]
    pub(crate) ttl: Option<std::time::Duration>,
}

impl TtlArgs {
    /// The lifetime that is asked for.
    pub(crate) fn lifetime(self) -> Lifetime {
        self.ttl.map_or(Lifetime::Default, Lifetime::For)
    }
}

/// When a write is acknowledged.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct DurabilityArgs {
    /// What an acknowledged write survives
    #[arg(long, value_enum, default_value = "process")]
    pub(crate) durability: DurabilityName,
}

/// What an acknowledged write survives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DurabilityName {
    /// Nothing for certain: the last 10 ms may be lost
    Buffered,
    /// The death of the process
    Process,
    /// A power cut
    Sync,
}

impl From<DurabilityArgs> for Durability {
    fn from(args: DurabilityArgs) -> Durability {
        match args.durability {
            DurabilityName::Buffered => Durability::Buffered,
            DurabilityName::Process => Durability::Process,
            DurabilityName::Sync => Durability::Sync,
        }
    }
}

/// `count`, `aggregate`.
#[derive(Args, Debug)]
pub(crate) struct CountArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// Which keys
    #[command(flatten)]
    pub(crate) range: RangeArgs,
}

/// `digest`.
#[derive(Args, Debug)]
pub(crate) struct DigestArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// Which keys
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// How fine it is: 16^DEPTH leaves, 8 bytes each
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=6))]
    pub(crate) depth: u8,
    /// Keep it in this file, which must not be there yet
    #[arg(long, value_name = "FILE", alias = "save")]
    pub(crate) to: Option<String>,
    /// Compare it with this one, which was kept, and print the keys of the table among which the two differ
    #[arg(long, value_name = "FILE", conflicts_with = "depth")]
    pub(crate) against: Option<PathBuf>,
}

/// `diff`.
#[derive(Args, Debug)]
#[command(mut_arg("at", |at| at.help(
    "Both stores as they were then (2026-11-22T08:30:00Z, or 15m ago); the first one after a seq, the other as it is now"
)))]
pub(crate) struct DiffArgs {
    /// The directory of the first store
    pub(crate) store: PathBuf,
    /// The directory of the second
    pub(crate) other: PathBuf,
    /// Only this table
    pub(crate) table: Option<String>,
    /// Which keys
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// List at most so many keys of each table
    #[arg(long, value_name = "KEYS")]
    pub(crate) limit: Option<u64>,
    /// Only count them
    #[arg(long)]
    pub(crate) summary: bool,
}

/// `sync`.
#[derive(Args, Debug)]
#[command(mut_arg("at", |at| at.help(
    "The source as it was then: after a seq of it, at a time (2026-11-22T08:30:00Z; writes of one second may count as one), or so long ago (15m)"
)))]
pub(crate) struct SyncArgs {
    /// The directory of the store to read
    pub(crate) source: PathBuf,
    /// The directory of the store to bring up to it
    pub(crate) target: PathBuf,
    /// Only this table
    pub(crate) table: Option<String>,
    /// Which keys
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Keys that only the second store has stay
    #[arg(long)]
    pub(crate) keep: bool,
}

/// `compact`.
#[derive(Args, Debug)]
pub(crate) struct CompactArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Only these tables
    pub(crate) tables: Vec<String>,
}

/// `watch`.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The name of the feed, which is made where there is none
    pub(crate) name: String,
    /// Only this table
    #[arg(long)]
    pub(crate) table: Option<String>,
    /// The table of a feed that is made may be made later
    #[arg(long, requires = "table")]
    pub(crate) to_come: bool,
    /// Only keys that begin with this, as scan --prefix has it; without a table, bytes, or hexadecimal digits after 0x
    #[arg(long, value_name = "KEY", num_args = 1.., allow_negative_numbers = true)]
    pub(crate) prefix: Vec<String>,
    /// A feed that is made begins with what comes from now on, and gives no rows
    #[arg(long)]
    pub(crate) from_now: bool,
    /// Begin anew, with the rows of the present
    #[arg(long, conflicts_with = "from_now")]
    pub(crate) again: bool,
    /// Acknowledge nothing, so that the next watch prints the same
    #[arg(long)]
    pub(crate) peek: bool,
    /// End after so many batches
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Wait for more, without the lock of the store: for ever, or so many seconds each time that
    /// there is nothing
    #[arg(long, value_name = "SECONDS", num_args = 0..=1)]
    pub(crate) wait: Option<Option<u64>>,
    /// What may be held for it while nobody watches; with more it is lost, until --again [default: what it has; 1GiB where it is made]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    pub(crate) hold_max: Option<usize>,
}

/// `feed`.
#[derive(Args, Debug)]
pub(crate) struct FeedArgs {
    /// What to do
    #[command(subcommand)]
    pub(crate) verb: FeedVerb,
}

/// What `feed` does.
#[derive(Subcommand, Debug)]
pub(crate) enum FeedVerb {
    /// List the change feeds of a store: how far their consumers are, and what is held for them
    List(StoreArgs),
    /// Drop a feed; what is held for it is given back
    Drop(FeedDropArgs),
}

/// `feed drop`.
#[derive(Args, Debug)]
pub(crate) struct FeedDropArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The name of the feed
    pub(crate) name: String,
}

/// `reclaim`.
#[derive(Args, Debug)]
pub(crate) struct ReclaimArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Only say what would be done
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// `check-fold`.
#[derive(Args, Debug)]
pub(crate) struct CheckFoldArgs {
    /// The fold: sum:f64, stats:f64, {name: fold, ...}, ...
    #[arg(required_unless_present = "store", conflicts_with = "store")]
    pub(crate) spec: Option<String>,
    /// A file with an operand on each line
    #[arg(long, value_name = "FILE", requires = "spec")]
    pub(crate) samples: Option<PathBuf>,
    /// The lines are bytes as hexadecimal digits
    #[arg(long, requires = "samples")]
    pub(crate) hex: bool,
    /// Check the fold of a table, on its real operands
    #[arg(long, requires = "table")]
    pub(crate) store: Option<PathBuf>,
    /// The table
    #[arg(long, requires = "store")]
    pub(crate) table: Option<String>,
    /// At most so many operands of the table
    #[arg(long, value_name = "COUNT", default_value_t = 200)]
    pub(crate) limit: usize,
}

/// `verify`.
#[derive(Args, Debug)]
pub(crate) struct VerifyArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Read every record: checksums, order, filters, values
    #[arg(long)]
    pub(crate) deep: bool,
}

/// `repair`.
#[derive(Args, Debug)]
pub(crate) struct RepairArgs {
    /// The directory of the damaged store, which is only read
    pub(crate) store: PathBuf,
    /// The directory of the new store, which must not be there yet or be empty
    pub(crate) new: PathBuf,
    /// Take batches of the log beyond a hole too, although those in the hole are missing
    #[arg(long)]
    pub(crate) past_holes: bool,
    /// Make the runs of this table anew from its log, as it keeps that for ever; may be given several times
    #[arg(long, value_name = "TABLE")]
    pub(crate) rebuild_index: Vec<String>,
    /// Take the list of what lives from this backup of the store, where its own manifest is lost
    #[arg(long, value_name = "BACKUP")]
    pub(crate) list_from: Option<PathBuf>,
}

/// `drop`.
#[derive(Args, Debug)]
pub(crate) struct DropArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
}

/// `backup`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArgs {
    /// What to do, if not to add one
    #[command(subcommand)]
    pub(crate) verb: Option<BackupVerb>,
    /// The directory of the store
    #[arg(required = true)]
    pub(crate) store: Option<PathBuf>,
    /// The directory of its backups, outside of the store; made when it is not there
    #[arg(required = true)]
    pub(crate) place: Option<PathBuf>,
    /// Copy files that could be linked, so that the backup shares nothing with the store
    #[arg(long)]
    pub(crate) copy: bool,
    /// Afterwards remove all but the newest so many backups
    #[arg(long, value_name = "BACKUPS", value_parser = at_least_one)]
    pub(crate) keep: Option<usize>,
    /// Read and check every record of the backup, also of files that were linked
    #[arg(long)]
    pub(crate) check_all: bool,
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("at least one backup stays: write 1 or more".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// What else `backup` does.
#[derive(Subcommand, Debug)]
pub(crate) enum BackupVerb {
    /// List the backups in a directory, and the seqs that each can be restored at
    List(BackupListArgs),
}

/// `backup list`.
#[derive(Args, Debug)]
pub(crate) struct BackupListArgs {
    /// The directory of the backups
    pub(crate) place: PathBuf,
}

/// `man`.
#[derive(Args, Debug)]
pub(crate) struct ManArgs {
    /// Write a page for the program and one for each verb into this directory [default: print all]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
}

/// `restore`.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The directory of the backups, or that of one of them
    pub(crate) backup: PathBuf,
    /// The directory of the new store, which must not be there yet
    pub(crate) store: PathBuf,
    /// This backup [default: the newest, or with --at-seq the newest that has it]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) generation: Option<u64>,
    /// The state at the last batch that ends at or before this seq [default: the last]
    #[arg(long, value_name = "SEQ")]
    pub(crate) at_seq: Option<u64>,
    /// Copy files that could be linked, so that the store shares nothing with the backup
    #[arg(long)]
    pub(crate) copy: bool,
}

/// `dump`.
#[derive(Args, Debug)]
pub(crate) struct DumpArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Only these tables
    pub(crate) tables: Vec<String>,
    /// The file to write, which must not be there yet, packed where its name ends in .gz; `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<String>,
    /// As they were then: after a seq, at a time (2026-11-22T08:30:00Z; writes of one second may count as one), or so long ago (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
}

/// `load`.
#[derive(Args, Debug)]
pub(crate) struct LoadArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The file to read, gzip or not; `-` is stdin
    #[arg(default_value = "-")]
    pub(crate) file: String,
    /// Create the store when it is not there
    #[arg(long)]
    pub(crate) create: bool,
    /// Take a dump that was cut: what is there of it is loaded
    #[arg(long)]
    pub(crate) partial: bool,
    /// Load over what tables of the same names hold: keys of the dump get its values, others stay
    #[arg(long)]
    pub(crate) over: bool,
}

/// `bench`.
#[derive(Args, Debug)]
pub(crate) struct BenchArgs {
    /// Which one; none lists them
    pub(crate) name: Option<String>,
    /// How much of the full size
    #[arg(long, default_value_t = 0.01)]
    pub(crate) scale: f64,
    /// Seed of the data
    #[arg(long, default_value_t = 1)]
    pub(crate) seed: u64,
    /// Ops in a commit [default: the benchmark's own]
    #[arg(long, value_name = "OPS")]
    pub(crate) batch: Option<usize>,
    /// Rows, whatever the scale (hugedb, osmos, growth, open, elliptics; keys of steady)
    #[arg(long)]
    pub(crate) rows: Option<u64>,
    /// How the table of elliptics keeps its records: sorted, hashed
    #[arg(long, value_name = "KIND", default_value = "sorted")]
    pub(crate) kind: String,
    /// Where the values of elliptics lie: segments, files
    #[arg(long, value_name = "PLACE", default_value = "segments")]
    pub(crate) value_placement: String,
    /// Size of each value of elliptics [default: 4,000 to 4,800]
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    pub(crate) value_bytes: Option<usize>,
    /// How long steady holds its rate, whatever the scale
    #[arg(long)]
    pub(crate) seconds: Option<f64>,
    /// Where the store goes [default: the system's place for temporary files]
    #[arg(long, value_name = "DIR")]
    pub(crate) dir: Option<PathBuf>,
    /// Keep the store
    #[arg(long)]
    pub(crate) keep: bool,
    /// When a commit is acknowledged
    #[command(flatten)]
    pub(crate) durability: DurabilityArgs,
}

/// `shell`.
#[derive(Args, Debug)]
pub(crate) struct ShellArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Open it for reading: nothing on disk changes, and where another process writes to it, it is shown as it was then
    #[arg(long)]
    pub(crate) read_only: bool,
}

/// `completions`.
#[derive(Args, Debug)]
pub(crate) struct CompletionsArgs {
    /// For which shell
    pub(crate) shell: clap_complete::Shell,
}

#[cfg(test)]
#[path = "args/tests.rs"]
mod tests;
