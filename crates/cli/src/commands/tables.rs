//! `folddb tables STORE`: the tables, and their rules.

use folddb::table_rules::{TableKind, TableRules};
use folddb::{Datum, Expire, Keep};
use serde_json::{Value, json};

use crate::args::StoreArgs;
use crate::failure::Failure;
use crate::human;
use crate::render::table;
use crate::session::{Session, is_reserved};

pub(crate) fn run(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let (mut rows, mut report) = (Vec::new(), Vec::new());
    for name in store.tables().into_iter().filter(|name| !is_reserved(name)) {
        let table = store.known_table(&name)?;
        let (stats, rules) = (table.stats()?, table.rules().as_table_rules());
        let indexes: Vec<String> = table.indexes().iter().map(|index| index.rule.to_string()).collect();
        let bytes = stats.disk_bytes + stats.memtable_bytes;
        report.push(json!({
            "table": name,
            "rules": rules_json(rules),
            "indexes": indexes,
            "records": stats.records,
            "bytes": bytes,
            "outdated_bytes": stats.outdated_bytes,
        }));
        rows.push(vec![
            Datum::Text(name),
            Datum::Text(rules.key_codec().name()),
            Datum::Text(fold_words(rules, indexes.len() as u64, stats.outdated_bytes)),
            Datum::Text(human::count(stats.records)),
            Datum::Text(human::bytes(bytes)),
        ]);
    }
    let header = ["table", "key", "fold", "records", "size"].map(str::to_owned);
    let is_frozen = store.stats().is_frozen;
    session.report(&Value::Array(report), |out| {
        table::write(out, &header, &rows)?;
        match is_frozen {
            true => writeln!(out, "the store is frozen: it is only read, until it is thawed"),
            false => Ok(()),
        }
    })
}

/// How values fold, or their type if they replace, and everything unusual.
fn fold_words(rules: &TableRules, indexes: u64, outdated_bytes: u64) -> String {
    let mut words = match rules.fold.spec() {
        spec @ ("replace" | "first") => format!("{spec} ({})", rules.value_codec()),
        spec => spec.to_owned(),
    };
    if rules.kind == TableKind::Hashed {
        words.push_str(", hashed");
    }
    if rules.order != "bytewise" {
        words.push_str(&format!(", {} keys", rules.order));
    }
    if rules.keep != Keep::Latest {
        words.push_str(&format!(", keep {}", rules.keep));
    }
    if rules.expire != Expire::Never {
        words.push_str(&format!(", expire {}", rules.expire));
    }
    match indexes {
        0 => {}
        1 => words.push_str(", 1 index"),
        count => words.push_str(&format!(", {count} indexes")),
    }
    if outdated_bytes > 0 {
        words.push_str(&format!(", {} outdated", human::bytes(outdated_bytes)));
    }
    words
}

/// The rules by name.
pub(crate) fn rules_json(rules: &TableRules) -> Value {
    let text = rules.to_string();
    let pairs = text.lines().skip(1).filter_map(|line| line.split_once('='));
    Value::Object(pairs.map(|(name, value)| (name.to_owned(), value.into())).collect())
}
