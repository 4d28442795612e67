//! What several verbs take: a store, a range, keys, how values last and commits are kept.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use folddb::{AsOf, Durability, Lifetime};

use crate::human;

/// A store.
#[derive(Args, Debug)]
pub(crate) struct StoreArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
}

/// A store, and perhaps one of its tables.
#[derive(Args, Debug)]
pub(crate) struct StoreTableArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Only this table
    pub(crate) table: Option<String>,
}

/// `imports`.
#[derive(Args, Debug)]
pub(crate) struct ImportsArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Only this table
    pub(crate) table: Option<String>,
    /// Forget those whose files are gone; their rows stay. Such a file that comes back, under
    /// whatever name, is counted again
    #[arg(long)]
    pub(crate) forget_gone: bool,
}

/// `stats`.
#[derive(Args, Debug)]
pub(crate) struct StatsArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Only this table
    pub(crate) table: Option<String>,
    /// As a page of metrics that Prometheus scrapes, latencies included
    #[arg(long, conflicts_with = "table")]
    pub(crate) prometheus: bool,
    /// Print them again and again, each TIME (1s, 500ms), until Ctrl-C; beside a process that
    /// writes, as they are then [default: 2s]
    #[arg(long, value_name = "TIME", num_args = 0..=1, value_parser = human::parse_time)]
    pub(crate) watch: Option<Option<std::time::Duration>>,
    /// End after this many times
    #[arg(long, value_name = "N", requires = "watch")]
    pub(crate) limit: Option<u64>,
}

/// What a file of rows holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum InputFormat {
    /// Fields between commas
    Csv,
    /// Fields between tabs
    Tsv,
    /// A JSON object on each line, or in an array
    Ndjson,
    /// An access log: host ident user time method path protocol status bytes
    Common,
    /// An access log with referer and agent, too
    Combined,
    /// An access log with vhost and port before each line, as of vhost_combined
    Vhost,
    /// Lines of syslog: time host program pid message
    Syslog,
    /// name=value on each line
    Logfmt,
    /// Words between runs of spaces, as of ps, df and ls -l; the last column takes the rest of the
    /// line
    Spaces,
}

pub(super) fn share(text: &str) -> Result<f64, String> {
    let (number, unit) = text.strip_suffix('%').map_or((text, 1.0), |number| (number, 100.0));
    match number.trim().parse::<f64>() {
        Ok(number) if (0.0..=1.0).contains(&(number / unit)) => Ok(number / unit),
        _ => Err("a share is written 1% or 0.01".to_owned()),
    }
}

pub(super) fn delimiter(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        b"\\t" | b"tab" => Ok(b'\t'),
        [byte] => Ok(*byte),
        _ => Err("a delimiter is one byte, or \\t".to_owned()),
    }
}

/// What is around fields: a character, or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Quote(pub(crate) Option<u8>);

pub(super) fn quote(text: &str) -> Result<Quote, String> {
    match text.as_bytes() {
        b"none" => Ok(Quote(None)),
        _ => sign(text).map(|byte| Quote(Some(byte))).map_err(|wrong| format!("{wrong}, or none")),
    }
}

pub(super) fn sign(text: &str) -> Result<u8, String> {
    match text.as_bytes() {
        [byte] if byte.is_ascii_graphic() => Ok(*byte),
        _ => Err("it is one character, such as ' or #".to_owned()),
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
    /// As of an earlier moment: a seq, a time (2026-11-22T08:30:00Z; writes of one second may count
    /// as one), or an age (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
}

impl RangeArgs {
    /// Whether all keys are meant, as they are now.
    pub(crate) fn is_all(&self) -> bool {
        let bounds = [&self.prefix, &self.from, &self.after, &self.before, &self.through];
        bounds.iter().all(|bound| bound.is_empty()) && self.at.is_none()
    }
}

/// Which rows of a table, and what of them.
#[derive(Args, Debug, Default)]
pub(crate) struct RowsArgs {
    /// Which keys
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Last key first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most this many rows
    #[arg(long, value_name = "ROWS")]
    pub(crate) limit: Option<usize>,
    /// In the order of this column, instead of that of the keys: --sort flights --desc --limit 10
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["heads", "keys", "cursor", "resume"])]
    pub(crate) sort: Option<String>,
    /// The largest first
    #[arg(long, requires = "sort")]
    pub(crate) desc: bool,
    /// Only the keys
    #[arg(long, conflicts_with = "quantile")]
    pub(crate) keys: bool,
    /// Heads instead of values: size, hash, and the part that the table's head rule keeps
    #[arg(long, conflicts_with_all = ["keys", "quantile"])]
    pub(crate) heads: bool,
    /// Only these columns; the name of a field is all of its parts
    #[arg(long, value_name = "COLUMNS", conflicts_with = "keys")]
    pub(crate) columns: Vec<String>,
    /// Which quantiles
    #[command(flatten)]
    pub(crate) quantiles: QuantileArgs,
    /// Print on stderr the cursor from which the next scan continues
    #[arg(long, conflicts_with = "heads")]
    pub(crate) cursor: bool,
    /// Continue at this cursor, in the same range and direction
    #[arg(long, value_name = "CURSOR", conflicts_with_all = ["prefix", "from", "after", "before", "through", "reverse", "at"])]
    pub(crate) resume: Option<String>,
    /// Fail unless the scan still sees the same data: nothing was written to the store since, or
    /// the table keeps its history
    #[arg(long, requires = "resume")]
    pub(crate) strict: bool,
}

/// Quantiles that are not shown by themselves.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct QuantileArgs {
    /// Also show these quantiles (0 to 1) of columns that fold by `quantiles`: 0.999 is a column
    /// p99.9
    #[arg(long, value_name = "SHARES", value_delimiter = ',', value_parser = quantile)]
    pub(crate) quantile: Vec<f64>,
}

fn quantile(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(q) if (0.0..=1.0).contains(&q) => Ok(q),
        _ => Err("a quantile is a number from 0 to 1, such as 0.999".to_owned()),
    }
}

/// How rows look to people.
#[derive(Args, Clone, Copy, Debug, Default)]
pub(crate) struct LookArgs {
    /// Each row upright, with a line for each column [default: where columns do not fit the
    /// terminal]
    #[arg(long, conflicts_with = "format")]
    pub(crate) vertical: bool,
    /// All digits of figures, and all of long texts
    #[arg(long)]
    pub(crate) full: bool,
}

/// A picture of a column instead of rows.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct PictureArgs {
    /// A bar for each row, as long as this column says
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["format", "vertical", "json"])]
    pub(crate) plot: Option<String>,
    /// A sparkline of this column, with a line for each key without its last element: a sign for
    /// each row, or for each step of time where that element is a time
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["plot", "format", "vertical", "json"])]
    pub(crate) spark: Option<String>,
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
    /// A table of Markdown
    Markdown,
    /// Inserts into a table of SQL that has these columns
    Sql,
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

/// How long a value lasts.
#[derive(Args, Clone, Copy, Debug)]
pub(crate) struct TtlArgs {
    /// The value expires after this time: 90s, 15m, 30d [default: as the table says; with by-write,
    /// never, whatever was set before]
    #[arg(long, value_name = "TIME", value_parser = human::parse_time, allow_hyphen_values = true)]
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

pub(super) fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("at least one backup stays: write 1 or more".to_owned()),
        Ok(number) => Ok(number),
    }
}
