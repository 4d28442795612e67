//! `folddb create STORE [TABLE]`: the only verb that creates a store, together with `import
//! --create`.

use std::str::FromStr;

use folddb::codec::ValueCodec;
use folddb::folds::FoldSpec;
use folddb::table_rules::TableRules;
use folddb::{Datum, DynamicRules, ErrorKind, Options, ParseError, Store};
use serde_json::json;

use crate::args::CreateArgs;
use crate::failure::Failure;
use crate::import::ledger;
use crate::rules_words;
use crate::session::{Opened, Session};

pub(crate) fn run(args: &CreateArgs, session: &mut Session) -> Result<(), Failure> {
    let rules = args.table.as_ref().map(|_| rules(args)).transpose()?;
    if let (Some(table), Some(rules)) = (&args.table, &rules) {
        rules_words::check_table_name(table)?;
        Store::check_table(table, rules, &session.options())?; // before a store is created
    }
    let store = open(args, session)?;
    if let (Some(table), Some(rules)) = (&args.table, rules) {
        if !store.tables().contains(table) && !ledger::entries(&store, Some(table))?.is_empty() {
            ledger::forget(&store, table)?; // a `drop` may have been killed before it did
        }
        store.create_bytes_table(table, rules)?;
    }
    let path = args.store.display().to_string();
    let report = json!({ "store": path, "table": args.table });
    session.report(&report, |out| match &args.table {
        Some(table) => writeln!(out, "created table {table} in {path}"),
        None => writeln!(out, "created store {path}"),
    })
}

/// Without a table the store must be new; with one it may exist.
fn open(args: &CreateArgs, session: &Session) -> Result<Opened, Failure> {
    if args.table.is_none() {
        return session.create(&args.store);
    }
    match session.write(&args.store) {
        Err(Failure::Store(error)) if error.kind() == ErrorKind::StoreNotFound => {
            session.create_to_fill(&args.store)
        }
        opened => opened,
    }
}

pub(super) fn rules(args: &CreateArgs) -> Result<TableRules, Failure> {
    let mut rules = match &args.like {
        Some(text) if text.contains('=') => rules_of_text(text)?,
        Some(name) => TableRules::ready_made(name).ok_or_else(|| unknown_ready_made(name))?,
        None => stated_rules(args)?,
    };
    if let Some(name) = &args.kind {
        rules = rules.kind(parsed("--kind", name)?);
    }
    if !args.key_names.is_empty() {
        rules = rules.key_names(args.key_names.iter().map(String::as_str));
    }
    for index in &args.index {
        rules = rules.index(rules_words::rule(index)?);
    }
    if args.reversed {
        rules = rules.order("reversed");
    }
    if let Some(name) = &args.compression {
        rules = rules.compression(parsed("--compression", name)?);
    }
    if let Some(name) = &args.bottom_compression {
        rules = rules.bottom_compression(Some(parsed("--bottom-compression", name)?));
    }
    if let Some(bytes) = args.block {
        rules = rules.block_bytes(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
    rules = rules.summaries(args.summaries).archive_log(args.archive_log);
    if let Some(bytes) = args.separate {
        rules = rules.separate(Some(u32::try_from(bytes).unwrap_or(u32::MAX)));
    }
    if let Some(name) = &args.value_placement {
        rules = rules.value_placement(parsed("--value-placement", name)?);
    }
    if let Some(rule) = &args.keep {
        rules = rules.keep(parsed("--keep", rule)?);
    }
    if let Some(rule) = &args.expire {
        rules = rules.expire(parsed("--expire", rule)?);
    }
    if let Some(rule) = &args.head {
        rules = rules.head(parsed("--head", rule)?);
    }
    if let Some(bits) = args.filter_bits {
        rules = rules.filter_bits(bits);
    }
    if let Some(value) = &args.delete_when {
        rules = delete_when(rules, value)?;
    }
    rules.check()?;
    Ok(rules)
}

fn parsed<T: FromStr<Err = ParseError>>(option: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error: ParseError| usage(option, &error))
}

fn usage(place: &str, error: &dyn std::fmt::Display) -> Failure {
    Failure::Usage(format!("in {place}: {error}"))
}

/// Rules in the words of `folddb rules`. Bytes are what these say for every fold.
fn rules_of_text(text: &str) -> Result<TableRules, Failure> {
    let rules: TableRules = text.parse().map_err(|error| usage("--like", &error))?;
    if rules.value != ValueCodec::Bytes {
        rules_words::check_value_type("value=", rules.value, "the table folds by", rules.fold.spec())?;
    }
    Ok(rules)
}

fn stated_rules(args: &CreateArgs) -> Result<TableRules, Failure> {
    let mut rules = TableRules::new(parsed("--key", &args.key)?);
    if let Some(spec) = &args.fold {
        rules = rules.fold(&parsed::<FoldSpec>("--fold", spec)?.to_string());
    }
    let value = match &args.value {
        Some(name) => {
            let codec = parsed("--value", name)?;
            rules_words::check_value_type("--value", codec, "the table folds by", rules.fold.spec())?;
            codec
        }
        None if args.fold.is_none() => ValueCodec::Utf8,
        None => ValueCodec::Bytes,
    };
    Ok(rules.value(value))
}

fn delete_when(rules: TableRules, value: &str) -> Result<TableRules, Failure> {
    let mut bytes = Vec::new();
    let bound = DynamicRules::new(&rules, &Options::default())?;
    bound
        .read_value(&Datum::Text(value.to_owned()), &mut bytes)
        .map_err(|cause| Failure::Usage(format!("in --delete-when: {cause}")))?;
    Ok(rules.delete_when(&bytes))
}

fn unknown_ready_made(name: &str) -> Failure {
    let known: Vec<String> =
        folddb::table_rules::READY_MADE.iter().map(|(name, what)| format!("  {name:9} {what}")).collect();
    Failure::Usage(format!("there are no ready-made rules `{name}`; the choices are\n{}", known.join("\n")))
}
