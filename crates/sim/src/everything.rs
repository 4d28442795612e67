//! A store with everything in it: a table for every fold that comes with FoldDB and for every codec
//! of keys and values, both encodings of blocks, each order, compression. Fixtures made of it keep
//! the format of stores of this version; dumps are tested with it.

use folddb::codec::{KeyCodec, ValueCodec};
use folddb::datum::json;
use folddb::folds::FoldSpec;
use folddb::table_rules::{Compression, TableRules};
use folddb::{Datum, Durability, Result, Store, WriteOp};

use crate::chance::Seeded;

/// Every fold with operands as JSON; those of folds of floats have NaN, infinities and zeros of
/// both signs among them.
pub const FOLDS: [(&str, &[&str]); 36] = [
    ("replace", &[r#""a""#, r#""0x00ff""#, r#""""#]),
    ("first", &[r#""a""#, r#""b""#]),
    ("sum:i64", &["5", "-7", "9223372036854775807"]),
    ("sum:u64", &["5", "18446744073709551615"]),
    ("sum:f64", &["0.1", "1e300", "-1e300", "1e-300"]),
    ("min:i64", &["5", "-7"]),
    ("min:u64", &["5", "7"]),
    ("min:f64", &["-0.0", "0.0", "1.5"]),
    ("min:bytes", &[r#""b""#, r#""a""#]),
    ("max:i64", &["5", "-7"]),
    ("max:u64", &["5", "7"]),
    ("max:f64", &["-1.5", r#""-inf""#]),
    ("max:bytes", &[r#""b""#, r#""0xff""#]),
    ("min:time", &[r#""2026-11-22T08:30:00.25Z""#, "-7"]),
    ("max:time", &[r#""1969-12-31T23:59:59Z""#, r#""2026-11-22T08:30:00Z""#]),
    ("stats:f64", &["12.5", "[-3, 0.1, 1e17]"]),
    ("append", &[r#""a""#, r#""b""#]),
    (r#"append:",""#, &[r#""a""#, r#""b,c""#]),
    ("set", &[r#"["b", "a"]"#, r#"["0x00"]"#]),
    ("intersect", &[r#"["b", "a"]"#, r#"["b", "c"]"#]),
    ("bitmap", &["[1, 5]", "[70000, 4294967295]"]),
    ("counters", &[r#"{"a": 2, "b": -1}"#, r#""c""#]),
    ("lww:ts", &[r#"[7, "x"]"#, r#"[-1, "0x00"]"#]),
    ("top:10", &[r#"[1.5, "x"]"#, r#"[[2, "y"], [-3, "z"]]"#]),
    ("top:3:i64", &[r#"[15, "x"]"#, r#"[[2, "y"], [3, "z"], [4, "w"]]"#]),
    ("hll:12", &[r#""N12345""#, r#"["a", "b", "c"]"#]),
    ("hll:4", &[r#"["a", "b", "c", "d", "e", "f", "g", "h"]"#]),
    ("quantiles", &["[1, 2]", "[-4, 0, 1e9]"]),
    ("quantiles:0.05", &["3", "4"]),
    ("json-merge", &[r#""{\"a\": 1, \"c\": [1.0, null]}""#, r#""{\"b\": {\"x\": 1e400}}""#]),
    (
        "patch",
        &[
            r#""ab""#,
            r#"{"append": "c"}"#,
            r#"[{"splice": 1, "remove": 1, "bytes": "xyz"}, {"write": 0, "bytes": "A"}]"#,
        ],
    ),
    ("matmul:2:f64", &["[1, 2, 3, 4]", "[0.5, 0, 0, 0.5]"]),
    ("matmul:2:i64", &["[1, 2, 3, 4]", "[0, 1, 1, 0]"]),
    ("{n: sum:u64, m: max:i64}", &[r#"{"n": 1, "m": -5}"#, r#"{"n": 2, "m": 6}"#]),
    (
        "{n: sum:u64, delay: stats:f64, who: set, about: hll:10}",
        &[
            r#"{"n": 1, "who": ["ann"]}"#,
            r#"{"delay": [1.5, 2.5]}"#,
            r#"{"n": 4, "who": ["bob"], "about": "x"}"#,
        ],
    ),
    ("sum:i128", &["5", r#""-170141183460469231731687303715884105728""#]),
];

/// Every codec of keys with some keys as JSON, in no order.
pub const KEYS: [(&str, &[&str]); 9] = [
    ("bytes", &[r#""""#, r#""0x00""#, r#""0xff""#, r#""plain""#, r#""0x3078""#]),
    ("utf8", &[r#""""#, r#""é\n""#, r#""0x61""#, r#""\u0000""#, r#""NaN""#]),
    ("u32", &["0", "258", "4294967295"]),
    ("u64", &["0", "258", "18446744073709551615"]),
    ("i64", &["-9223372036854775808", "-1", "0", "9223372036854775807"]),
    ("tuple", &["[]", "[null]", r#"["a", -1, [true, null]]"#, "[18446744073709551616]", "[1.5]"]),
    ("tuple(text,int)", &[r#"["UA", 7]"#, r#"["", -300]"#, r#"["a\u0000b", 0]"#]),
    (
        "tuple(text?,bool,tuple(int,bytes))",
        &[r#"[null, true, [1, "0x00ff"]]"#, r#"["x", false, [-1, "0x"]]"#],
    ),
    (
        "tuple(float,double,uuid)",
        &[
            r#"[1.5, -0.0, "00112233-4455-6677-8899-aabbccddeeff"]"#,
            r#"["NaN", "inf", "ffffffff-ffff-ffff-ffff-ffffffffffff"]"#,
        ],
    ),
];

/// Every codec of values, for tables that replace, with some values as JSON.
pub const VALUES: [(&str, &[&str]); 6] = [
    ("bytes", &[r#""0x00ff""#, r#""text""#, r#""""#]),
    ("utf8", &[r#""é""#, r#""0xff""#, r#""""#]),
    ("u64", &["0", "18446744073709551615"]),
    ("i64", &["-9223372036854775808", "1"]),
    ("f64", &["0.1", r#""NaN""#, "-0.0", r#""inf""#]),
    ("json", &[r#""{\"b\": 1.50, \"a\": [1e3]}""#, r#""[]""#]),
];

/// Fills a store in `rounds`; after each, `between` may flush, merge or reopen. The same chance
/// writes the same.
///
/// # Errors
/// A failed write.
pub fn fill(
    store: &mut Store,
    chance: &mut Seeded,
    rounds: u64,
    between: &mut dyn FnMut(&mut Store) -> Result<()>,
) -> Result<()> {
    create(store)?;
    for round in 0..rounds {
        small_tables(store, chance)?;
        fill_wide(store, chance, round)?;
        between(store)?;
    }
    Ok(())
}

fn create(store: &Store) -> Result<()> {
    for (at, (spec, _)) in FOLDS.iter().enumerate() {
        let fold = spec.parse::<FoldSpec>()?;
        store.create_bytes_table(
            &format!("fold {spec}"),
            TableRules::new(key_codec(at)?).fold(&fold.to_string()),
        )?;
    }
    for (name, _) in KEYS {
        let rules = TableRules::new(name.parse::<KeyCodec>()?).fold("sum:i64");
        store.create_bytes_table(&format!("key {name}"), rules)?;
    }
    for (name, _) in VALUES {
        let rules = TableRules::new(KeyCodec::U32).value(name.parse::<ValueCodec>()?);
        store.create_bytes_table(&format!("value {name}"), rules)?;
    }
    let generic = TableRules::new(KeyCodec::Utf8).block_bytes(1024);
    store.create_bytes_table("generic", generic.clone())?;
    store.create_bytes_table("generic lz4", generic.clone().compression(Compression::Lz4))?;
    store.create_bytes_table("reversed", generic.order("reversed").filter_bits(0))?;
    store.create_bytes_table("columnar", TableRules::new(KeyCodec::U64).fold("sum:u64").block_bytes(1024))?;
    let balance = TableRules::new(KeyCodec::Utf8).fold("sum:i64").delete_when(&0i64.to_le_bytes());
    store.create_bytes_table("absent when zero", balance.key_names(["account"]))?;
    store.create_bytes_table("empty", TableRules::new(KeyCodec::Tuple))?;
    Ok(())
}

fn key_codec(at: usize) -> Result<KeyCodec> {
    Ok(KEYS[at % KEYS.len()].0.parse()?)
}

fn datum(text: &str) -> Result<Datum> {
    json::parse(text).map_err(|error| folddb::Error::invalid(format!("{text}: {error}")))
}

/// A few batches over all tables of folds, keys and values.
fn small_tables(store: &Store, chance: &mut Seeded) -> Result<()> {
    for _ in 0..4 {
        let mut batch = store.batch();
        for (at, (spec, operands)) in FOLDS.iter().enumerate() {
            let keys = KEYS[at % KEYS.len()].1;
            let (key, operand) = (*chance.pick(keys), *chance.pick(operands));
            put(store, &mut batch, &format!("fold {spec}"), key, operand, chance)?;
        }
        for (name, keys) in KEYS {
            let key = *chance.pick(keys);
            put(store, &mut batch, &format!("key {name}"), key, "1", chance)?;
        }
        for (name, values) in VALUES {
            let (key, value) = (chance.below(4).to_string(), *chance.pick(values));
            put(store, &mut batch, &format!("value {name}"), &key, value, chance)?;
        }
        batch.commit(Durability::Process)?;
    }
    Ok(())
}

/// Mostly folds, else one of the other ops.
fn put(
    store: &Store,
    batch: &mut folddb::Batch,
    table: &str,
    key: &str,
    operand: &str,
    chance: &mut Seeded,
) -> Result<()> {
    let table = store.bytes_table(table)?;
    let (mut key_bytes, mut value) = (Vec::new(), Vec::new());
    table.rules().as_table_rules().key_codec().encode(&datum(key)?, &mut key_bytes)?;
    table.rules().read_value(&datum(operand)?, &mut value)?;
    let op = match chance.below(12) {
        0 => WriteOp::Put,
        1 => WriteOp::PutIfAbsent,
        2 => WriteOp::Delete,
        _ => WriteOp::Fold,
    };
    batch.write(&table, op, &key_bytes, &value);
    Ok(())
}

/// Enough rows for several blocks of a few of the tables, and deletes of ranges.
///
/// # Errors
/// A failed write.
pub fn fill_wide(store: &Store, chance: &mut Seeded, round: u64) -> Result<()> {
    let columnar = store.bytes_table("columnar")?;
    let generic: Vec<_> = ["generic", "generic lz4", "reversed"]
        .iter()
        .map(|name| store.bytes_table(name))
        .collect::<Result<_>>()?;
    let balance = store.bytes_table("absent when zero")?;
    for _ in 0..20 {
        let mut batch = store.batch();
        for _ in 0..20 {
            let number = chance.below(1000);
            batch.write(&columnar, WriteOp::Fold, &number.to_be_bytes(), &1u64.to_le_bytes());
            let key = format!("key/{:03}", number % 200);
            let value = vec![b'a' + (number % 26) as u8; chance.below(40) as usize];
            batch.write(chance.pick(&generic), WriteOp::Put, key.as_bytes(), &value);
            let change = if chance.one_in(2) { 1i64 } else { -1 };
            let account = format!("account {}", number % 9);
            batch.write(&balance, WriteOp::Fold, account.as_bytes(), &change.to_le_bytes());
        }
        batch.commit(Durability::Buffered)?;
    }
    let mut batch = store.batch();
    let (from, to) = (format!("key/{:03}", round * 20), format!("key/{:03}", round * 20 + 10));
    batch.delete_range(&generic[0], from.as_bytes(), to.as_bytes());
    batch.delete_range(&generic[2], to.as_bytes(), from.as_bytes());
    batch.delete_range(&columnar, &(round * 100).to_be_bytes(), &(round * 100 + 30).to_be_bytes());
    batch.commit(Durability::Process)?;
    Ok(())
}
