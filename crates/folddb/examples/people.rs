//! Secondary indexes: documents that are merged field by field, two indexes, and one that is added
//! later.
//!
//! ```text
//! cargo run -p folddb --example people
//! ```

use std::ops::ControlFlow;

use folddb::{IndexRule, Options, Rules, Store};

pub(crate) fn main() -> folddb::Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-people-{}", std::process::id()));
    let store = Store::create(&dir, Options::default())?;

    // Values are documents, with their names sorted; a fold merges the known fields. Each write
    // adds entries for its terms, and reads nothing.
    let rules = Rules::sorted::<String, Vec<u8>>()
        .fold("json-merge")
        .index("by_city", "json:/home/city")
        .index("by_language", "json:/speaks");
    let people = store.table("people", rules)?;
    for (name, known) in [
        ("ann", r#"{"home":{"city":"Berlin"},"speaks":["German","English"]}"#),
        ("bob", r#"{"age":41,"home":{"city":"Rome"},"speaks":["Italian"]}"#),
        ("cid", r#"{"age":30,"home":{"city":"Berlin"}}"#),
        ("ann", r#"{"age":28}"#),               // her other fields stay
        ("cid", r#"{"home":{"city":"Oslo"}}"#), // he has moved: his entry under Berlin is stale, and never shown
    ] {
        people.fold(name, known.as_bytes())?;
    }
    let in_berlin: Vec<String> = people.find("by_city")?.term("Berlin").keys().collect::<Result<_, _>>()?;
    println!("in Berlin: {in_berlin:?}");
    let speak: Vec<String> = people.find("by_language")?.prefix("I").keys().collect::<Result<_, _>>()?;
    println!("speak a language with I: {speak:?}");

    // Added to a table with rows, while writes may continue.
    let rule: IndexRule = "by_age:json:/age".parse()?;
    store.bytes_table("people")?.add_index_with(&rule, |at| {
        println!("built of {} keys", at.keys_done);
        ControlFlow::Continue(())
    })?;
    for found in people.find("by_age")?.range(29..).reverse().values() {
        let (name, document) = found?;
        println!("{name}: {}", String::from_utf8_lossy(&document));
    }
    assert_eq!(in_berlin, ["ann"]);
    assert_eq!(speak, ["bob"]);
    store.close()?;
    let _ = std::fs::remove_dir_all(&dir); // the example cleans up
    Ok(())
}
