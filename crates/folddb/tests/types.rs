//! A value written through a typed handle is a value of its table, or is refused, as with a handle
//! of bytes.
#![allow(clippy::unwrap_used)]

mod common;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use common::{fresh, manual};
use folddb::codec::{AsValue, Fit, Value, ValueCodec};
use folddb::folds::{
    self, Bitmap, ByteSet, Counters, Edit, ExactSum, First, FoldSpec, Hll, Matrix, Max, Min, Patch,
    Quantiles, Stats, Sum, Timed, TopK,
};
use folddb::maintenance::{VerifyOptions, Weight};
use folddb::table_rules::TableRules;
use folddb::{
    Datum, Durability, ErrorKind, Expire, Fold, FoldFailure, Json, Lifetime, Outcome, Record, Rules, Store,
    Table, Update, Updated, WriteOp,
};

#[test]
fn a_table_whose_values_do_not_fit_its_fold_is_refused_by_name_and_not_created() {
    let (_dir, store) = fresh(manual());
    fn refused<V: Value>(store: &Store, name: &str, fold: &str) -> String {
        let refused = store.table(name, Rules::sorted::<String, V>().fold(fold)).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
        assert!(refused.to_string().contains(&format!("`{name}`")), "{refused}");
        assert!(refused.to_string().contains(fold), "{refused}");
        refused.to_string()
    }
    assert!(refused::<String>(&store, "a", "sum:i64").contains("values of type i64"));
    assert!(refused::<i64>(&store, "b", "sum:u64").contains("values of type u64"));
    assert!(refused::<f64>(&store, "c", "max:i64").contains("values of type i64"));
    assert!(refused::<u64>(&store, "d", "json-merge").contains("values of type serde_json::Value"));
    assert_eq!(store.tables(), [""; 0]);
    // An existing one, made by hand, is refused as well.
    store
        .create_bytes_table("e", Rules::sorted::<String, i64>().fold("sum:u64").as_table_rules().clone())
        .unwrap();
    refused::<i64>(&store, "e", "sum:u64");
}

#[test]
fn times_are_whole_numbers_to_a_program() {
    let (_dir, store) = fresh(manual());
    let rules = TableRules::new("tuple(text,time)".parse().unwrap()).fold("max:time");
    let bytes = store.create_bytes_table("seen", rules).unwrap();
    let at = "2026-11-22T08:30:00.25Z";
    let key = bytes.rules().as_table_rules().key_codec().parse_text(&["a", at]).unwrap();
    let mut value = Vec::new();
    bytes.rules().read_value(&Datum::Text(at.to_owned()), &mut value).unwrap();
    bytes.write(WriteOp::Fold, &key, &value).unwrap();
    let seen: Table<(String, i64), i64> = store.open_table("seen").unwrap();
    let micros = 1_795_336_200_250_000;
    assert_eq!(seen.get(&("a", micros)).unwrap(), Some(micros));
    seen.fold(&("a", micros), &(micros + 1)).unwrap();
    let value = bytes.get(&key).unwrap().unwrap();
    let shown = bytes.rules().show_value(&value).unwrap();
    assert_eq!(shown, Datum::Text("2026-11-22T08:30:00.250001Z".to_owned()));
    // Values that replace may be times, too; other types are refused.
    let rules = TableRules::new("time".parse().unwrap()).value(ValueCodec::Time);
    store.create_bytes_table("last", rules).unwrap();
    let last: Table<i64, i64> = store.open_table("last").unwrap();
    last.put(&micros, &micros).unwrap();
    assert_eq!(last.get(&micros).unwrap(), Some(micros));
    assert!(store.open_table::<String, i64>("last").is_err());
    assert!(store.open_table::<i64, u64>("last").is_err());
}

/// Writes a value in every way, and returns whether all were refused, or none.
fn is_refused(store: &Store, table: &Table<u64, Vec<u8>>, value: &Vec<u8>) -> bool {
    let lasting = &table.with_lifetime(Lifetime::Forever);
    let mut batches: Vec<_> = (0..6).map(|_| store.batch()).collect();
    batches[0].put(table, &1, value);
    batches[1].put_if_absent(table, &1, value);
    batches[2].fold(table, &1, value);
    batches[3].put(lasting, &1, value);
    batches[4].put_if_absent(lasting, &1, value);
    batches[5].fold(lasting, &1, value);
    let singles = [
        table.as_bytes().check(WriteOp::Put, &1u64.to_be_bytes(), value).map(|()| folddb::Seq::default()),
        table.put(&1, value),
        table.put_if_absent(&1, value),
        table.fold(&1, value),
        lasting.put(&1, value),
        lasting.put_if_absent(&1, value),
        lasting.fold(&1, value),
        store.transact(Durability::Process, |transaction| {
            transaction.fold(table, &1, value);
            Ok(folddb::Seq::default())
        }),
    ];
    let of_batches = batches.iter_mut().map(|batch| batch.commit(Durability::Process));
    let refused: Vec<bool> = singles
        .into_iter()
        .chain(of_batches)
        .map(|written| match written {
            Ok(_) => false,
            Err(error) if error.kind() == ErrorKind::InvalidInput => true,
            Err(error) => panic!("{error}"),
        })
        .collect();
    assert!(refused.windows(2).all(|two| two[0] == two[1]), "{value:?}: {refused:?}");
    refused[0]
}

#[test]
fn typed_handles_and_batches_take_what_a_handle_of_bytes_takes_and_nothing_else() {
    let encoded = |encode: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        bytes
    };
    use folddb::codec::AsValue;
    let values = [
        b"hello".to_vec(),
        Vec::new(),
        vec![0; 8],
        vec![1; 16],
        b"{}".to_vec(),
        vec![0xff; 33],
        encoded(&|out| Stats::of(1.5).encode(out)),
        encoded(&|out| Counters::default().encode(out)),
    ];
    let mut refusals = 0;
    for (at, fold) in [
        "sum:i64",
        "sum:u64",
        "max:f64",
        "sum:f64",
        "stats:f64",
        "set",
        "counters",
        "json-merge",
        "append",
        "replace",
    ]
    .iter()
    .enumerate()
    {
        let (_dir, store) = fresh(manual());
        let rules = Rules::sorted::<u64, Vec<u8>>().fold(*fold).expire(Expire::ByWrite);
        let table = store.table(&format!("t{at}"), rules).unwrap();
        for value in &values {
            refusals += usize::from(is_refused(&store, &table, value));
            if let Err(error) = table.get(&1) {
                panic!("{fold}, {value:?}: what was taken is read back: {error}");
            }
            table.delete(&1).unwrap();
        }
        store.flush().unwrap();
    }
    assert!(refusals > 20, "{refusals}");
}

/// Accepts anything, until it is set to be strict.
struct Lately(Arc<AtomicBool>);

impl Fold for Lately {
    fn spec(&self) -> String {
        "lately".to_owned()
    }
    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Ok(Outcome::KeepLater)
    }
    fn check(&self, value: &[u8]) -> Result<(), FoldFailure> {
        match self.0.load(Ordering::SeqCst) && value == b"hello" {
            true => Err(FoldFailure::new("it says hello")),
            false => Ok(()),
        }
    }
}

#[test]
fn verify_says_that_a_program_wrote_what_is_whole_and_no_value() {
    let is_strict = Arc::new(AtomicBool::new(false));
    let lately = Arc::new(Lately(is_strict.clone()));
    let options = || manual().custom_fold(lately.clone());
    let (dir, store) = fresh(options());
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>().custom_fold(&*lately)).unwrap();
    table.fold(&1, &b"hello"[..]).unwrap();
    store.close().unwrap();
    is_strict.store(true, Ordering::SeqCst);
    let report =
        Store::verify(dir.path().join("s.folddb"), &VerifyOptions::default().deep(true), &options()).unwrap();
    let found: Vec<&str> = report.findings.iter().map(|finding| finding.what.as_str()).collect();
    assert!(
        found.iter().any(|what| what.contains("it says hello") && what.contains("a program wrote it")),
        "{found:?}"
    );
    // The doctor, which reads the first rows, says the same, and advises no repair.
    let advice = Store::diagnose(dir.path().join("s.folddb"), &options()).unwrap();
    let [one] = &advice[..] else { panic!("{advice:?}") };
    assert_eq!(one.weight, Weight::Costly);
    for said in ["table `t`", "key 1", "it says hello", "a program wrote it"] {
        assert!(one.what.contains(said), "{one}");
    }
    assert!(one.todo.contains("put or delete such keys") && !one.todo.contains("repair"), "{one}");
}

/// A fold that fails where two values meet, as that of another type does.
struct Meets;

impl Fold for Meets {
    fn spec(&self) -> String {
        "meets".to_owned()
    }
    fn fold(&self, _: &[u8], _: &[u8], _: &[u8], _: &mut Vec<u8>) -> Result<Outcome, FoldFailure> {
        Err(FoldFailure::new("these do not go together"))
    }
}

#[test]
fn the_doctor_reports_keys_whose_records_do_not_fold() {
    let options = || manual().custom_fold(Arc::new(Meets));
    let (dir, store) = fresh(options());
    let table = store.table("t", Rules::sorted::<u64, Vec<u8>>().custom_fold(&Meets)).unwrap();
    table.fold(&1, &b"a"[..]).unwrap();
    store.flush().unwrap();
    table.fold(&1, &b"b"[..]).unwrap();
    store.close().unwrap();
    let advice = Store::diagnose(dir.path().join("s.folddb"), &options()).unwrap();
    let told = advice.iter().filter(|one| one.what.contains("these do not go together")).count();
    assert_eq!(told, 1, "{advice:?}");
    assert!(advice.iter().all(|one| one.weight != Weight::Broken), "{advice:?}");
}

/// How a type works with a fold, found by trying: accepted values are written again and again, and
/// read after each write. Values that the type encodes are accepted or refused; no accepted value
/// is unreadable.
fn goes_with<V: Value>(store: &Store, name: &str, spec: &str, samples: &[V]) -> bool {
    let table = match store.table(name, Rules::sorted::<u64, V>().fold(spec)) {
        Ok(table) => table,
        Err(refused) => {
            assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}");
            let says = refused.to_string();
            let names = [name, spec, std::any::type_name::<V>(), "give the table values of that type"];
            assert!(names.iter().all(|name| says.contains(name)), "{says}");
            return false;
        }
    };
    for round in 0..3 {
        for (at, sample) in samples.iter().enumerate() {
            let key = at as u64 % 3; // some alone, some folded onto others
            match table.fold(&key, sample) {
                Err(refused) => assert_eq!(refused.kind(), ErrorKind::InvalidInput, "{refused}"),
                Ok(_) => drop(table.get(&key).unwrap_or_else(|error| panic!("{spec}: {error}"))),
            }
        }
        if round == 1 {
            store.flush().unwrap();
        }
    }
    for row in table.scan() {
        row.unwrap();
    }
    true
}

/// Whether a type works with a fold, tried in a table of this name by this spec.
type GoesWith = Box<dyn Fn(&Store, &str, &str) -> bool>;

/// The Rust types of values: how each is written, the spec of its own fold, and how it works with
/// any fold.
struct Type {
    name: &'static str,
    own: String,
    goes_with: GoesWith,
}

fn of_type<V: Value + 'static>(name: &'static str, samples: Vec<V>) -> Type {
    let own = V::default_fold().to_string();
    let goes_with =
        move |store: &Store, table: &str, spec: &str| goes_with::<V>(store, table, spec, &samples);
    Type { name, own, goes_with: Box::new(goes_with) }
}

/// Nested deeper than it can be read.
fn deep_document() -> serde_json::Value {
    (0..200).fold(serde_json::Value::Null, |inner, _| serde_json::Value::Array(vec![inner]))
}

fn types() -> Vec<Type> {
    let numbers = [0.1, 0.2, -1e300, f64::NAN, f64::INFINITY, -0.0, 5e-324];
    vec![
        of_type("u64", vec![0u64, 7, u64::MAX]),
        of_type("i64", vec![0i64, -7, i64::MAX, i64::MIN]),
        of_type("i128", vec![0i128, -7, i128::MAX]),
        of_type("f64", numbers.to_vec()),
        of_type("u8", vec![0u8, 255]),
        of_type("u16", vec![0u16, 65_535]),
        of_type("u32", vec![0u32, u32::MAX]),
        of_type("u128", vec![0u128, u128::MAX]),
        of_type("i8", vec![0i8, -128]),
        of_type("i16", vec![0i16, -1]),
        of_type("i32", vec![0i32, -1]),
        of_type("f32", vec![0f32, f32::NAN]),
        of_type("bool", vec![true, false]),
        of_type("String", ["", "a", "{}", "ä", "more letters than a number has"].map(str::to_owned).to_vec()),
        of_type("Vec<u8>", vec![vec![], vec![0; 8], vec![1; 16], b"{}".to_vec(), vec![0xff; 33]]),
        of_type("[u8; 8]", vec![[0u8; 8], [0xff; 8]]),
        of_type("Sum<u64>", vec![Sum(7u64), Sum(u64::MAX)]),
        of_type("Min<f64>", numbers.map(Min).to_vec()),
        of_type("Max<String>", vec![Max("ä".to_owned()), Max(String::new())]),
        of_type("First<String>", vec![First("ä".to_owned()), First(String::new())]),
        of_type("ExactSum", numbers.map(ExactSum::of).to_vec()),
        of_type("Stats", numbers.map(Stats::of).into_iter().chain([Stats::default()]).collect()),
        of_type("ByteSet", vec![ByteSet::of("a"), ByteSet::default()]),
        of_type("Bitmap", vec![Bitmap::of(7), Bitmap::default(), (0..70_000).collect()]),
        of_type("Counters", vec![Counters::of("a", 1), Counters::of("a", -1), Counters::default()]),
        of_type("TopK<10>", vec![TopK::<10>::of(1.5, "a"), TopK::of(f64::NAN, "b"), TopK::default()]),
        of_type("TopK<3, i64>", vec![TopK::<3, i64>::of(1, "a"), TopK::default()]),
        of_type("Hll", vec![Hll::<12>::of("a"), Hll::default()]),
        of_type("Quantiles", numbers.map(<Quantiles>::of).to_vec()),
        of_type("Timed<String>", vec![Timed { time: -1, value: "a".to_owned() }]),
        of_type("Matrix<2, i64>", vec![Matrix::of([[0i64, 1], [i64::MAX, -3]])]),
        of_type("(String, u64)", vec![("a".to_owned(), 7u64)]),
        of_type("Option<String>", vec![Some("a".to_owned()), None]),
        of_type("(Sum<u64>, Stats)", vec![(Sum(1u64), Stats::of(0.1)), (Sum(u64::MAX), Stats::default())]),
        of_type("Option<serde_json::Value>", vec![Some(deep_document()), Some(serde_json::json!({"a": 1}))]),
        of_type("Json<T>", vec![Json(1.5), Json(f64::NAN), Json(-0.0)]),
        of_type("serde_json::Value", vec![deep_document(), serde_json::json!({"a": 1})]),
        of_type(
            "Patch",
            vec![
                Patch::object(b"object"),
                Patch::edits([Edit::Append(b"end")]),
                Patch::edits([Edit::Write { at: u64::MAX, bytes: b"far" }]),
            ],
        ),
    ]
}

/// The folds of the page, in its order, and one of each kind that takes arguments.
fn specs() -> Vec<&'static str> {
    let more =
        ["append:-", "top:3:i64", "hll:4", "quantiles:0.02", "matmul:2:i64", "{a: sum:u64, b: stats:f64}"];
    folds::SPECS.into_iter().chain(more).collect()
}

const BEGIN: &str = "<!-- begin: written by crates/folddb/tests/types.rs -->\n";
const END: &str = "<!-- end of types -->";

fn limits() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/LIMITS.md")
}

#[test]
fn what_a_typed_table_takes_it_reads_and_the_page_says_which_types_go_with_which_folds() {
    let (_dir, store) = fresh(manual());
    let mut page = String::from("| type | its own fold | others that it goes with |\n|---|---|---|\n");
    for (row, of_type) in types().iter().enumerate() {
        let mut others = Vec::new();
        for (column, spec) in specs().into_iter().enumerate() {
            let goes = (of_type.goes_with)(&store, &format!("t{row}_{column}"), spec);
            assert!(goes || (of_type.own != spec && spec != "replace"), "{} and {spec}", of_type.name);
            let is_told = spec == of_type.own || ["replace", "first"].contains(&spec);
            if goes && !is_told {
                others.push(format!("`{spec}`"));
            }
        }
        let others =
            if others.len() > 20 { "all; each value is checked".to_owned() } else { others.join(", ") };
        page.push_str(&format!("| `{}` | `{}` | {others} |\n", of_type.name, of_type.own));
    }
    let text = std::fs::read_to_string(limits()).unwrap();
    let (before, rest) = text.split_once(BEGIN).unwrap();
    let (found, after) = rest.split_once(END).unwrap();
    if std::env::var_os("FOLDDB_WRITE_PAGES").is_some() {
        std::fs::write(limits(), format!("{before}{BEGIN}{page}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(
        found, page,
        "bring docs/LIMITS.md up to date: FOLDDB_WRITE_PAGES=1 cargo test -p folddb --test types"
    );
}

#[test]
fn a_table_folds_as_its_values_are_made_for_and_numbers_stand_for_operands() {
    let (_dir, store) = fresh(manual());
    let delays = store.table("delays", Rules::sorted::<String, Stats>()).unwrap();
    delays.fold("UA", &12.5).unwrap();
    delays.fold("UA", &Stats::of(7.5)).unwrap();
    assert_eq!(delays.get("UA").unwrap().unwrap().mean(), 10.0);

    let visitors = store.table("visitors", Rules::sorted::<String, Hll<10>>()).unwrap();
    for visitor in ["ann", "bob", "ann"] {
        visitors.fold("index.html", visitor).unwrap();
    }
    assert_eq!(visitors.get("index.html").unwrap().unwrap().estimate(), 2);

    // Also where the table was made by its spec, and only there.
    store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64")).unwrap();
    let visits = store.table("visits", Rules::sorted::<String, Sum<u64>>()).unwrap();
    visits.fold("index.html", &3).unwrap();
    visits.fold("index.html", &Sum(4)).unwrap();
    assert_eq!(visits.get("index.html").unwrap(), Some(Sum(7)));
    assert!(store.table("delays", Rules::sorted::<String, Stats>().fold(folds::replace())).is_err());
}

#[test]
fn a_wrong_spec_is_pointed_at_when_the_table_is_opened() {
    let (_dir, store) = fresh(manual());
    let says = store.table("t", Rules::sorted::<String, u64>().fold("sum:u65")).unwrap_err().to_string();
    assert!(says.contains("`t`") && says.contains("\n  sum:u65\n      ^ did you mean `sum:u64`?"), "{says}");
    assert_eq!("sum:u64".parse::<FoldSpec>().unwrap(), folds::sum::<u64>().into());
}

#[test]
fn a_record_of_several_folds_is_a_tuple() {
    let (_dir, store) = fresh(manual());
    type Route = (Sum<u64>, Stats, Hll<12>);
    let routes = store.table("routes", Rules::sorted::<(String, String), Route>()).unwrap();
    for (tail, delay) in [("N1", 12.5), ("N2", 7.5), ("N1", 1.0)] {
        routes.fold(&("UA", "EWR"), &(Sum(1), Stats::of(delay), Hll::of(tail))).unwrap();
    }
    let (flights, delay, tails) = routes.get(&("UA", "EWR")).unwrap().unwrap();
    assert_eq!((flights, delay.mean(), tails.estimate()), (Sum(3), 7.0, 2));
    // The fields may have other names; but their folds are those of the type.
    let named = "{flights: sum:u64, delay: stats:f64, tails: hll:12}";
    store.table("named", Rules::sorted::<u64, Route>().fold(named)).unwrap();
    let other = "{flights: sum:u64, delay: stats:f64, tails: hll:10}";
    let says = store.table("other", Rules::sorted::<u64, Route>().fold(other)).unwrap_err().to_string();
    assert!(
        says.contains(other) && says.contains("(Sum<u64>, folddb::folds::Stats, folddb::folds::Hll<10>)"),
        "{says}"
    );
}

/// A record whose fields have names.
#[derive(Record, Clone, Debug, PartialEq)]
struct Route {
    #[fold(sum)]
    flights: u64,
    delay: Stats,
    #[fold(max)]
    longest: Option<f64>,
    tails: Option<Hll>,
    r#type: String,
    #[fold(first)]
    source: Option<String>,
    inner: Inner,
}

#[derive(Record, Clone, Debug, PartialEq)]
struct Inner {
    #[fold(min)]
    least: Option<i64>,
    #[fold(sum)]
    sum: i128,
}

fn route(delay: f64, tail: &str, kind: &str, least: Option<i64>) -> Route {
    Route {
        flights: 1,
        delay: Stats::of(delay),
        longest: Some(delay),
        tails: Some(Hll::of(tail)),
        r#type: kind.to_owned(),
        source: Some(kind.to_owned()),
        inner: Inner { least, sum: 1 << 70 },
    }
}

#[test]
fn a_struct_is_a_record_of_its_fields() {
    let (_dir, store) = fresh(manual());
    let spec = "{flights: sum:u64, delay: stats:f64, longest: max:f64, tails: hll:12, type: replace, source: first, \
                inner: {least: min:i64, sum: sum:i128}}";
    assert_eq!(Route::default_fold().to_string(), spec);
    assert_eq!(Route::fit(&**Route::default_fold().as_fold()), Fit::Always);
    let routes = store.table("routes", Rules::sorted::<u64, Route>()).unwrap();
    let none = Route { longest: None, tails: None, source: None, ..route(1.0, "", "b", None) };
    routes.fold(&1, &none).unwrap();
    assert_eq!(routes.get(&1).unwrap(), Some(none));
    routes.fold(&1, &route(12.5, "N1", "c", Some(-7))).unwrap();
    store.flush().unwrap();
    routes.fold(&1, &route(7.5, "N2", "d", Some(3))).unwrap();
    let found = routes.get(&1).unwrap().unwrap();
    assert_eq!((found.flights, found.delay.mean(), found.longest), (3, 7.0, Some(12.5)));
    assert_eq!(
        (found.tails.unwrap().estimate(), found.r#type, found.source.unwrap()),
        (2, "d".into(), "c".into())
    );
    assert_eq!(found.inner, Inner { least: Some(-7), sum: 3 << 70 });
    // By spec it is the same table, and tools show its fields.
    let by_spec = store.table("routes", Rules::sorted::<u64, Vec<u8>>().fold(spec)).unwrap();
    let shown = by_spec.as_bytes().rules().show_value(&by_spec.get(&1).unwrap().unwrap()).unwrap();
    assert_eq!(shown.field("flights").map(|flights| flights.to_string()).as_deref(), Some("3"));
}

/// What is added to a cart, by an update whose items are of another type.
struct Add {
    what: String,
    pieces: u32,
}

type Cart = std::collections::BTreeMap<String, u32>;

impl AsValue<Add> for Add {
    fn encode(&self, out: &mut Vec<u8>) {
        AsValue::<(u32, String)>::encode(&(self.pieces, self.what.clone()), out);
    }
}

impl Value for Add {
    fn decode(bytes: &[u8]) -> Result<Add, folddb::codec::CodecError> {
        <(u32, String)>::decode(bytes).map(|(pieces, what)| Add { what, pieces })
    }
}

impl Update for Add {
    type Item = Json<Cart>;
    const NAME: &'static str = "add-to-cart";

    fn apply(self, cart: Option<Json<Cart>>) -> Json<Cart> {
        let mut cart = cart.unwrap_or_default();
        *cart.0.entry(self.what).or_default() += self.pieces;
        cart
    }
}

#[test]
fn updates_are_of_another_type_than_what_they_update_and_are_applied_when_it_is_read() {
    let (_dir, store) = fresh(manual().custom_fold(Updated::<Add>::as_fold()));
    let carts = store.table("carts", Rules::sorted::<String, Updated<Add>>()).unwrap();
    let add = |what: &str, pieces| Updated::by(Add { what: what.to_owned(), pieces });
    carts.fold("ann", &add("tea", 1)).unwrap();
    store.flush().unwrap();
    carts.fold("ann", &add("rice", 2)).unwrap();
    carts.fold("ann", &add("tea", 1)).unwrap();
    carts.put("bob", &Updated::item(Json(Cart::from([("oats".to_owned(), 1)])))).unwrap();
    store.flush().unwrap();
    carts.fold("bob", &add("oats", 3)).unwrap();
    for _ in 0..2 {
        let cart =
            |name: &str| carts.get(name).unwrap().unwrap().into_item().0.into_iter().collect::<Vec<_>>();
        assert_eq!(cart("ann"), [("rice".to_owned(), 2), ("tea".to_owned(), 2)]);
        assert_eq!(cart("bob"), [("oats".to_owned(), 4)]);
        store.flush().unwrap();
        store.bytes_table("carts").unwrap().compact().unwrap();
    }
    // It is read by no other type, and the function is checked against the laws.
    let other = store.table("stats", Rules::sorted::<String, Updated<Add>>().fold("stats:f64")).unwrap_err();
    assert!(other.to_string().contains("made for the fold `add-to-cart`"), "{other}");
    let law = Updated::check_law(&[Json(Cart::new())], [Add { what: "tea".to_owned(), pieces: 1 }]);
    assert!(law.holds(), "{law}");
}

#[test]
fn a_document_that_could_not_be_read_again_is_refused() {
    let (_dir, store) = fresh(manual());
    let deep = deep_document();
    for (name, fold) in [("a", "replace"), ("b", "json-merge"), ("c", "first")] {
        let table = store.table(name, Rules::sorted::<u64, serde_json::Value>().fold(fold)).unwrap();
        assert_eq!(table.put(&1, &deep).unwrap_err().kind(), ErrorKind::InvalidInput);
        let in_transaction = store.transact(Durability::Process, |transaction| {
            transaction.put(&table, &1, &deep);
            Ok(())
        });
        assert_eq!(in_transaction.unwrap_err().kind(), ErrorKind::InvalidInput);
        assert_eq!(table.get(&1).unwrap(), None);
        let mut load = store.bulk_load(&format!("load_{name}"), Rules::sorted().fold(fold)).unwrap();
        assert_eq!(load.put(&1u64, &deep).unwrap_err().kind(), ErrorKind::InvalidInput);
        let _: folddb::Result<Table<u64, serde_json::Value>> = load.finish();
    }
}
