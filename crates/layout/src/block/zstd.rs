//! zstd (Yann Collet) of the body of a block, at its default level.
//!
//! Without the feature `zstd`, nothing is compressed and nothing compressed can be read: a table
//! that needs it is refused earlier, by name (`StoredRules::bind`), and so is a part
//! (`Part::open`).
//!
//! zstd works in a context, which takes longer to make than a block takes to compress. Each thread
//! keeps one of each kind, unless a long body has made it large.

#[cfg(feature = "zstd")]
use std::cell::RefCell;

#[cfg(feature = "zstd")]
use zstd_safe::{CCtx, CLEVEL_DEFAULT, DCtx};

/// The most that one block of a zstd frame expands to, in bytes. The shortest takes four.
const FRAME_BLOCK_BYTES_MAX: u64 = 128 << 10;
const FRAME_BLOCK_BYTES_MIN: u64 = 4;

/// A thread keeps a context of at most this many bytes.
#[cfg(feature = "zstd")]
const CONTEXT_BYTES_MAX: usize = 2 << 20;

#[cfg(feature = "zstd")]
thread_local! {
    static COMPRESSING: RefCell<Option<CCtx<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSING: RefCell<Option<DCtx<'static>>> = const { RefCell::new(None) };
}

/// Whether `compressed` may be the form of a body of `raw_len` bytes: what claims more is refused
/// before memory is taken for it.
pub(super) fn may_expand_to(raw_len: usize, compressed: &[u8]) -> bool {
    let blocks = compressed.len() as u64 / FRAME_BLOCK_BYTES_MIN + 1;
    raw_len as u64 <= blocks * FRAME_BLOCK_BYTES_MAX
}

/// Compresses into the front of `scratch`, which grows as needed. Returns the compressed length.
#[cfg(feature = "zstd")]
pub(super) fn compress(raw: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
    let bound = zstd_safe::compress_bound(raw.len());
    if scratch.len() < bound {
        scratch.resize(bound, 0);
    }
    COMPRESSING.with_borrow_mut(|kept| {
        let mut context = kept.take().or_else(CCtx::try_create)?;
        let len = context.compress(&mut scratch[..], raw, CLEVEL_DEFAULT).ok();
        *kept = Some(context).filter(|context| context.sizeof() <= CONTEXT_BYTES_MAX);
        len
    })
}

/// Fills the front of `out`, and returns the length; none if the bytes are not a zstd frame, or
/// `out` is too short.
#[cfg(feature = "zstd")]
pub(super) fn decompress(compressed: &[u8], out: &mut [u8]) -> Option<usize> {
    DECOMPRESSING.with_borrow_mut(|kept| {
        let mut context = kept.take().or_else(DCtx::try_create)?;
        let len = context.decompress(out, compressed).ok();
        *kept = Some(context).filter(|context| context.sizeof() <= CONTEXT_BYTES_MAX);
        len
    })
}

#[cfg(not(feature = "zstd"))]
pub(super) fn compress(_raw: &[u8], _scratch: &mut Vec<u8>) -> Option<usize> {
    None
}

#[cfg(not(feature = "zstd"))]
pub(super) fn decompress(_compressed: &[u8], _out: &mut [u8]) -> Option<usize> {
    None
}
