//! The verbs of change feeds.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::common::StoreArgs;
use crate::human;

/// `watch`.
#[derive(Args, Debug)]
pub(crate) struct WatchArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The name of the feed; created if there is none
    pub(crate) name: String,
    /// Only this table
    #[arg(long)]
    pub(crate) table: Option<String>,
    /// Create the feed even if its table does not exist yet
    #[arg(long, requires = "table")]
    pub(crate) to_come: bool,
    /// Only keys that begin with this, as in scan --prefix; without --table, bytes, or hexadecimal
    /// digits after 0x
    #[arg(long, value_name = "KEY", num_args = 1.., allow_negative_numbers = true)]
    pub(crate) prefix: Vec<String>,
    /// A new feed begins with the changes from now on, without the present rows
    #[arg(long)]
    pub(crate) from_now: bool,
    /// Start again, with the present rows
    #[arg(long, conflicts_with = "from_now")]
    pub(crate) again: bool,
    /// Acknowledge nothing: the next watch prints the same again
    #[arg(long)]
    pub(crate) peek: bool,
    /// End after this many batches
    #[arg(long, value_name = "N")]
    pub(crate) limit: Option<u64>,
    /// Wait for more, without the lock of the store: forever, or until nothing has come for TIME
    /// (5s, 1m)
    #[arg(long, value_name = "TIME", num_args = 0..=1, value_parser = human::parse_time)]
    pub(crate) wait: Option<Option<std::time::Duration>>,
    /// How much may be held for the feed while nobody watches; beyond it the feed is lost, until
    /// --again [default: as before; 1GiB for a new feed]
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
    /// List the change feeds of a store: how far their consumers have read, and what is held for
    /// them
    List(StoreArgs),
    /// Drop a feed, and free what is held for it
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
