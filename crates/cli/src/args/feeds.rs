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
    /// The name of the feed, which is made where there is none
    pub(crate) name: String,
    /// Only this table
    #[arg(long)]
    pub(crate) table: Option<String>,
    /// The table of a feed that is made may be made later
    #[arg(long, requires = "table")]
    pub(crate) to_come: bool,
    /// Only keys that begin with this, as scan --prefix has it; without a table, bytes, or
    /// hexadecimal digits after 0x
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
    /// What may be held for it while nobody watches; with more it is lost, until --again [default:
    /// what it has; 1GiB where it is made]
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
