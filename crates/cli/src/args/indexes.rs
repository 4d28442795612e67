//! The verbs of secondary indexes.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use folddb::AsOf;

use super::common::{LookArgs, OutputFormat, QuantileArgs};
use crate::human;

/// `find`.
#[derive(Args, Debug)]
pub(crate) struct FindArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The table
    pub(crate) table: String,
    /// The index
    pub(crate) index: String,
    /// The term: text, a number, true or false; in quotes it is text; bytes as 0x... (inf and nan
    /// are numbers where all terms are); without it all terms, or a range. Numbers in JSON are
    /// doubles: those beyond 2^53 that round to the same double are found together
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
    /// Last term first
    #[arg(long)]
    pub(crate) reverse: bool,
    /// At most this many rows
    #[arg(long, value_name = "ROWS")]
    pub(crate) limit: Option<usize>,
    /// Only the keys
    #[arg(long, conflicts_with = "quantile")]
    pub(crate) keys: bool,
    /// Heads instead of values
    #[arg(long, conflicts_with_all = ["keys", "quantile"])]
    pub(crate) heads: bool,
    /// Only the number of rows
    #[arg(long, conflicts_with_all = ["keys", "heads", "quantile"])]
    pub(crate) count: bool,
    /// Only these columns (`term` is what a row was found by, or `index.term` where the table has a
    /// column `term`); the name of a field is all of its parts
    #[arg(long, value_name = "COLUMNS", conflicts_with_all = ["keys", "count"])]
    pub(crate) columns: Vec<String>,
    /// In the order of this column, instead of that of the terms
    #[arg(long, value_name = "COLUMN", conflicts_with_all = ["keys", "heads", "count", "reverse"])]
    pub(crate) sort: Option<String>,
    /// The largest first
    #[arg(long, requires = "sort")]
    pub(crate) desc: bool,
    /// Which quantiles
    #[command(flatten)]
    pub(crate) quantiles: QuantileArgs,
    /// Keys are shown as hexadecimal digits
    #[arg(long)]
    pub(crate) hex: bool,
    /// As of an earlier moment: a seq, a time (2026-11-22T08:30:00Z; writes of one second may count
    /// as one), or an age (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
    /// The format of rows [default: table, or ndjson with --json]
    #[arg(long, value_enum)]
    pub(crate) format: Option<OutputFormat>,
    /// How they look to people
    #[command(flatten)]
    pub(crate) look: LookArgs,
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
    /// Add an index to a table, and build it from the present rows; continues a build that was
    /// interrupted
    ///
    /// The rule says by which terms a record is found: `json:/a/b`, what is at that path of a JSON
    /// value (each element of an array); `value`, the whole value; `field:NAME`, a field of a
    /// record; `tuple:N` or `key:N`, element N of a value or a key that is a tuple; `head`, the
    /// head as bytes; `head:`, a head that is JSON; `head:/a/b`, what is at that path of it;
    /// `custom:NAME@VERSION`, a rule of your program.
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
