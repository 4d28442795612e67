//! `folddb index add|drop|list STORE TABLE`: the indexes of a table.

use folddb::{Datum, IndexInfo};
use serde_json::{Value, json};

use crate::args::{IndexAddArgs, IndexArgs, IndexDropArgs, IndexListArgs, IndexVerb};
use crate::failure::Failure;
use crate::human;
use crate::interrupt;
use crate::messages;
use crate::progress;
use crate::render::table;
use crate::rules_words;
use crate::session::Session;

pub(crate) fn run(args: &IndexArgs, session: &mut Session) -> Result<(), Failure> {
    match &args.verb {
        IndexVerb::Add(args) => add(args, session),
        IndexVerb::Drop(args) => drop(args, session),
        IndexVerb::List(args) => list(args, session),
    }
}

fn add(args: &IndexAddArgs, session: &mut Session) -> Result<(), Failure> {
    let rule = rules_words::rule(&args.index)?;
    let _hearing = session.shared.is_none().then(interrupt::hear); // a shell does this itself
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?;
    if table.indexes().iter().any(|index| index.rule == rule && index.is_built) {
        let report = json!({ "index": rule.to_string(), "exists": true, "keys": 0, "entries": 0 });
        return session.report(&report, |out| {
            writeln!(out, "table {} has index {} already: nothing is changed", args.table, rule.name)
        });
    }
    let bar = progress::share_bar(&rule.name);
    let mut done = None;
    table.add_index_with(&rule, |at| {
        bar.set_position((at.keys_done.saturating_mul(1000) / at.keys_total.max(1)).min(1000));
        done = Some(at);
        interrupt::flow()
    })?;
    bar.finish_and_clear();
    interrupt::check()?; // the progress stays, and `index add` continues
    store.close()?;
    let (keys, entries) = done.map_or((0, 0), |at| (at.keys_done, at.entries));
    let report = json!({ "index": rule.to_string(), "keys": keys, "entries": entries });
    session.report(&report, |out| {
        let (keys, entries) = (human::plural(keys, "key"), entries_words(entries));
        writeln!(out, "added index {} to table {}: {entries} of {keys}", rule.name, args.table)
    })?;
    if keys > 0 && entries == 0 && !session.globals.json {
        let terms = &rule.terms;
        messages::print(&format!(
            "folddb: nothing is found by {terms} yet: check how it is written, or drop the index"
        ));
    }
    Ok(())
}

fn drop(args: &IndexDropArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?;
    table.drop_index(&args.index)?;
    let report = json!({ "dropped": args.index, "table": args.table });
    session.report(&report, |out| writeln!(out, "dropped index {} of table {}", args.index, args.table))
}

fn list(args: &IndexListArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let tables = match &args.table {
        Some(name) => vec![store.known_table(name)?.name().to_owned()],
        None => store.tables(),
    };
    let (mut rows, mut report) = (Vec::new(), Vec::new());
    for name in tables {
        for index in store.bytes_table(&name)?.indexes() {
            let stats = store.bytes_table(&index.table)?.stats()?;
            let bytes = stats.disk_bytes + stats.memtable_bytes;
            report.push(json!({
                "table": name,
                "index": index.rule.name,
                "rule": index.rule.terms.to_string(),
                "built": index.is_built,
                "entries": stats.records,
                "bytes": bytes,
                "missing": index.missing,
            }));
            rows.push(vec![
                Datum::Text(name.clone()),
                Datum::Text(index.rule.name.clone()),
                Datum::Text(index.rule.terms.to_string()),
                Datum::Text(build_state(&index)),
                Datum::Text(human::count(stats.records)),
                Datum::Text(human::bytes(bytes)),
            ]);
        }
    }
    let header = ["table", "index", "rule", "state", "entries", "size"].map(str::to_owned);
    session.report(&Value::Array(report), |out| table::write(out, &header, &rows))
}

fn build_state(index: &IndexInfo) -> String {
    match (&index.missing, index.is_built) {
        (Some(missing), _) => missing.clone(),
        (None, true) => "built".to_owned(),
        (None, false) => "being built: `index add` continues it".to_owned(),
    }
}

fn entries_words(entries: u64) -> String {
    format!("{} {}", human::count(entries), if entries == 1 { "entry" } else { "entries" })
}
