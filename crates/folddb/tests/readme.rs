//! The Rust listings of README.md and docs/GUIDE.md: each is here between two marker lines, is
//! compiled and run in order, in one directory, and is compared with the page exactly.

use std::path::Path;

use folddb::table_rules::Compression;

/// The pages, in the order of their listings below.
const PAGES: [&str; 2] = ["README.md", "docs/GUIDE.md"];

/// The text between the lines `// listing` and `// end` of this file, without the indentation.
fn listings_here() -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut is_in = false;
    for line in include_str!("readme.rs").lines() {
        match line {
            "    // listing" => found.push(String::new()),
            "    // end" => {}
            line if is_in => {
                let listing = found.last_mut().expect("it has begun");
                listing.push_str(line.strip_prefix("    ").unwrap_or(line));
                listing.push('\n');
            }
            _ => {}
        }
        is_in = line == "    // listing" || (is_in && line != "    // end");
    }
    found
}

/// The blocks of a page that are Rust.
fn listings_of(page: &str) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut language = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), language) {
            (Some(begun), None) => {
                language = Some(begun);
                if begun == "rust" {
                    found.push(String::new());
                }
            }
            (Some(_), Some(_)) => language = None,
            (None, Some("rust")) => {
                let listing = found.last_mut().expect("it has begun");
                listing.push_str(line);
                listing.push('\n');
            }
            _ => {}
        }
    }
    found
}

fn library() -> folddb::Result<()> {
    // listing
    use folddb::{Durability, Options, Rules, Store, folds::Stats};

    // A store is a directory. The type of the values sets the fold: `Stats` has `stats:f64`.
    let store = Store::create("library.folddb", Options::default())?;
    let delays = store.table("delays", Rules::sorted::<(String, String), Stats>())?;
    delays.fold(&("UA", "EWR"), &12.5)?; // reads nothing
    delays.fold(&("UA", "EWR"), &-3.0)?;
    assert_eq!(delays.get(&("UA", "EWR"))?.map(|stats| stats.mean()), Some(4.75));

    let mut batch = store.batch(); // atomic, across tables
    batch.fold(&delays, &("UA", "LGA"), &Stats::of(1.0)).delete(&delays, &("UA", "EWR"));
    batch.commit(Durability::Sync)?;
    for row in delays.scan().prefix(&("UA",)) {
        let ((carrier, origin), stats) = row?;
        println!("{carrier} {origin} {}", stats.mean());
    }
    // end
    assert_eq!(delays.scan().count()?, 1);
    Ok(())
}

fn transactions() -> folddb::Result<()> {
    // listing
    use folddb::{Durability, Error, Options, Rules, Store};

    let store = Store::create("accounts.folddb", Options::default())?;
    let accounts = store.table("accounts", Rules::sorted::<String, i64>().fold("sum:i64"))?;
    let notes = store.table("notes", Rules::sorted::<String, String>())?;

    let mut batch = store.batch();
    batch.fold(&accounts, "ann", &100).put(&notes, "ann", "opened");
    batch.commit(Durability::Sync)?;

    let past = store.snapshot();
    store.transact(Durability::Process, |transaction| {
        if transaction.get(&accounts, "ann")?.unwrap_or(0) < 30 {
            return Err(Error::invalid("ann has less than 30"));
        }
        transaction.fold(&accounts, "ann", &-30).fold(&accounts, "bob", &30);
        Ok(())
    })?;
    assert_eq!(accounts.get("ann")?, Some(70));
    assert_eq!(past.table(&accounts).get("ann")?, Some(100));
    assert_eq!(accounts.get_many(["bob", "eve", "ann"])?, [Some(30), None, Some(70)]);
    assert_eq!(accounts.take("bob")?, Some(30)); // a get and a delete in one: it is gone now
    // end
    assert_eq!(accounts.get("bob")?, None);
    Ok(())
}

fn indexes() -> folddb::Result<()> {
    // listing
    use folddb::{Options, Rules, Store};

    let store = Store::create("people.folddb", Options::default())?;
    let rules = Rules::sorted::<String, Vec<u8>>().index("by_city", "json:/city");
    let people = store.table("people", rules)?;
    people.put("ann", br#"{"city":"Berlin","age":30}"#.as_slice())?;
    for key in people.find("by_city")?.term("Berlin").keys() {
        println!("{} lives in Berlin", key?);
    }

    // Added later, while writes go on. `add_index_with` reports the progress, and may be stopped.
    people.add_index(&"by_age:json:/age".parse()?)?;
    for row in people.find("by_age")?.range(18..65).reverse().limit(10).values() {
        let (key, value) = row?;
        println!("{key} has {} bytes", value.len());
    }
    for row in people.find("by_age")?.range(18..65).terms() {
        let (age, key) = row?;
        println!("{key} is {age:?}");
    }
    // end
    assert_eq!(people.find("by_age")?.range(18..65).keys().count(), 1);
    Ok(())
}

fn sharing() -> folddb::Result<()> {
    // listing
    use folddb::{Options, Shared, Store};

    let shared = Shared::new(64 << 20);
    let options = Options::default().memory_bytes(16 << 20).shared(&shared);
    let bonn = Store::open_or_create("bonn.folddb", options.clone())?;
    let oslo = Store::open_or_create("oslo.folddb", options)?;
    shared.set_background_bytes_per_s(Some(50 << 20)); // of all of them together
    assert_eq!(shared.stores(), 2);
    // end
    bonn.close()?;
    oslo.close()
}

fn compression() -> folddb::Result<()> {
    // listing
    use folddb::table_rules::Compression;
    use folddb::{Options, Rules, Store};

    let store = Store::open_or_create("pages.folddb", Options::default())?;
    let rules = Rules::sorted::<String, String>().bottom_compression(Some(Compression::Lz4));
    let pages = store.table("pages", rules.block_bytes(32 << 10))?;
    pages.put("/index.html", "<h1>Hello</h1>")?;
    // end
    assert_eq!(pages.get("/index.html")?.as_deref(), Some("<h1>Hello</h1>"));
    store.close()
}

fn other_rules() -> folddb::Result<()> {
    // listing
    use folddb::{Options, Rules, Store};

    let store = Store::open_or_create("hits.folddb", Options::default())?;
    let hits = store.table("by_page", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    hits.fold("/index.html", &1)?;
    store.flush()?;

    hits.alter(|rules| rules.block_bytes(32 << 10).filter_bits(14))?;
    assert_eq!(hits.stats()?.outdated_parts, 1);
    hits.compact()?; // or leave it to the merges to come
    assert_eq!(hits.stats()?.outdated_parts, 0);
    // end
    store.close()
}

fn ranges() -> folddb::Result<()> {
    // listing
    use folddb::{Options, Rules, Store};

    let store = Store::open_or_create("delays.folddb", Options::default())?;
    let delays = store.table("by_day", Rules::sorted::<(String, u64), f64>())?;
    (0..1000).try_for_each(|flight| delays.put(&("2013-01-01", flight), &0.5).map(drop))?;
    store.flush()?;

    let day = delays.scan().prefix(&("2013-01-01",));
    assert_eq!(day.estimate()?.rows, 1000);
    delays.compact_range(&day)?;
    // end
    store.close()
}

fn in_memory() -> folddb::Result<()> {
    // listing
    use folddb::{Options, Rules, Store};

    let store = Store::in_memory(Options::default())?;
    store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?.fold("/index.html", &1)?;

    let options = Options::default().in_memory();
    Store::create("shop.folddb", options.clone())?.close()?;
    let again = Store::open("shop.folddb", options)?;
    assert!(again.tables().is_empty());
    // end
    Ok(())
}

fn events() -> folddb::Result<()> {
    // listing
    use folddb::{Event, Options, Rules, Store};

    let options = Options::default().on_event(|event| match event {
        Event::Merge(merge) => println!("{}: {} runs in {:?}", merge.table, merge.runs, merge.took),
        Event::Stall(stall) => println!("a writer waited {:?}: {:?}", stall.took, stall.cause),
        Event::Poison(poison) => println!("the store writes no more: {}", poison.message),
        _ => (),
    });
    let store = Store::create("visits.folddb", options)?;
    let visits = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
    visits.fold("/index.html", &1)?;
    store.flush()?;
    assert_eq!(store.stats().background.flushes, 1);
    // end
    store.close()
}

fn read(page: &Path) -> String {
    std::fs::read_to_string(page).expect("the page is there")
}

#[test]
fn the_rust_listings_of_the_pages_run_as_printed() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let printed: Vec<(&str, String)> = PAGES
        .iter()
        .flat_map(|page| listings_of(&read(&project.join(page))).into_iter().map(|listing| (*page, listing)))
        .collect();
    let here = listings_here();
    assert_eq!(printed.len(), here.len(), "each Rust listing of {PAGES:?} has its twin in this test");
    for ((page, printed), here) in printed.iter().zip(&here) {
        assert!(printed == here, "--- {page}\n{printed}--- crates/folddb/tests/readme.rs\n{here}");
    }
    let dir = tempfile::tempdir().expect("a directory");
    std::env::set_current_dir(dir.path()).expect("it is there");
    library().expect("it runs");
    transactions().expect("it runs");
    indexes().expect("it runs");
    sharing().expect("it runs");
    if Compression::Lz4.is_available() {
        compression().expect("it runs");
    }
    other_rules().expect("it runs");
    ranges().expect("it runs");
    in_memory().expect("it runs");
    events().expect("it runs");
}

#[test]
fn no_other_page_has_rust_that_nothing_runs() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let run = PAGES.map(|page| project.join(page));
    for page in std::fs::read_dir(project.join("docs")).expect("the pages") {
        let page = page.expect("an entry").path();
        if page.extension().is_some_and(|ending| ending == "md") && !run.contains(&page) {
            let listings = listings_of(&read(&page));
            assert_eq!(listings, [""; 0], "{}: run it in this test, as README's are", page.display());
        }
    }
}
