//! Floor 2 of FoldDB: the manifest, the list of live tables and files.
//! Internal, no promises: `folddb` is the public API.
//!
//! ```text
//!   MANIFEST-000012   | snapshot | edit | edit | edit |          from nothing, then changes
//! ```
//!
//! [`State`] says which tables there are, which runs and parts they have, which value segments
//! there are, and where the log begins. Files that it does not need are leftovers. A [`Change`] is
//! applied to it by a pure function. [`ManifestLog`] makes changes durable, several as one edit:
//! all of them or none. [`load`] reads the state back, and [`examine`] as much of it as can be
//! read.
//!
//! No file names the current manifest: it is the one with the highest number that has a whole
//! snapshot. The bytes are in `folddb_layout::manifest_edit`.

#![forbid(unsafe_code)]

pub mod times;
pub mod feeds;
mod table;
mod tables;
pub mod state;
pub mod log;
mod examine;

pub use examine::{EditFault, Examined, examine};
pub use feeds::{ArchivedLog, Feeds};
pub use folddb_layout::manifest_edit::{
    Change, FEATURE_LASTING_PIECES, FEATURE_LONG_VALUES, FEATURE_ROPES, FeedPhase, FeedState, IndexBuild,
    IndexSegment, IndexState, LossCause, PartState, TableNote,
};
pub use log::{Loaded, ManifestLog, NUMBERS_RESERVED, load};
pub use state::State;
pub use table::{RangeDelete, RunState, TableState};
pub use tables::Tables;
pub use times::Times;
