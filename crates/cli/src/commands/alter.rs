//! `folddb alter STORE TABLE`: gives a table other rules, under which its data mean the same.

use std::str::FromStr;

use folddb::table_rules::{Applies, RuleChange, TableRules};
use folddb::{ParseError, TableStats};
use serde_json::json;

use crate::args::{AlterArgs, Switch};
use crate::failure::Failure;
use crate::human;
use crate::session::Session;

pub(crate) fn run(args: &AlterArgs, session: &mut Session) -> Result<(), Failure> {
    check_something_is_asked(args)?;
    let store = session.write(&args.store)?;
    let table = store.known_table(&args.table)?;
    let mut refused = None;
    let changes = table.alter(|rules| {
        altered(args, rules.clone()).unwrap_or_else(|failure| {
            refused = Some(failure);
            rules
        })
    })?;
    if let Some(failure) = refused {
        return Err(failure);
    }
    let stats = table.stats()?;
    store.close()?;
    let report = json!({
        "table": args.table,
        "changes": changes.iter().map(as_json).collect::<Vec<_>>(),
        "outdated_parts": stats.outdated_parts,
        "outdated_bytes": stats.outdated_bytes,
    });
    session.report(&report, |out| {
        if changes.is_empty() {
            return writeln!(out, "table {} has these rules already: nothing is changed", args.table);
        }
        writeln!(out, "altered table {}", args.table)?;
        for RuleChange { rule, from, to, applies, .. } in &changes {
            writeln!(out, "  {rule}: {} -> {}{}", shown(from), shown(to), from_when(*applies))?;
        }
        match outdated_words(&stats) {
            Some(words) => {
                writeln!(out, "{words}; to merge now: folddb compact {} {}", args.store.display(), args.table)
            }
            None => Ok(()),
        }
    })
}

/// How much of a table was written before its rules were altered; none if nothing was.
pub(crate) fn outdated_words(stats: &TableStats) -> Option<String> {
    let TableStats { name, outdated_parts, outdated_bytes, .. } = stats;
    let (parts, bytes) = (human::plural(*outdated_parts, "part"), human::bytes(*outdated_bytes));
    (*outdated_parts > 0).then(|| format!("outdated until merged: {parts} of table {name}, {bytes}"))
}

fn as_json(change: &RuleChange) -> serde_json::Value {
    let applies = match change.applies {
        Applies::AtOnce => "at-once",
        Applies::ToWrites => "to-writes",
        _ => "by-merges",
    };
    json!({ "rule": change.rule, "from": change.from, "to": change.to, "applies": applies })
}

fn from_when(applies: Applies) -> &'static str {
    if applies == Applies::ToWrites { ", for what is written from now on" } else { "" }
}

fn shown(text: &str) -> &str {
    if text.is_empty() { "none" } else { text }
}

fn check_something_is_asked(args: &AlterArgs) -> Result<(), Failure> {
    let asked = [
        args.block.is_some(),
        args.compression.is_some(),
        args.bottom_compression.is_some(),
        args.filter_bits.is_some(),
        args.summaries.is_some(),
        args.separate.is_some(),
        args.value_placement.is_some(),
        args.keep.is_some(),
        args.expire.is_some(),
        !args.key_names.is_empty(),
        !args.rule.is_empty(),
    ];
    if asked.contains(&true) {
        return Ok(());
    }
    let why = "say what to alter: --block, --compression, --bottom-compression, --filter-bits, --summaries, --separate, \
               --value-placement, --keep, --expire, --key-names, or any rule by --rule NAME=VALUE";
    Err(Failure::Usage(why.to_owned()))
}

/// The rules as they are asked for.
fn altered(args: &AlterArgs, mut rules: TableRules) -> Result<TableRules, Failure> {
    for rule in &args.rule {
        rules = with_rule(&rules, rule)?;
    }
    if let Some(bytes) = args.block {
        rules = rules.block_bytes(u32::try_from(bytes).unwrap_or(u32::MAX));
    }
    if let Some(name) = &args.compression {
        rules = rules.compression(parsed("--compression", name)?);
    }
    if let Some(name) = &args.bottom_compression {
        rules = rules.bottom_compression(Some(parsed("--bottom-compression", name)?));
    }
    if let Some(bits) = args.filter_bits {
        rules = rules.filter_bits(bits);
    }
    if let Some(summaries) = args.summaries {
        rules = rules.summaries(summaries == Switch::On);
    }
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
    if !args.key_names.is_empty() {
        rules = rules.key_names(args.key_names.iter().map(String::as_str));
    }
    Ok(rules)
}

/// The rules with one of them as it is typed, `NAME=VALUE`: the others stay.
fn with_rule(rules: &TableRules, typed: &str) -> Result<TableRules, Failure> {
    let (name, _) = typed.split_once('=').unwrap_or((typed, ""));
    let text = rules.to_string();
    let others = text.lines().filter(|line| line.split_once('=').is_none_or(|(other, _)| other != name));
    let wanted: Vec<&str> = others.chain([typed]).collect();
    let wrong = |error: ParseError| Failure::Usage(format!("in --rule: {error}"));
    if let Err(error) = typed.parse::<TableRules>() {
        return Err(wrong(error)); // its place is in what was typed
    }
    wanted.join("\n").parse().map_err(wrong)
}

fn parsed<T: FromStr<Err = ParseError>>(option: &str, text: &str) -> Result<T, Failure> {
    text.parse().map_err(|error: ParseError| Failure::Usage(format!("in {option}: {error}")))
}
