//! The folds: any bytes as their values, and the laws on values that they take.
//!
//! ```text
//!   an input     a: a piece | b: a piece | c: the rest
//! ```
//!
//! The seeds are operands as people type them and totals of such, read and folded by the fold
//! itself.

use std::sync::Arc;

use folddb_base::{Op, OpBuf, OpKind};
use folddb_rules::algebra::Decline;
use folddb_rules::codec::ValueCodec;
use folddb_rules::datum::{Datum, json};
use folddb_rules::folds::{FoldSpec, SPECS};
use folddb_rules::resolve::Resolver;
use folddb_rules::{Composed, Fold, FoldRules, Outcome};

use crate::carve::{Carver, pieces, put_piece};
use crate::target::Target;

const KEY: &[u8] = b"key";

/// A target for each fold whose values have a form of their own: its name, its spec, operands as
/// typed, heap for a byte of input and for none.
macro_rules! fold_targets {
    ($($name:ident $text:literal $spec:literal [$($operand:literal),+] $per_byte:literal $fixed_kib:literal;)+) => {
        $(
            mod $name {
                pub(super) fn laws(input: &[u8]) {
                    super::laws($spec, input);
                }
                pub(super) fn seeds() -> Vec<Vec<u8>> {
                    super::seeds($spec, &[$($operand),+])
                }
            }
        )+
        pub(super) const TARGETS: &[Target] = &[
            $(
                Target::new(concat!("fold-", $text), $name::laws, $name::seeds)
                    .words(super::text::JSON_WORDS)
                    .heap($per_byte, $fixed_kib << 10),
            )+
            Target::new("fold-any", any_fold, any_fold_seeds).words(super::text::JSON_WORDS).heap(8192, 100 << 20),
            Target::new("ops", ops, ops_seeds).heap(1024, 100 << 20),
        ];
    };
}

// A member of a set or a map takes two bytes as a value and some hundred as data for people; a bit
// of a bitmap takes 32 bytes there. A patch may ask for an object of 16 MiB in a few bytes, which
// is the longest value.
fold_targets! {
    sum_f64 "sum-f64" "sum:f64" ["0.1", "1e100", "-1e100", "5e-324", "1.7976931348623157e308"] 1024 128;
    stats "stats" "stats:f64" ["12.5", "0.1", "-3", "1e200", "NaN"] 1024 128;
    set "set" "set" ["b", "a", "[1]", ""] 1024 128;
    intersect "intersect" "intersect" ["b", "a", "b"] 1024 128;
    bitmap "bitmap" "bitmap" ["1", "70000", "4294967295"] 8192 512;
    counters "counters" "counters" ["a", r#"{"b":-3}"#, r#"{"a":9223372036854775807}"#] 1024 128;
    last_writer "lww" "lww:ts" ["7 x", "5 old", "7 y"] 1024 128;
    top_3 "top-3" "top:3" ["1.5 x", "2 y", "-1 z", "2 w"] 1024 128;
    top_100 "top-100" "top:100:i64" ["1 x", "2 y", "-1 z", "2 w"] 1024 128;
    hll_4 "hll-4" "hll:4" ["a", "b", "c", "d"] 1024 128;
    hll_12 "hll-12" "hll:12" ["a", "b", "c"] 1024 256;
    quantiles "quantiles" "quantiles" ["1", "2.5", "-1e300", "0", "inf"] 1024 128;
    quantiles_wide "quantiles-wide" "quantiles:0.5" ["1", "5e-324"] 1024 128;
    json_merge "json-merge" "json-merge"
        [r#"{"a":1,"b":{"c":null}}"#, r#"{"b":{"$set":{"d":[1,{}]}}}"#, "5", r#"{"a":{"x":"\u0001"}}"#] 2048 512;
    matmul "matmul" "matmul:2:i64" ["1 1; 0 1", "1 0; 1 1"] 1024 128;
    patch "patch" "patch" ["object", r#"[{"append":"x"}]"#] 1024 102400;
    record_fixed "record-fixed" "{n: sum:u64, d: max:f64, m: matmul:1:i64}" [r#"{"n":1}"#, r#"{"d":2.5,"m":"3"}"#] 2048 128;
    record "record" "{n: sum:u64, d: stats:f64, s: set, r: {j: json-merge, t: top:2}}"
        [r#"{"n":1,"s":"x"}"#, r#"{"d":0.1,"r":{"t":"1 a"}}"#, r#"{"r":{"j":{"a":1}}}"#] 2048 256;
}

/// Folds of all kinds, also of those whose values have no form of their own.
const MORE: [&str; 6] =
    ["append:, ", "top:1", "hll:18", "matmul:3:f64", "matmul:1:i64", "{a: min:bytes, b: first}"];

/// `fold u8 | as for one fold`.
fn any_fold(input: &[u8]) {
    let mut carver = Carver::new(input);
    let number = usize::from(carver.byte()) % (SPECS.len() + MORE.len());
    laws(SPECS.iter().chain(&MORE).nth(number).copied().unwrap_or("replace"), carver.rest());
}

fn any_fold_seeds() -> Vec<Vec<u8>> {
    let values: [&[u8]; 3] = [&[0; 8], &[1, 0, 0, 0, 0, 0, 0xf0, 0x7f], &[0xff; 8]];
    (0..(SPECS.len() + MORE.len()) as u8).map(|number| [&[number][..], &pieces(&values)].concat()).collect()
}

/// Operands, and what they fold to.
fn seeds(spec: &str, operands: &[&str]) -> Vec<Vec<u8>> {
    let fold: Arc<dyn Fold> = spec.parse::<FoldSpec>().expect("the spec of a fold").into();
    let read = |text: &&str| {
        let mut value = Vec::new();
        // Counters take counts from objects alone; a text is a name.
        let datum = match spec {
            "counters" if text.starts_with('{') => json::parse(text).expect("an object"),
            _ => Datum::Text((*text).to_owned()),
        };
        fold.read(&datum, &mut value).expect("an operand of the fold");
        value
    };
    let values: Vec<Vec<u8>> = operands.iter().map(read).collect();
    let total = values
        .iter()
        .cloned()
        .reduce(|a, b| folded(&*fold, &a, &b).expect("operands fold"))
        .unwrap_or_default();
    let at = |number: usize| &values[number % values.len()][..];
    vec![pieces(&[at(0), at(1), at(2)]), pieces(&[at(3), &total, at(4)]), pieces(&[&total, at(1), &total])]
}

/// What two values fold to; none where the fold refuses them.
fn folded(fold: &dyn Fold, a: &[u8], b: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    match fold.fold(KEY, a, b, &mut out).ok()? {
        Outcome::Value => Some(out),
        Outcome::KeepEarlier => Some(a.to_vec()),
        Outcome::KeepLater => Some(b.to_vec()),
        Outcome::Delete => panic!("no fold of the catalog deletes"),
    }
}

/// True for folds that may refuse to fold two of their values, since the result would be out of
/// range: sums past the end of the accumulator, which no numbers reach, and objects longer than a
/// value may be.
fn may_refuse(spec: &str) -> bool {
    ["sum:f64", "stats:f64", "patch"].iter().any(|refusing| spec.contains(refusing))
}

fn laws(spec: &str, input: &[u8]) {
    let fold: Arc<dyn Fold> = spec.parse::<FoldSpec>().expect("the spec of a fold").into();
    let mut carver = Carver::new(input);
    let values = [carver.piece(), carver.piece(), carver.rest()];
    let mut good = Vec::new();
    for value in values {
        if touch(&*fold, value) {
            good.push(value);
        }
    }
    for (a, b) in [(values[0], values[1]), (values[1], values[2]), (values[2], values[0])] {
        let _ = fold.fold(KEY, a, b, &mut Vec::new());
    }
    let Some(&first) = good.first() else { return };
    let at = |number: usize| good.get(number).copied().unwrap_or(first);
    associative(&*fold, at(0), at(1), at(2));
    associative(&*fold, at(2), at(0), at(0));
    for value in &good {
        if fold.short_circuit(KEY, value) {
            assert_eq!(folded(&*fold, at(1), value).as_deref(), Some(*value), "{spec}: x·v is not v");
        }
        assert!(!fold.is_deleted(KEY, value) || fold.has_delete());
    }
}

/// Shows and checks any bytes; true when they are a value.
fn touch(fold: &dyn Fold, value: &[u8]) -> bool {
    let spec = fold.spec();
    let checked = fold.check(value);
    let shown = fold.show(value);
    let _ = (fold.short_circuit(KEY, value), fold.is_deleted(KEY, value));
    if let Ok(shown) = &shown {
        let _ = (shown.to_string(), ValueCodec::Json.encode(shown, &mut Vec::new()));
    }
    if checked.is_err() {
        return false;
    }
    assert!(shown.is_ok(), "{spec}: a value cannot be shown: {shown:?}");
    assert!(fold.fixed_len().is_none_or(|len| len == value.len()), "{spec}");
    if let Ok(shown) = shown
        && reads_back(&spec, &shown)
    {
        let mut again = Vec::new();
        assert_eq!(fold.read(&shown, &mut again), Ok(()), "{spec}: {shown}");
        assert_eq!(again, value, "{spec}: {shown} is read as another value");
    }
    true
}

/// True where what is shown says all of a value.
fn reads_back(spec: &str, shown: &Datum) -> bool {
    let lossy = ["sum:f64", "stats", "hll", "quantiles", "json-merge", "patch", "{", "append"];
    let is_summary = matches!(shown, Datum::Map(fields) if fields.iter().any(|(name, _)| name == "count"));
    !(lossy.iter().any(|lossy| spec.starts_with(lossy)) || spec == "bitmap" && is_summary)
}

/// (a·b)·c = a·(b·c), and every product is a value.
fn associative(fold: &dyn Fold, a: &[u8], b: &[u8], c: &[u8]) {
    let spec = fold.spec();
    let product = |x: &[u8], y: &[u8]| {
        let product = folded(fold, x, y);
        match &product {
            Some(value) => assert_eq!(fold.check(value), Ok(()), "{spec}: a product is no value"),
            None => assert!(may_refuse(&spec), "{spec}: two values do not fold"),
        }
        product
    };
    let (left, right) = (product(a, b), product(b, c));
    let left = left.and_then(|ab| product(&ab, c));
    let right = right.and_then(|bc| product(a, &bc));
    if let (Some(left), Some(right)) = (left, right)
        && !fold.is_approximate()
    {
        assert_eq!(left, right, "{spec}: (a·b)·c is not a·(b·c)");
    }
}

/// Folds for the algebra, one of them with a rule for deleted states.
const ALGEBRA: [&str; 7] =
    ["sum:i64", "sum:u64", "append:,", "first", "max:bytes", "intersect", "json-merge"];

/// `fold u8 | delete u8 | up to five ops: kind u8, payload as a piece`. Composed in any order, or
/// applied one by one, ops give the same value.
fn ops(input: &[u8]) {
    let mut carver = Carver::new(input);
    let spec = carver.choice(&ALGEBRA);
    let fold: Arc<dyn Fold> = spec.parse::<FoldSpec>().expect("the spec of a fold").into();
    let mut rules = FoldRules::new(std::sync::Arc::clone(&fold));
    // The law of deleted states, d·y = y, holds for zero in a sum.
    if carver.byte() & 1 == 1 && spec == "sum:i64" {
        rules = rules.with_delete(std::sync::Arc::new(|_, value| value == [0; 8]));
    }
    let mut ops = Vec::new();
    for _ in 0..5 {
        let (kind, payload) = (carver.byte(), carver.piece());
        ops.extend(op_of(&rules, &*fold, kind, payload));
    }
    let Some(expected) = applied(&rules, &ops) else { return };
    let mut older = Resolver::new();
    for op in ops.iter().rev() {
        if older.feed_older(&rules, KEY, op.kind, &op.payload).expect("an op") {
            break;
        }
    }
    assert_eq!(older.finish(&rules, KEY), Ok(expected.as_deref()), "{spec}: newest first, {ops:?}");
    let mut newer = Resolver::new();
    for op in &ops {
        newer.feed_newer(&rules, KEY, op.kind, &op.payload).expect("an op");
    }
    assert_eq!(newer.finish(&rules, KEY), Ok(expected.as_deref()), "{spec}: oldest first, {ops:?}");
    for split in 1..ops.len() {
        let halves = (composed(&rules, &ops[..split]), composed(&rules, &ops[split..]));
        if let (Some(front), Some(back)) = halves {
            assert_eq!(
                applied(&rules, &[front, back]),
                Some(expected.clone()),
                "{spec}: at {split}, {ops:?}"
            );
        }
    }
}

/// An op as it would be stored; none where the payload is not that of its kind, or its values are
/// none of the fold.
fn op_of(rules: &FoldRules, fold: &dyn Fold, kind: u8, payload: &[u8]) -> Option<OpBuf> {
    let kind = OpKind::from_u8(kind % 5).ok()?;
    let payload = if kind == OpKind::Delete { &[] } else { payload };
    let values = match Op::from_parts(kind, payload).ok()? {
        Op::Delete => vec![],
        Op::Set(value) | Op::Insert(value) | Op::Fold(value) => vec![value],
        // Users do not write it; only composing makes one.
        Op::InsertFold { .. } | Op::SetSeparated(_) | Op::InsertSeparated(_) | Op::FoldSeparated(_) => {
            return None;
        }
    };
    if values.iter().any(|value| fold.check(value).is_err()) {
        return None;
    }
    let kind = rules.normalize(KEY, kind, payload);
    Some(OpBuf { kind, payload: if kind == OpKind::Delete { Vec::new() } else { payload.to_vec() } })
}

/// What the ops give, one by one, on nothing; none if the fold fails.
fn applied(rules: &FoldRules, ops: &[OpBuf]) -> Option<Option<Vec<u8>>> {
    let mut state = None;
    for op in ops {
        match rules.apply(KEY, &mut state, op.op().expect("an op")) {
            Ok(()) => {}
            Err(Decline::Failed(_)) => return None,
            Err(other) => panic!("{other}"),
        }
    }
    Some(state)
}

/// The ops as one, composed from the oldest on; none where two decline.
fn composed(rules: &FoldRules, ops: &[OpBuf]) -> Option<OpBuf> {
    let mut total = ops.first()?.clone();
    for op in &ops[1..] {
        let mut out = OpBuf::default();
        let (older, newer) = (total.op().expect("an op"), op.op().expect("an op"));
        total = match rules.compose(KEY, older, newer, &mut out) {
            Composed::Older => OpBuf::from_op(older),
            Composed::Newer(OpKind::Delete) => OpBuf::default(),
            Composed::Newer(kind) => OpBuf { kind, payload: op.payload.clone() },
            Composed::Out => out,
            Composed::Both(_) => return None,
        };
    }
    Some(total)
}

fn ops_seeds() -> Vec<Vec<u8>> {
    let numbers: [&[u8]; 5] =
        [&[1, 0, 0, 0, 0, 0, 0, 0], &[0xff; 8], &[0; 8], &[5, 0, 0, 0, 0, 0, 0, 0], &[2; 8]];
    let texts: [&[u8]; 5] = [b"a", b"", b"bb", b"c", b"dd"];
    let documents: [&[u8]; 5] =
        [br#"{"a":1}"#, b"5", br#"{"b":{"c":null}}"#, br#"{"a":null}"#, br#"{"$set":{}}"#];
    let sets: [&[u8]; 5] = [b"\x01a\x01b", b"\x01b", b"", b"\x01c", b"\x01a"];
    let values = [numbers, numbers, texts, texts, texts, sets, documents];
    let seed = |(fold, values): (usize, &[&[u8]; 5]), kinds: [u8; 5]| {
        let mut out = vec![fold as u8, 1];
        for (kind, value) in kinds.into_iter().zip(values) {
            out.push(kind);
            put_piece(&mut out, value);
        }
        out
    };
    let kinds = [[1, 3, 2, 3, 3], [2, 3, 0, 2, 3], [3, 3, 3, 1, 2]];
    values.iter().enumerate().flat_map(|row| kinds.map(|kinds| seed(row, kinds))).collect()
}
