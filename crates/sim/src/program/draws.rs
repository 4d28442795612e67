//! The parts of the actions of random programs, each drawn by chance.

use std::time::Duration;

use folddb::table_rules::Compression;
use folddb::{Expire, Keep};

use super::{Edge, SEPARATE_FROM, ScanShape, TABLES, TableOp, What};
use crate::chance::Seeded;
use crate::tables::{HOUR_MS, KEYS, Kind, Order, Shape, WINDOW_MS};

pub(super) struct Temper {
    pub(super) large_values: bool,
    pub(crate) snapshots: u64,
    pub(crate) ranges: u64,
}

pub(super) fn slot(chance: &mut Seeded) -> u8 {
    chance.below(u64::from(TABLES)) as u8
}

pub(super) fn key(chance: &mut Seeded) -> u8 {
    chance.below(u64::from(KEYS)) as u8
}

pub(super) fn shape(chance: &mut Seeded) -> Shape {
    const KINDS: [Kind; 8] = [
        Kind::Replace,
        Kind::First,
        Kind::SumU64,
        Kind::Balance,
        Kind::MaxU64,
        Kind::MinBytes,
        Kind::Append,
        Kind::Brittle,
    ];
    const COMPRESSIONS: [Compression; 3] = [Compression::None, Compression::Lz4, Compression::Zstd];
    const ORDERS: [Order; 4] = [Order::Bytewise, Order::Hashed, Order::Reversed, Order::ByLength];
    let drawn = Shape {
        kind: *chance.pick(&KINDS),
        order: *chance.pick(&ORDERS),
        compression: *chance.pick(&COMPRESSIONS),
        bottom_compression: chance.one_in(3).then(|| *chance.pick(&COMPRESSIONS)),
        block_bytes: *chance.pick(&[512, 8192]),
        filter_bits: *chance.pick(&[0, 10]),
        separate: chance.one_in(2).then_some(SEPARATE_FROM),
        in_files: false,
        keep: *chance.pick(&[
            Keep::Latest,
            Keep::Latest,
            Keep::Latest,
            Keep::Versions(2),
            Keep::Versions(4),
            Keep::Window(Duration::from_millis(WINDOW_MS)),
            Keep::Forever,
        ]),
        expire: *chance.pick(&[
            Expire::Never,
            Expire::Never,
            Expire::ByWrite,
            Expire::After(Duration::from_millis(HOUR_MS + HOUR_MS / 2)),
        ]),
        archives_log: false,
    };
    let is_hashed = drawn.order == Order::Hashed;
    let archives_log = drawn.compression == Compression::Lz4 && drawn.block_bytes == 8192 && !is_hashed;
    let drawn = Shape { in_files: drawn.filter_bits == 0, archives_log, ..drawn };
    match drawn.order {
        Order::Hashed if !matches!(drawn.keep, Keep::Versions(_)) => Shape { keep: Keep::Latest, ..drawn },
        _ => drawn,
    }
}

pub(super) fn op(chance: &mut Seeded, temper: &Temper) -> TableOp {
    let what = match chance.below(20) {
        0..=3 => What::Put,
        4..=7 => What::PutIfAbsent,
        8..=14 => What::Fold,
        15 if temper.ranges > 0 && chance.one_in(3) => What::DeletePrefix,
        15 if temper.ranges > 0 => What::DeleteRange,
        _ => What::Delete,
    };
    let lengths: &[u16] = if temper.large_values { &[3, 9000, 20_000, 20_000] } else { &[0, 1, 3, 40] };
    TableOp {
        table: slot(chance),
        what,
        key: key(chance),
        value: chance.next_u64() as u8,
        len_bytes: *chance.pick(lengths),
    }
}

pub(super) fn scan(chance: &mut Seeded) -> ScanShape {
    ScanShape {
        low: edge(chance),
        high: edge(chance),
        prefix: chance.one_in(4).then(|| (key(chance), chance.below(6) as u8)),
        reverse: chance.one_in(2),
        limit: chance.one_in(3).then(|| chance.below(10) as u8),
        chunk: chance.one_in(3).then(|| 1 + chance.below(5) as u8),
    }
}

fn edge(chance: &mut Seeded) -> Edge {
    match chance.below(3) {
        0 => Edge::Open,
        1 => Edge::At(key(chance)),
        _ => Edge::Beyond(key(chance)),
    }
}
