//! `folddb history STORE TABLE KEY...`: what a key has been, newest first, as far as its table keeps that.

use std::num::NonZeroUsize;

use folddb::Datum;
use serde_json::json;

use crate::args::HistoryArgs;
use crate::failure::Failure;
use crate::human;
use crate::keys;
use crate::render::json;
use crate::session::Session;

pub(crate) fn run(args: &HistoryArgs, session: &mut Session) -> Result<(), Failure> {
    let of = &args.of;
    let store = session.read(&of.store)?;
    let table = store.known_table(&of.table)?;
    let key = keys::key(&table, &of.key, of.hex)?;
    let versions = table.history(&key, args.limit.map_or(usize::MAX, NonZeroUsize::get))?;
    if versions.is_empty() {
        let shown = of.key.join(" ");
        return Err(Failure::NotFound(format!(
            "table `{}` has no value for {shown}, and keeps none",
            table.name()
        )));
    }
    let rules = table.rules();
    let time = |ms: Option<u64>| ms.map_or(Datum::Null, |ms| Datum::Text(human::utc(ms / 1000)));
    let shown = |value: &Option<Vec<u8>>| {
        value.as_ref().map(|value| rules.show_value(value).unwrap_or_else(|_| Datum::Bytes(value.clone())))
    };
    let states: Vec<_> = versions.iter().map(|version| (version, shown(&version.value))).collect();
    let of_state = |(version, value): &(&folddb::Version<Option<Vec<u8>>>, Option<Datum>)| {
        json!({
            "seq": version.seq,
            "written": json::from_datum(&time(version.time_ms)),
            "deadline": json::from_datum(&time(version.deadline_ms)),
            "absent": value.is_none(),
            "value": value.as_ref().map_or(serde_json::Value::Null, json::from_datum),
        })
    };
    let key = rules.rules.key_codec().show(&key).unwrap_or(Datum::Bytes(key));
    let listed: Vec<_> = states.iter().map(of_state).collect();
    let report = json!({ "key": json::from_datum(&key), "states": listed });
    session.report(&report, |out| {
        for (version, value) in &states {
            let written = version.time_ms.map_or_else(|| "-".to_owned(), |ms| human::utc(ms / 1000));
            let value = value.as_ref().map_or_else(|| "(absent)".to_owned(), Datum::to_string);
            let until = version.deadline_ms.map(|ms| format!("  until {}", human::utc(ms / 1000)));
            let seq = version.seq.map_or_else(|| "-".to_owned(), |seq| seq.to_string());
            writeln!(out, "{seq:>10}  {written:19}  {value}{}", until.unwrap_or_default())?;
        }
        Ok(())
    })
}
