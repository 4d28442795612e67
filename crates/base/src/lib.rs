//! Floor 0 of FoldDB: the words that every part shares.
//! Internal, no promises: `folddb` is the public API.
//!
//! Nothing here does I/O, starts a thread or reads a clock. The modules are in bottom-up order:
//! each uses only those declared above it.

#![forbid(unsafe_code)]

pub mod limits;
mod text;
pub mod error;
pub mod bytes;
pub mod checksum;
pub mod ids;
pub mod pointer;
pub mod rope;
pub mod op;
pub mod stamp;
pub mod record;
pub mod stream;
pub mod shared_map;

pub use error::{Damage, Error, ErrorKind, Result};
pub use ids::{FileNumber, Lsn, NumberSource, Seq, TableId};
pub use op::{Op, OpBuf, OpKind};
pub use pointer::{Pointer, ValuePlace};
pub use record::Record;
pub use rope::{Piece, Rope, RopeBuilder};
pub use shared_map::SharedMap;
pub use stamp::Stamp;
pub use stream::{Direction, RecordSink, RecordStream, VecStream};
pub use text::{counted, size_text};
