//! An access log: the requests and visitors of each page, the errors of each minute, and who is on
//! the site.
//!
//! ```text
//! cargo run -p folddb --example access_log
//! ```
//!
//! Each request is one blind batch over three tables. A session ends half an hour after a request,
//! by the clock: for a present visitor it says what they did in the last half hour, and no cleanup
//! is needed.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, SystemTime};

use folddb::folds::{Hll, Quantiles};
use folddb::{Batch, Durability, Expire, Lifetime, Options, Record, Result, Rules, Store, Table};

const SESSION: Duration = Duration::from_secs(30 * 60);

/// The facts about a page. Each field folds on its own.
#[derive(Record, Debug, Default)]
struct Page {
    #[fold(sum)]
    requests: u64,
    #[fold(sum)]
    bytes: u64,
    latency_ms: Quantiles,
    visitors: Hll,
}

/// What a visitor did since they came.
#[derive(Record, Debug, Default)]
struct Session {
    #[fold(sum)]
    requests: u64,
    #[fold(first)]
    entry: String,
    #[fold(max)]
    last_s: u64,
}

/// A line of the log.
struct Request {
    at: SystemTime,
    visitor: String,
    path: &'static str,
    is_error: bool,
    bytes: u64,
    latency_ms: f64,
}

struct Site {
    pages: Table<String, Page>,
    /// Errors by minute.
    errors: Table<u64, u64>,
    sessions: Table<String, Session>,
}

impl Site {
    fn new(store: &Store) -> Result<Site> {
        Ok(Site {
            pages: store.table("pages", Rules::sorted::<String, Page>())?,
            errors: store.table("errors", Rules::sorted::<u64, u64>().fold("sum:u64"))?,
            sessions: store.table("sessions", Rules::sorted::<String, Session>().expire(Expire::ByWrite))?,
        })
    }

    fn take(&self, batch: &mut Batch, request: &Request) {
        let page = Page {
            requests: 1,
            bytes: request.bytes,
            latency_ms: Quantiles::of(request.latency_ms),
            visitors: Hll::of(request.visitor.as_str()),
        };
        batch.fold(&self.pages, request.path, &page);
        if request.is_error {
            batch.fold(&self.errors, &(unix_s(request.at) / 60), &1);
        }
        let session = Session { requests: 1, entry: request.path.to_owned(), last_s: unix_s(request.at) };
        let until_it_ends = self.sessions.with_lifetime(Lifetime::Until(request.at + SESSION));
        batch.fold(&until_it_ends, request.visitor.as_str(), &session);
    }
}

pub(crate) fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-access-log-{}", std::process::id()));
    let store = Store::create(&dir, Options::default())?;
    let site = Site::new(&store)?;
    let now = SystemTime::now();
    let log: Vec<Request> = log(now).collect();
    for requests in log.chunks(100) {
        let mut batch = store.batch();
        requests.iter().for_each(|request| site.take(&mut batch, request));
        batch.commit(Durability::Process)?;
    }

    println!("page         requests     bytes  visitors   median      p99");
    for row in site.pages.scan() {
        let (path, page) = row?;
        let of = |q| page.latency_ms.quantile(q).unwrap_or_default();
        let (requests, bytes, visitors) = (page.requests, page.bytes, page.visitors.estimate());
        println!("{path:12} {requests:8} {bytes:9} {visitors:9} {:5.1} ms {:5.1} ms", of(0.5), of(0.99));
    }
    let last_hour = unix_s(now) / 60 - 60;
    let errors = site.errors.scan().from(&last_hour).aggregate()?;
    println!("{} errors in the last hour", errors.value.unwrap_or(0));
    println!("{} visitors are here; the most eager:", site.sessions.scan().count()?);
    let mut here: Vec<(String, Session)> = site.sessions.scan().into_iter().collect::<Result<_>>()?;
    here.sort_by_key(|(visitor, session)| (u64::MAX - session.requests, visitor.clone()));
    for (visitor, session) in here.iter().take(3) {
        let idle_s = unix_s(now) - session.last_s;
        let (requests, entry) = (session.requests, &session.entry);
        println!("  {visitor}: {requests} requests since {entry}, the last {idle_s} s ago");
    }

    check(&site, &log, now)?;
    drop(site);
    store.close()?;
    let _ = std::fs::remove_dir_all(&dir); // the example cleans up
    Ok(())
}

/// The same by maps in memory.
fn check(site: &Site, log: &[Request], now: SystemTime) -> Result<()> {
    let mut pages: BTreeMap<&str, (u64, BTreeSet<&str>)> = BTreeMap::new();
    let mut sessions: BTreeMap<&str, (u64, &str)> = BTreeMap::new();
    for request in log {
        let (requests, visitors) = pages.entry(request.path).or_default();
        *requests += 1;
        visitors.insert(&request.visitor);
        if request.at + SESSION > now {
            sessions.entry(&request.visitor).or_insert((0, request.path)).0 += 1;
        }
    }
    for (path, (requests, visitors)) in &pages {
        let page = site.pages.get(*path)?.expect("each page of the log");
        assert_eq!(page.requests, *requests);
        let (seen, known) = (page.visitors.estimate() as f64, visitors.len() as f64);
        assert!((seen - known).abs() <= known * 0.05, "about {known} visitors of {path}, not {seen}");
    }
    assert_eq!(site.sessions.scan().count()?, sessions.len() as u64);
    for (visitor, (requests, entry)) in sessions {
        let session = site.sessions.get(visitor)?.expect("each visitor of the last half hour");
        assert_eq!((session.requests, session.entry.as_str()), (requests, entry), "{visitor}");
    }
    Ok(())
}

/// The log of the last three hours: some 10,000 requests of 900 visitors, most of whom come once.
/// There are no requests around half an hour ago, so that no session ends while this program reads.
fn log(now: SystemTime) -> impl Iterator<Item = Request> {
    const PAGES: [&str; 6] = ["/", "/", "/blog", "/blog/folds", "/download", "/search"];
    let seconds_ago = (1..3 * 3600).rev().filter(|ago| !(1700..1900).contains(ago));
    seconds_ago.map(move |ago| {
        let draw = mixed(ago);
        let path = PAGES[(draw % 6) as usize];
        Request {
            at: now - Duration::from_secs(ago),
            // There are 300 visitors per hour.
            visitor: format!("198.51.100.{}", ago / 3600 * 300 + (draw >> 8) % 300),
            path,
            is_error: path == "/search" && draw >> 16 & 15 == 0,
            bytes: 500 + (draw >> 20) % 4000,
            latency_ms: 2.0 + ((draw >> 32) % 1000) as f64 / 40.0,
        }
    })
}

/// A pseudo-random number.
fn mixed(number: u64) -> u64 {
    let number = number.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9)
}

fn unix_s(at: SystemTime) -> u64 {
    at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs())
}
