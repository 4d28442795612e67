//! The hash of a key, for the tail and for the filters of chunks. It is used only in memory.
//!
//! It is never stored on disk, so it is designed for speed alone: one 64 x 64 multiplication folded
//! to 64 bits for each eight bytes (the kernel of wyhash, Wang Yi 2019). If many keys collide,
//! reads are slower, but still correct; the bound on chains in the tail limits the loss.

const SEED: u64 = 0xa076_1d64_78bd_642f;
const STEP: u64 = 0xe703_7ed1_a0b4_28db;

#[inline]
fn mix(a: u64, b: u64) -> u64 {
    let product = u128::from(a) * u128::from(b);
    (product as u64) ^ (product >> 64) as u64
}

#[inline]
fn load(bytes: &[u8], at: usize) -> u64 {
    bytes[at..].first_chunk::<8>().map_or(0, |word| u64::from_le_bytes(*word))
}

/// The hash of `key`. All of its bits are equally good.
#[inline]
pub(crate) fn key_hash(key: &[u8]) -> u32 {
    let len = key.len();
    let mut state = SEED ^ len as u64;
    let last = if len >= 8 {
        let mut at = 0;
        while at + 8 < len {
            state = mix(state ^ load(key, at), STEP);
            at += 8;
        }
        load(key, len - 8) // overlaps the word before it, unless the length is a multiple of eight
    } else {
        load_short(key)
    };
    let hash = mix(mix(state ^ last, STEP) ^ SEED, STEP);
    (hash ^ (hash >> 32)) as u32
}

/// Up to seven bytes as one number. Different keys of one length have different numbers.
#[inline]
fn load_short(key: &[u8]) -> u64 {
    match (key.first_chunk::<4>(), key.last_chunk::<4>()) {
        (Some(head), Some(tail)) => {
            u64::from(u32::from_le_bytes(*head)) | u64::from(u32::from_le_bytes(*tail)) << 32
        }
        _ => key.iter().fold(0, |word, &byte| word << 8 | u64::from(byte)),
    }
}
