//! The verbs that look after a store.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use folddb::AsOf;

use super::common::{RangeArgs, at_least_one};
use crate::human;

/// `values`.
#[derive(Args, Debug)]
pub(crate) struct ValuesArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// Also print when the live values of each segment were written, where keys have the time;
    /// reads all keys and no value
    #[arg(long)]
    pub(crate) ages: bool,
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
    /// How fine the digest is: 16^DEPTH leaves, 8 bytes each
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u8).range(0..=6))]
    pub(crate) depth: u8,
    /// Save it to this file, which must not exist yet
    #[arg(long, value_name = "FILE", alias = "save")]
    pub(crate) to: Option<String>,
    /// Compare it with this saved digest, and print the key ranges in which the two differ
    #[arg(long, value_name = "FILE", conflicts_with = "depth")]
    pub(crate) against: Option<PathBuf>,
}

/// `diff`.
#[derive(Args, Debug)]
#[command(mut_arg("at", |at| at.help(
    "Both stores as of an earlier moment: a time (2026-11-22T08:30:00Z) or an age (15m); with a seq, the first store as of it and the other as it is now"
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
    /// List at most this many keys of each table
    #[arg(long, value_name = "KEYS")]
    pub(crate) limit: Option<u64>,
    /// Only count them
    #[arg(long)]
    pub(crate) summary: bool,
}

/// `sync`.
#[derive(Args, Debug)]
#[command(mut_arg("at", |at| at.help(
    "The source as of an earlier moment: a seq of it, a time (2026-11-22T08:30:00Z; writes of one second may count as one), or an age (15m)"
)))]
pub(crate) struct SyncArgs {
    /// The directory of the store to read
    pub(crate) source: PathBuf,
    /// The directory of the store to update
    pub(crate) target: PathBuf,
    /// Only this table
    pub(crate) table: Option<String>,
    /// Which keys
    #[command(flatten)]
    pub(crate) range: RangeArgs,
    /// Keep keys that only the target has
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
    /// Only these keys, of one table
    #[command(flatten)]
    pub(crate) range: RangeArgs,
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
    /// At most this many operands of the table
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
    /// The directory of the new store, which must not exist yet, or be empty
    pub(crate) new: PathBuf,
    /// Also take the batches after a hole in the log, although those in the hole are missing
    #[arg(long)]
    pub(crate) past_holes: bool,
    /// Rebuild the runs of this table from its log, which it archives (--archive-log); may be given
    /// several times
    #[arg(long, value_name = "TABLE")]
    pub(crate) rebuild_index: Vec<String>,
    /// Take the manifest from this backup, if the store has lost its own
    #[arg(long, value_name = "BACKUP")]
    pub(crate) list_from: Option<PathBuf>,
}

/// `backup`.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct BackupArgs {
    /// What to do instead of adding a backup
    #[command(subcommand)]
    pub(crate) verb: Option<BackupVerb>,
    /// The directory of the store
    #[arg(required = true)]
    pub(crate) store: Option<PathBuf>,
    /// The directory of its backups, outside of the store; created if missing
    #[arg(required = true)]
    pub(crate) place: Option<PathBuf>,
    /// Copy files that could be linked, so that the backup shares nothing with the store
    #[arg(long)]
    pub(crate) copy: bool,
    /// Afterwards remove all but the newest BACKUPS
    #[arg(long, value_name = "BACKUPS", value_parser = at_least_one)]
    pub(crate) keep: Option<usize>,
    /// Read and check every record of the backup, also of files that were linked
    #[arg(long)]
    pub(crate) check_all: bool,
}

/// What else `backup` does.
#[derive(Subcommand, Debug)]
pub(crate) enum BackupVerb {
    /// List the backups in a directory, and the seqs to which each can be restored
    List(BackupListArgs),
}

/// `backup list`.
#[derive(Args, Debug)]
pub(crate) struct BackupListArgs {
    /// The directory of the backups
    pub(crate) place: PathBuf,
}

/// `restore`.
#[derive(Args, Debug)]
pub(crate) struct RestoreArgs {
    /// The directory of the backups, or that of one of them
    pub(crate) backup: PathBuf,
    /// The directory of the new store, which must not exist yet
    pub(crate) store: PathBuf,
    /// The number of the backup [default: the newest; with --at-seq, the newest that has that seq]
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
    /// The file to write, which must not exist yet; compressed if its name ends in .gz or .zst;
    /// `-` is stdout
    #[arg(long, value_name = "FILE")]
    pub(crate) to: Option<String>,
    /// As of an earlier moment: a seq, a time (2026-11-22T08:30:00Z; writes of one second may count
    /// as one), or an age (15m)
    #[arg(long, value_name = "WHEN", value_parser = human::parse_moment)]
    pub(crate) at: Option<AsOf>,
}

/// `load`.
#[derive(Args, Debug)]
pub(crate) struct LoadArgs {
    /// The directory of the store
    pub(crate) store: PathBuf,
    /// The file to read, compressed or not; `-` is stdin
    #[arg(default_value = "-")]
    pub(crate) file: String,
    /// Create the store if it does not exist
    #[arg(long)]
    pub(crate) create: bool,
    /// Load what is there of a dump that was cut short
    #[arg(long)]
    pub(crate) partial: bool,
    /// Load into tables that exist: keys of the dump get its values, other keys stay
    #[arg(long)]
    pub(crate) over: bool,
}
