//! `folddb feed list STORE`: the change feeds of a store, how far their consumers are, and what is
//! retained for them; `folddb feed drop STORE NAME`.

use folddb::{Datum, FeedStats, datum};
use serde_json::{Value, json};

use crate::args::{FeedArgs, FeedDropArgs, FeedVerb, StoreArgs};
use crate::failure::Failure;
use crate::human;
use crate::render::table;
use crate::session::Session;

pub(crate) fn run(args: &FeedArgs, session: &mut Session) -> Result<(), Failure> {
    match &args.verb {
        FeedVerb::List(args) => list(args, session),
        FeedVerb::Drop(args) => drop(args, session),
    }
}

fn drop(args: &FeedDropArgs, session: &mut Session) -> Result<(), Failure> {
    let name = &args.name;
    let store = session.write(&args.store)?;
    if store.feeds().iter().all(|feed| feed.name != *name) {
        return Err(Failure::NotFound(format!("the store has no feed `{name}`")));
    }
    store.drop_feed(name)?;
    store.close()
}

fn list(args: &StoreArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let feeds = store.feeds();
    let report = json!({ "feeds": feeds.iter().map(as_json).collect::<Value>() });
    session.report(&report, |out| {
        if feeds.is_empty() {
            return writeln!(out, "no feeds");
        }
        let header = ["feed", "of", "acknowledged", "behind", "holds", "at most", ""];
        table::write(out, &header.map(str::to_owned), &feeds.iter().map(row).collect::<Vec<_>>())
    })
}

fn as_json(feed: &FeedStats) -> Value {
    json!({
        "name": feed.name,
        "table": feed.table,
        "prefix": String::from_utf8_lossy(&feed.prefix),
        "prefix_hex": datum::hex(&feed.prefix),
        "seq": u64::from(feed.seq),
        "lag": feed.lag,
        "held_bytes": feed.held_bytes,
        "bytes_max": feed.bytes_max,
        "begun": feed.has_begun,
        "lost": feed.lost,
    })
}

fn row(feed: &FeedStats) -> Vec<Datum> {
    let of = feed.table.clone().unwrap_or_else(|| "all tables".to_owned());
    let of = match feed.prefix.is_empty() {
        true => of,
        false => format!("{of}, {}", Datum::Bytes(feed.prefix.clone())),
    };
    let state = match (&feed.lost, feed.has_begun) {
        (Some(why), _) => format!("lost: {why}"),
        (None, false) => "its rows are not all acknowledged".to_owned(),
        (None, true) => String::new(),
    };
    vec![
        Datum::Text(feed.name.clone()),
        Datum::Text(of),
        Datum::Int(u64::from(feed.seq).into()),
        Datum::Int(feed.lag.into()),
        Datum::Text(human::bytes(feed.held_bytes)),
        Datum::Text(bound(feed.bytes_max)),
        Datum::Text(state),
    ]
}

fn bound(bytes_max: u64) -> String {
    if bytes_max == u64::MAX { "no bound".to_owned() } else { human::bytes(bytes_max) }
}
