//! LZ4 (Yann Collet) of the body of a block.
//!
//! Without the feature `lz4`, nothing is compressed and nothing compressed can be read: a table
//! that needs it is refused earlier, by name (`StoredRules::bind`).

/// Compresses into the front of `scratch`, which grows as needed. Returns the compressed length.
#[cfg(feature = "lz4")]
pub(super) fn compress(raw: &[u8], scratch: &mut Vec<u8>) -> Option<usize> {
    let bound = lz4_flex::block::get_maximum_output_size(raw.len());
    if scratch.len() < bound {
        scratch.resize(bound, 0);
    }
    lz4_flex::block::compress_into(raw, scratch).ok()
}

/// Fills the front of `out`, and returns the length; none if the bytes are not valid LZ4, or `out`
/// is too short.
#[cfg(feature = "lz4")]
pub(super) fn decompress(compressed: &[u8], out: &mut [u8]) -> Option<usize> {
    lz4_flex::block::decompress_into(compressed, out).ok()
}

#[cfg(not(feature = "lz4"))]
pub(super) fn compress(_raw: &[u8], _scratch: &mut Vec<u8>) -> Option<usize> {
    None
}

#[cfg(not(feature = "lz4"))]
pub(super) fn decompress(_compressed: &[u8], _out: &mut [u8]) -> Option<usize> {
    None
}
