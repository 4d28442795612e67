//! The Rust listings of README.md: each stands here between two lines that say so, is compiled and
//! run in order, in one directory, and is compared with what is printed, to the letter.

use std::path::Path;

/// What stands between the lines `// listing` and `// end` of this file, without the indentation.
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

    // A store is a directory. Only `create` makes one.
    let store = Store::create("library.folddb", Options::default())?;

    // A table folds by the rules that it was created with: here, statistics of delays.
    let delays = store.table("delays", Rules::sorted::<(String, String), Stats>().fold("stats:f64"))?;
    delays.fold(&("UA", "EWR"), &Stats::of(12.5))?; // blind: reads nothing
    delays.fold(&("UA", "EWR"), &Stats::of(-3.0))?;

    let one: Option<Stats> = delays.get(&("UA", "EWR"))?;
    assert_eq!(one.map(|stats| stats.mean()), Some(4.75));

    // A batch is atomic, over any tables of the store.
    let names = store.table("names", Rules::sorted::<String, String>())?;
    let mut batch = store.batch();
    batch.fold(&delays, &("UA", "LGA"), &Stats::of(1.0)).put(&names, "UA", "United");
    batch.commit(Durability::Sync)?;

    // A snapshot sees the store as it was.
    let past = store.snapshot();
    delays.delete(&("UA", "EWR"))?;
    for row in past.scan(&delays).prefix(&("UA",)).reverse() {
        let ((carrier, origin), stats) = row?;
        println!("{carrier} {origin} {}", stats.mean());
    }
    // end
    assert_eq!(past.scan(&delays).prefix(&("UA",)).count()?, 2);
    assert_eq!(delays.scan().prefix(&("UA",)).count()?, 1);
    Ok(())
}

fn indexes() -> folddb::Result<()> {
    // listing
    use folddb::{IndexRule, Options, Rules, Store};
    use std::ops::ControlFlow;

    let store = Store::open("library.folddb", Options::default())?;
    let rules = Rules::sorted::<String, Vec<u8>>().index("by_city", "json:/city");
    let people = store.table("people", rules)?;
    people.put("ann", br#"{"city":"Berlin","age":30}"#.as_slice())?;
    for key in people.find("by_city")?.term("Berlin").keys() {
        println!("{} lives in Berlin", key?);
    }

    // Added later, while writes go on; the function is told how far it is, and may break it off.
    let by_age = IndexRule::parse("by_age:json:/age").expect("a rule");
    store.add_index("people", &by_age, |_| ControlFlow::Continue(()))?;
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

#[test]
fn the_rust_listings_of_the_readme_run_as_printed() {
    let project = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(project.join("README.md")).expect("the page is there");
    let (printed, here) = (listings_of(&page), listings_here());
    assert_eq!(printed.len(), here.len(), "each Rust listing of README.md has its twin in this test");
    for (printed, here) in printed.iter().zip(&here) {
        assert!(printed == here, "--- README.md\n{printed}--- crates/folddb/tests/readme.rs\n{here}");
    }
    let dir = tempfile::tempdir().expect("a directory");
    std::env::set_current_dir(dir.path()).expect("it is there");
    library().expect("it runs");
    indexes().expect("it runs");
}

#[test]
fn no_other_page_has_rust_that_nothing_runs() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs");
    for page in std::fs::read_dir(docs).expect("the pages").map(|entry| entry.expect("an entry").path()) {
        if page.extension().is_some_and(|ending| ending == "md") {
            let text = std::fs::read_to_string(&page).expect("a page");
            assert_eq!(
                listings_of(&text),
                [""; 0],
                "{}: run it in this test, as README's are",
                page.display()
            );
        }
    }
}
