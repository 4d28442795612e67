//! Files that were cut, removed, zeroed, made longer, swapped, or hold the bytes of another: a
//! share of it each day. All of it: `FOLDDB_HARM=all cargo test -p folddb-sim --test harm`.

use std::collections::BTreeMap;
use std::time::{SystemTime, UNIX_EPOCH};

use folddb_sim::harm::{Came, Harm, Harmed, Left};

/// One in this many is tried, beginning at another one each day.
const EVERY: usize = 6;

fn today() -> usize {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs() / 86_400) as usize
}

/// Harms that are always tried: other bytes in a segment of the log, a shorter segment, and a
/// shorter manifest.
fn is_always(harm: &Harm) -> bool {
    match harm {
        Harm::Over(name, ..) | Harm::Gone(name) => name.ends_with(".log"),
        Harm::Cut(name, len) => name.ends_with(".log") && *len <= 65_536,
        _ => false,
    }
}

fn harm(left: Left) {
    let temp = tempfile::tempdir_in(folddb_sim::memory_dir()).expect("a directory");
    let harmed = Harmed::new(temp.path(), left).expect("the store is written");
    let (mut wrong, mut counts) = (Vec::new(), BTreeMap::<Came, u64>::new());
    let every = if std::env::var("FOLDDB_HARM").is_ok_and(|what| what == "all") { 1 } else { EVERY };
    let harms = harmed.harms();
    let is_chosen = |(at, harm): &(usize, &Harm)| (at + today()).is_multiple_of(every) || is_always(harm);
    for (_, harm) in harms.iter().enumerate().filter(is_chosen) {
        match harmed.try_one(harm) {
            Ok(came) => *counts.entry(came).or_default() += 1,
            Err(why) => wrong.push(format!("{harm:?}: {}", why.chars().take(1500).collect::<String>())),
        }
    }
    println!("{left:?}, of {} harms: {counts:?}", harms.len());
    assert!(wrong.is_empty(), "{left:?}: {} of {}:\n{}", wrong.len(), harms.len(), wrong.join("\n"));
    let refused = counts.get(&Came::Refused).copied().unwrap_or(0);
    assert!(refused > 20, "only {refused} harms were refused");
}

#[test]
fn harm_to_a_store_whose_process_died_is_found_or_at_a_limit_that_is_stated() {
    harm(Left::Died);
}

#[test]
fn harm_to_a_store_whose_last_act_was_an_edit_of_the_manifest_is_found() {
    harm(Left::DiedBehindAnEdit);
}

#[test]
fn harm_to_a_store_whose_log_had_just_gone_on_in_another_segment_is_found() {
    harm(Left::DiedBehindARoll);
}

#[test]
fn harm_to_a_store_that_was_idle_is_found() {
    harm(Left::DiedIdle);
}

#[test]
fn harm_to_a_closed_store_is_found() {
    harm(Left::Closed);
}
