//! Changes inputs at random: bits, bytes, numbers at the edges of their range, pieces copied, cut
//! out and moved, words of the target's language, and pieces of other inputs.

use crate::chance::Chance;
use crate::target::Target;

/// Inputs are kept below this length, in bytes.
pub const INPUT_BYTES_MAX: usize = 8 << 10;

/// Numbers at which decoders go wrong.
const EDGES: [u64; 22] = [
    0,
    1,
    2,
    3,
    7,
    8,
    15,
    16,
    63,
    64,
    127,
    128,
    255,
    256,
    0x7fff,
    0xffff,
    0x7fff_ffff,
    0x8000_0000,
    0xffff_ffff,
    1 << 32,
    1 << 63,
    u64::MAX,
];

/// Makes another input of `input`. `others` are inputs to take pieces from.
pub fn mutate(chance: &mut Chance, target: &Target, input: &mut Vec<u8>, others: &[Vec<u8>]) {
    for _ in 0..=chance.below(1 + chance.clone().below(6)) {
        change(chance, target, input, others);
    }
    input.truncate(INPUT_BYTES_MAX);
    // Now and then checksums stay wrong: what refuses them is code too.
    if !chance.one_in(16) {
        (target.seal)(input);
    }
}

fn change(chance: &mut Chance, target: &Target, input: &mut Vec<u8>, others: &[Vec<u8>]) {
    let at = chance.below(input.len());
    match chance.below(13) {
        0 | 1 => {
            if let Some(byte) = input.get_mut(at) {
                *byte ^= 1 << chance.below(8);
            }
        }
        2 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = chance.next_u64() as u8;
            }
        }
        3 => {
            if let Some(byte) = input.get_mut(at) {
                *byte = byte.wrapping_add(if chance.one_in(2) { 1 } else { 255 });
            }
        }
        4 => put_number(chance, input, at),
        5 => cut_out(chance, input),
        6 => {
            let noise: Vec<u8> = (0..1 + chance.below(8)).map(|_| chance.next_u64() as u8).collect();
            insert(input, at, &noise);
        }
        7 => insert(input, at, &vec![chance.next_u64() as u8; 1 + chance.below(64)]),
        8 => {
            let piece = piece_of(chance, input).to_vec();
            insert(input, at, &piece);
        }
        9 => {
            let piece = piece_of(chance, input).to_vec();
            overwrite(input, at, &piece);
        }
        10 if !target.words.is_empty() => {
            let word = target.words[chance.below(target.words.len())].as_bytes();
            if chance.one_in(3) { overwrite(input, at, word) } else { insert(input, at, word) }
        }
        10 | 11 if !others.is_empty() => {
            let other = &others[chance.below(others.len())];
            let piece = piece_of(chance, other);
            if chance.one_in(2) { overwrite(input, at, piece) } else { insert(input, at, piece) }
        }
        12 if !others.is_empty() => {
            // The front of one, the back of another.
            let other = &others[chance.below(others.len())];
            input.truncate(at);
            input.extend_from_slice(&other[chance.below(other.len())..]);
        }
        _ => input.truncate(at + 1),
    }
}

/// Writes a number at an edge, in one of the ways in which formats hold numbers.
fn put_number(chance: &mut Chance, input: &mut Vec<u8>, at: usize) {
    let edge = EDGES[chance.below(EDGES.len())];
    let mut number = edge.wrapping_add(chance.below(3) as u64).wrapping_sub(1);
    if chance.one_in(3) {
        number = (input.len() as u64).wrapping_add(chance.below(5) as u64).wrapping_sub(2);
    }
    let fixed = number.to_le_bytes();
    match chance.below(6) {
        0 => overwrite(input, at, &fixed[..2]),
        1 => overwrite(input, at, &fixed[..4]),
        2 => overwrite(input, at, &fixed),
        3 => overwrite(input, at, &number.to_be_bytes()),
        4 => insert(input, at, number.to_string().as_bytes()),
        _ => {
            let mut varint = Vec::new();
            folddb_base::bytes::put_varint(&mut varint, number);
            if chance.one_in(2) { overwrite(input, at, &varint) } else { insert(input, at, &varint) }
        }
    }
}

fn cut_out(chance: &mut Chance, input: &mut Vec<u8>) {
    let from = chance.below(input.len());
    let longest = if chance.one_in(2) { 8 } else { input.len() };
    let len = (1 + chance.below(longest)).min(input.len() - from);
    input.drain(from..from + len);
}

fn piece_of<'a>(chance: &mut Chance, bytes: &'a [u8]) -> &'a [u8] {
    let from = chance.below(bytes.len());
    let longest = if chance.one_in(2) { 16 } else { bytes.len() };
    let len = (1 + chance.below(longest)).min(bytes.len() - from);
    &bytes[from..from + len]
}

fn insert(input: &mut Vec<u8>, at: usize, bytes: &[u8]) {
    input.splice(at..at, bytes.iter().copied());
}

fn overwrite(input: &mut [u8], at: usize, bytes: &[u8]) {
    for (place, byte) in input[at..].iter_mut().zip(bytes) {
        *place = *byte;
    }
}
