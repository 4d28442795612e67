//! `folddb history STORE TABLE KEY...`: the states of a key, newest first, as far as its table
//! keeps them. For people a long value is truncated, and its size shown; for programs it is
//! complete, up to the longest single write.

use std::num::NonZeroUsize;
use std::time::SystemTime;

use folddb::DynamicRules;
use folddb::limits::VALUE_BYTES_MAX;
use folddb::{Datum, HistoryEntry};

use crate::args::HistoryArgs;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::json::{IntoDatum, Json, object};
use crate::render::{columns, sheet};
use crate::session::Session;

/// A state of a key.
type State = HistoryEntry<Option<Vec<u8>>>;

pub(crate) fn run(args: &HistoryArgs, session: &mut Session) -> Result<(), Failure> {
    let of = &args.of;
    let store = session.read(&of.store)?;
    let table = store.known_table(&of.table)?;
    let key = keys::key(&table, &of.key, of.hex)?;
    let states = table.history(&key, args.limit.map_or(usize::MAX, NonZeroUsize::get))?;
    if states.is_empty() {
        let shown = of.key.join(" ");
        return Err(Failure::Absent(format!(
            "table `{}` has no value for {shown}, and keeps no past one",
            table.name()
        )));
    }
    let rules = table.rules();
    if session.globals.json {
        let listed: Vec<_> = states.iter().map(|state| as_json(rules, state)).collect();
        return session
            .report(&object! { "key": Json(keys::shown(rules, &key)), "states": listed }, |_| Ok(()));
    }
    for state in &states {
        let written = state.written.map_or_else(|| "-".to_owned(), human::time);
        let until = state.deadline.map(|at| format!("  until {}", human::time(at)));
        let seq = state.seq.map_or_else(|| "-".to_owned(), |seq| seq.to_string());
        let value = in_words(rules, state);
        writeln!(session.out, "{seq:>10}  {written:20}  {value}{}", until.unwrap_or_default())?;
    }
    Ok(())
}

fn shown(rules: &DynamicRules, value: &[u8]) -> Datum {
    keys::shown_value(rules, value)
}

/// The value on a line, and its length if it is truncated.
fn in_words(rules: &DynamicRules, state: &State) -> String {
    let Some(value) = &state.value else { return "(absent)".to_owned() };
    let paths = columns::value_paths(rules.as_table_rules().fold.spec());
    match sheet::cut(columns::for_people(&paths, shown(rules, value)).to_string()) {
        (text, false) => text,
        (text, true) => format!("{text}  ({})", human::bytes(value.len() as u64)),
    }
}

/// When a state was written, as exactly as known: hashed tables keep the time of each write, others
/// about one per second.
fn written(state: &State, at: SystemTime) -> String {
    if state.seq.is_none() { human::rfc3339(at) } else { human::rfc3339_seconds(at) }
}

fn as_json(rules: &DynamicRules, state: &State) -> Json {
    let long = state.value.as_ref().map(Vec::len).filter(|&bytes| bytes > VALUE_BYTES_MAX);
    let value = state.value.as_ref().filter(|_| long.is_none());
    let told = object! {
        "seq": state.seq,
        "written": state.written.map(|at| written(state, at)),
        "deadline": state.deadline.map(human::rfc3339),
        "absent": state.value.is_none(),
        "value": value.map(|value| Json(shown(rules, value))),
    };
    match (told, long) {
        (Json(Datum::Map(mut fields)), Some(bytes)) => {
            fields.push(("long".to_owned(), bytes.into_datum()));
            Json(Datum::Map(fields))
        }
        (told, _) => told,
    }
}
