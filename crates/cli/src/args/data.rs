//! The verbs that make tables, and that read and write what is in them.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Args;
use folddb::AsOf;

use super::common::{
    DurabilityArgs, InputFormat, KeyArgs, LookArgs, OutputFormat, PictureArgs, QuantileArgs, Quote,
    RangeArgs, RowsArgs, TtlArgs, WriteArgs, delimiter, quote, share, sign,
};
use crate::human;

/// `create`.
#[derive(Args, Debug)]
pub(crate) struct CreateArgs {
    /// The directory of the store; created if missing
    pub(crate) store: PathBuf,
    /// A table to create in it
    pub(crate) table: Option<String>,
    /// Ready-made rules: replace, counter, stats, blob, blobs, postings; or lines such as key=utf8
    #[arg(long, value_name = "RULES", requires = "table", conflicts_with_all = ["key", "fold", "value"])]
    pub(crate) like: Option<String>,
    /// sorted, or hashed: an index in memory, one read for a get, keys in no order [default:
    /// sorted]
    #[arg(long, value_name = "KIND", requires = "table")]
    pub(crate) kind: Option<String>,
    /// Type of the keys: bytes, utf8, u64, i64, u32, time, tuple, tuple(text,int,time,...)
    #[arg(long, value_name = "TYPE", requires = "table", default_value = "utf8")]
    pub(crate) key: String,
    /// Names of the elements of the key: the headings of its columns
    #[arg(long, value_name = "NAMES", requires = "table", value_delimiter = ',')]
    pub(crate) key_names: Vec<String>,
    /// An index, as NAME:RULE, see `index add`; may be given several times
    #[arg(long, value_name = "INDEX", requires = "table")]
    pub(crate) index: Vec<String>,
    /// How values fold: sum:u64, stats:f64, set, {name: fold, ...}, ... [default: replace]
    ///
    /// replace, first: the latest, the first value.
    /// sum:i64: the sum; beyond 2^63 it wraps around silently.
    /// sum:u64: the sum; it stops at 2^64-1, which is shown as "or more".
    /// sum:i128: the sum, where 64 bits might not hold it; it wraps beyond 2^127.
    /// sum:f64: the sum, rounded only when it is read.
    /// min:T, max:T: the extreme; T is i64, u64, f64, time or bytes.
    /// stats:f64: count, sum, smallest, largest, mean, variance.
    /// append:SEP: all texts, one after the other, with SEP between them.
    /// set, intersect, bitmap: union, intersection of byte strings; union of u32.
    /// counters: a map of names to counts, each as sum:i64.
    /// lww:ts: the latest by a time inside the value.
    /// top:K: the K members with the largest scores.
    /// hll:P: the number of distinct members, estimated.
    /// quantiles:ALPHA: any quantile, within the relative error ALPHA.
    /// json-merge: JSON documents, merged name by name.
    /// matmul:N:T: the product of matrices, in order.
    /// patch: an object and edits to it.
    /// {a: SPEC, b: SPEC}: a record, each field by its own fold.
    #[arg(long, value_name = "SPEC", requires = "table", verbatim_doc_comment)]
    pub(crate) fold: Option<String>,
    /// Type of the values of a table that replaces: bytes, utf8, u8 to u128, i8 to i128, f32, f64,
    /// bool, time, json
    #[arg(long, value_name = "TYPE", requires = "table")]
    pub(crate) value: Option<String>,
    /// Keep the keys in descending order
    #[arg(long, requires = "table")]
    pub(crate) reversed: bool,
    /// A key whose folded value equals this one is absent
    #[arg(long, value_name = "VALUE", requires = "table", allow_hyphen_values = true)]
    pub(crate) delete_when: Option<String>,
    /// Separate values of this size and more from their keys: they are written once
    #[arg(long, value_name = "SIZE", requires = "table", value_parser = human::parse_bytes)]
    pub(crate) separate: Option<usize>,
    /// Where separated values are kept: segments (many in one file), or files (one file each)
    /// [default: segments]
    #[arg(long, value_name = "PLACE", requires = "table")]
    pub(crate) value_placement: Option<String>,
    /// The head of a value, kept with its key: none, first:N bytes, json:POINTER
    #[arg(long, value_name = "RULE", requires = "table")]
    pub(crate) head: Option<String>,
    /// How much history is kept: latest, versions:N of each key, window:TIME (90s, 15m, 30d),
    /// forever
    #[arg(long, value_name = "HOW_MUCH", requires = "table")]
    pub(crate) keep: Option<String>,
    /// When values expire: after a time (90s, 15m, 30d), or by-write: as --ttl of each write says,
    /// and never without it
    #[arg(long, value_name = "TIME", requires = "table")]
    pub(crate) expire: Option<String>,
    /// Keep the whole log of the table, so that repair --rebuild-index can rebuild its runs
    #[arg(long, requires = "table")]
    pub(crate) archive_log: bool,
    /// Store the aggregate of each block, so that count and aggregate read little once runs are
    /// merged
    #[arg(long, requires = "table")]
    pub(crate) summaries: bool,
    /// Size of a block, the unit of reading, in bytes
    #[arg(long, value_name = "SIZE", requires = "table", value_parser = human::parse_bytes)]
    pub(crate) block: Option<usize>,
    /// Compress the blocks of runs: none, lz4, or zstd [default: none]
    #[arg(long, value_name = "HOW", requires = "table")]
    pub(crate) compression: Option<String>,
    /// Compress the blocks of the bottom run in this way: most data are there, and are rewritten
    /// least [default: as --compression]
    #[arg(long, value_name = "HOW", requires = "table")]
    pub(crate) bottom_compression: Option<String>,
    /// Bits per key of the Bloom filter, 0 for none [default: 10]
    #[arg(long, value_name = "BITS", requires = "table")]
    pub(crate) filter_bits: Option<u8>,
}

/// Whether something is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Switch {
    /// It is.
    On,
    /// It is not.
    Off,
}

/// `alter`.
#[derive(Args, Debug)]
pub(crate) struct AlterArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// Size of a block, the unit of reading, in bytes
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    pub(crate) block: Option<usize>,
    /// Compress the blocks of runs: none, lz4, or zstd
    #[arg(long, value_name = "HOW")]
    pub(crate) compression: Option<String>,
    /// Compress the blocks of the bottom run in this way
    #[arg(long, value_name = "HOW")]
    pub(crate) bottom_compression: Option<String>,
    /// Bits per key of the Bloom filter, 0 for none
    #[arg(long, value_name = "BITS")]
    pub(crate) filter_bits: Option<u8>,
    /// Store the aggregate of each block, or with =off no longer
    #[arg(long, value_name = "WHETHER", num_args = 0..=1, require_equals = true, default_missing_value = "on")]
    pub(crate) summaries: Option<Switch>,
    /// Separate values of this size and more from their keys, from now on
    #[arg(long, value_name = "SIZE", value_parser = human::parse_bytes)]
    pub(crate) separate: Option<usize>,
    /// Where separated values are kept from now on: segments, or files
    #[arg(long, value_name = "PLACE")]
    pub(crate) value_placement: Option<String>,
    /// How much history is kept: a longer or shorter window:TIME, or fewer versions:N
    #[arg(long, value_name = "HOW_MUCH")]
    pub(crate) keep: Option<String>,
    /// When values written from now on expire: after a time, or by-write; not for a table whose
    /// values never do
    #[arg(long, value_name = "TIME")]
    pub(crate) expire: Option<String>,
    /// Names of the elements of the key: the headings of its columns
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) key_names: Vec<String>,
    /// Any rule by its name, as `tables --json` shows it: block_bytes=4096; may be given several
    /// times
    #[arg(long, value_name = "NAME=VALUE")]
    pub(crate) rule: Vec<String>,
}

/// `import`.
#[derive(Args, Debug)]
pub(crate) struct ImportArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The files to read; directories and patterns ('logs/*.csv') name all files in them; `-` is
    /// stdin
    #[arg(required = true, value_name = "FILE")]
    pub(crate) files: Vec<String>,
    /// Create the store and the table if they do not exist
    #[arg(long)]
    pub(crate) create: bool,
    /// The rows are in key order: write the runs of a new table directly, each row once; if one is
    /// out of order, nothing is imported
    ///
    /// Refused for a table that is hashed, whose values are separated or expire, that has indexes
    /// or archives its log (--archive-log), or that a feed reports. Import those without --sorted.
    /// Indexes can be added afterwards.
    #[arg(long, requires = "create", conflicts_with_all = ["durability", "ttl"])]
    pub(crate) sorted: bool,
    /// Columns that make the key, in the order of its elements, or what is computed from them:
    /// 'country, day(ts)' [default: the names that an existing table has for them]
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) key: Vec<String>,
    /// Types of the key's columns: text, int, time, double, bool, bytes, uuid, ...; one column may
    /// also be u64, i64, u32
    #[arg(long, value_name = "TYPES", value_delimiter = ',')]
    pub(crate) key_types: Option<Vec<String>>,
    /// The fold, and what feeds it: 'flights: count, delay: stats:f64 = dep_delay, late: sum:u64 =
    /// dep_delay > 15'; `count` is short for `sum:u64 = 1`, `create --help` lists the other folds
    #[arg(long, value_name = "FIELDS", conflicts_with_all = ["value_json"])]
    pub(crate) fold: Option<String>,
    /// The column that holds the value; a list or an object is taken as its JSON text, unless
    /// --value-type is json
    #[arg(long, value_name = "COLUMN")]
    pub(crate) value: Option<String>,
    /// The type of the values, where the latest value replaces the others: bytes, utf8, u8 to u128,
    /// i8 to i128, f32, f64, bool, time, json
    #[arg(long, value_name = "TYPE", conflicts_with_all = ["fold", "value_json"])]
    pub(crate) value_type: Option<String>,
    /// Only the rows of which this is true: 'status >= 500 and not starts_with(path, "/health")'
    ///
    /// Expressions, also those in --key and --fold, have columns, numbers, "texts", + - * / %, ==
    /// != < <= > >=, in [a, b], and, or, not, and these functions: year month day hour minute(time,
    /// 5) second weekday hour_of_day epoch epoch_ms time(text, "%d.%m.%Y"), each with a zone at the
    /// end if it is not the one of --zone; prefix suffix lower upper trim split regex matches
    /// contains starts_with ends_with concat length; abs floor ceil round bucket number;
    /// coalesce(a, b), if(condition, a, b). Columns with other letters are written in backquotes.
    #[arg(long = "where", value_name = "CONDITION")]
    pub(crate) only: Option<String>,
    /// All other columns are the value, as a JSON object
    #[arg(long, conflicts_with = "value")]
    pub(crate) value_json: bool,
    /// The format of the file [default: by its name; else NDJSON if it begins with {, an access
    /// log, syslog or logfmt if it begins with a line of one, words if its first two lines have
    /// runs of spaces and no delimiter, or CSV]
    #[arg(long, value_enum)]
    pub(crate) format: Option<InputFormat>,
    /// Lines are taken apart by this pattern, whose named groups are the columns:
    /// '^(?<level>\w+) (?<path>\S+)'
    #[arg(long, value_name = "PATTERN", conflicts_with_all = ["format", "delimiter", "quote", "escape", "no_header", "header"])]
    pub(crate) regex: Option<String>,
    /// The character between fields [default: the one of , ; tab | that makes the same number of
    /// fields of each of the first lines]
    #[arg(long, value_name = "CHAR", value_parser = delimiter)]
    pub(crate) delimiter: Option<u8>,
    /// What is around fields that have delimiters: a character, or none [default: "]
    #[arg(long, value_name = "CHAR", value_parser = quote)]
    pub(crate) quote: Option<Quote>,
    /// The sign that escapes quotes, and itself, in quoted fields: '\' [default: \ if the first
    /// rows are bad otherwise, or else quotes are only doubled, which '"' says]
    #[arg(long, value_name = "CHAR", value_parser = sign)]
    pub(crate) escape: Option<u8>,
    /// Quoted fields may have lines that look like rows [default: a quote is taken for a stray one
    /// if nine of ten lines up to the next one have as many fields as there are columns: of more
    /// than four lines, or of 50 where there are two columns]
    #[arg(long)]
    pub(crate) multiline: bool,
    /// Lines that begin with this character are no rows: '#' [default: each line is one]
    #[arg(long, value_name = "CHAR", value_parser = sign)]
    pub(crate) comment: Option<u8>,
    /// The first line is a row; columns are called c1, c2, ... [default: it names the columns,
    /// unless it is like the second one, with numbers or times in the same places]
    #[arg(long)]
    pub(crate) no_header: bool,
    /// The first line names the columns
    #[arg(long, conflicts_with = "no_header")]
    pub(crate) header: bool,
    /// A text that means a missing value: NA, NULL, \N; for folds an empty field does too
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) null: Vec<String>,
    /// Fields that may be missing from every row of an NDJSON file; without this, such a field is
    /// taken for a misspelling
    #[arg(long, value_name = "FIELDS", value_delimiter = ',')]
    pub(crate) optional: Vec<String>,
    /// Keep bad rows in this file, as they were, each below a line with its file, line and reason
    ///
    /// Once they are mended there, the same command imports this file. It must not exist yet,
    /// unless it is the one that this import began, and as that left it: then the import goes on in
    /// it. Rows with other columns than those of the first file, or of another format, are kept in
    /// files beside it: `bad.2.csv` beside `bad.csv`. What is committed never passes a bad row that
    /// is not there.
    #[arg(long, value_name = "FILE")]
    pub(crate) bad_rows: Option<PathBuf>,
    /// Stop at the first bad row
    #[arg(long)]
    pub(crate) strict: bool,
    /// Stop if more than this share of the rows is bad: 1%, 0.01; one that a quote may have made
    /// too long counts by its lines [default: do not stop]
    #[arg(long, value_name = "SHARE", value_parser = share)]
    pub(crate) max_bad: Option<f64>,
    /// Count files again that are in already
    ///
    /// Each is counted once, whatever names it has. If this is broken off, the same command goes
    /// on from there, over all of its files.
    #[arg(long)]
    pub(crate) again: bool,
    /// The files are whole: a last row that is not counts as it is
    ///
    /// Without it, the last row of a file is read again when the file has grown, if it is bad and
    /// its line has no end, or if a quote in it does not close.
    #[arg(long)]
    pub(crate) complete: bool,
    /// Read on as the file grows, and go on with the one that comes in its place, until Ctrl-C; of
    /// several files, the last
    ///
    /// Rows are committed within a second, whole lines only. Ctrl-C says how many rows are in; the
    /// same command goes on from there.
    #[arg(long, conflicts_with_all = ["sorted", "show"])]
    pub(crate) follow: bool,
    /// Read on so many threads; 1 reads rows one by one [default: as many as there are cores, at
    /// most 8]
    #[arg(long, value_name = "N", value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=64))]
    pub(crate) threads: Option<usize>,
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
    /// Create the store and the table (as `create --value bytes --block 32KiB --separate 2KiB`
    /// does) if they do not exist
    #[arg(long)]
    pub(crate) create: bool,
    /// Also store files that look unchanged: the same size, and not newer than what is stored
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
    /// The directory to write to; created if missing
    pub(crate) dir: PathBuf,
    /// Overwrite existing files
    #[arg(long)]
    pub(crate) overwrite: bool,
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
    /// The format of rows [default: table, or ndjson with --json]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// How they look to people
    #[command(flatten)]
    pub(crate) look: LookArgs,
    /// A picture instead of them
    #[command(flatten)]
    pub(crate) picture: PictureArgs,
}

/// `export`.
#[derive(Args, Debug)]
pub(crate) struct ExportArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The file to write; the same as --to
    #[arg(conflicts_with = "to")]
    pub(crate) file: Option<String>,
    /// The file to write, which must not exist yet; compressed if its name ends in .gz or .zst; `-`
    /// is stdout [default: -]
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<String>,
    /// Which rows
    #[command(flatten)]
    pub(crate) rows: RowsArgs,
    /// The format of rows [default: by the name of the file, else csv]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
}

/// `get`.
#[derive(Args, Debug)]
pub(crate) struct GetArgs {
    #[command(flatten)]
    pub(crate) of: KeyArgs,
    /// Print the bytes of the value as they are stored, and nothing else
    #[arg(long, conflicts_with = "json")]
    pub(crate) raw: bool,
    /// All digits of figures, and all of long texts
    #[arg(long)]
    pub(crate) full: bool,
    /// Only these columns of the key and the value; the name of a field is all of its parts
    #[arg(long, value_name = "COLUMNS", conflicts_with_all = ["raw", "to", "plot"])]
    pub(crate) columns: Vec<String>,
    /// Which quantiles
    #[command(flatten)]
    pub(crate) quantiles: QuantileArgs,
    /// Draw the numbers that statistics (stats) or quantiles saw, instead of printing the value
    #[arg(long, conflicts_with_all = ["raw", "to", "json"])]
    pub(crate) plot: bool,
    /// Write those bytes to this file, which must not exist yet; `-` is stdout
    #[arg(long, value_name = "FILE", conflicts_with = "raw")]
    pub(crate) to: Option<PathBuf>,
    /// As of an earlier moment: a seq, a time (2026-11-22T08:30:00Z; writes of one second may count
    /// as one), or an age (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
}

/// `history`.
#[derive(Args, Debug)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) of: KeyArgs,
    /// At most this many states
    #[arg(long, value_name = "STATES")]
    pub(crate) limit: Option<NonZeroUsize>,
}

/// `fold`.
#[derive(Args, Debug)]
pub(crate) struct FoldArgs {
    #[command(flatten)]
    pub(crate) write: WriteArgs,
    /// Print the resulting value, by a transaction: no other write comes between
    #[arg(long)]
    pub(crate) get: bool,
}

/// `head`.
#[derive(Args, Debug)]
pub(crate) struct HeadArgs {
    #[command(flatten)]
    pub(crate) of: KeyArgs,
    /// As of an earlier moment: a seq, a time (2026-11-22T08:30:00Z; writes of one second may count
    /// as one), or an age (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
}

/// `put`.
#[derive(Args, Debug)]
pub(crate) struct PutArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The key, one word for each element of a tuple, and then the value (unless --file is given)
    #[arg(required = true, num_args = 1.., value_names = ["KEY", "VALUE"], allow_negative_numbers = true)]
    pub(crate) key_and_value: Vec<String>,
    /// The bytes of this file are the value; `-` is stdin
    #[arg(long, value_name = "FILE")]
    pub(crate) file: Option<String>,
    /// Do nothing if the key has a value
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

/// `delete`.
#[derive(Args, Debug)]
pub(crate) struct DeleteArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The key; one word for each element of a tuple
    #[arg(
        required_unless_present_any = ["range", "prefix"],
        conflicts_with_all = ["range", "prefix"],
        allow_negative_numbers = true
    )]
    pub(crate) key: Vec<String>,
    /// All keys from FROM on and before TO; a tuple is one word: UA,EWR
    #[arg(long, num_args = 2, value_names = ["FROM", "TO"], allow_negative_numbers = true)]
    pub(crate) range: Vec<String>,
    /// All keys that begin with this: the first elements of a tuple, the first letters of text
    #[arg(long, value_name = "KEY", num_args = 1.., conflicts_with = "range", allow_negative_numbers = true)]
    pub(crate) prefix: Vec<String>,
    /// Keys are given as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,
    /// When the write is acknowledged
    #[command(flatten)]
    pub(crate) durability: DurabilityArgs,
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
    /// Only about how many, and their bytes: from the index of the files, without reading them
    #[arg(long)]
    pub(crate) estimate: bool,
}

/// `aggregate`.
#[derive(Args, Debug)]
pub(crate) struct AggregateArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// Which keys
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Which quantiles
    #[command(flatten)]
    pub(crate) quantiles: QuantileArgs,
    /// A row for each value of these elements of the key; what is folded are the others
    #[arg(long, value_name = "COLUMNS")]
    pub(crate) by: Vec<String>,
    /// Only these columns, of the elements of --by and of the values; the name of a field is all of
    /// its parts
    #[arg(long, value_name = "COLUMNS", requires = "by", conflicts_with_all = ["plot", "spark"])]
    pub(crate) columns: Vec<String>,
    /// In the order of this column
    #[arg(long, value_name = "COLUMN", requires = "by")]
    pub(crate) sort: Option<String>,
    /// The largest first
    #[arg(long, requires = "sort")]
    pub(crate) desc: bool,
    /// At most this many rows
    #[arg(long, value_name = "ROWS", requires = "by")]
    pub(crate) limit: Option<usize>,
    /// The format of rows [default: table, or ndjson with --json]
    #[arg(long, value_enum, requires = "by")]
    pub(crate) format: Option<OutputFormat>,
    /// How they look to people
    #[command(flatten)]
    pub(crate) look: LookArgs,
    /// Draw instead: without --by the numbers that statistics (stats) or quantiles saw; with it a
    /// bar for each row, as long as this column says
    #[arg(long, value_name = "COLUMN", num_args = 0..=1, default_missing_value = "", conflicts_with_all = ["format", "vertical", "json"])]
    pub(crate) plot: Option<String>,
    /// A sparkline of this column: a sign for each row, or for each step of time where the last
    /// element is a time, and a line for each value of the elements of --by without the last
    #[arg(long, value_name = "COLUMN", requires = "by", conflicts_with_all = ["plot", "format", "vertical", "json"])]
    pub(crate) spark: Option<String>,
}

/// `drop`.
#[derive(Args, Debug)]
pub(crate) struct DropArgs {
    /// Do not ask on a terminal
    #[arg(long)]
    pub(crate) yes: bool,
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
}
