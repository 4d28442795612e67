//! `folddb count STORE TABLE`: the number of keys, or about how many and how many bytes.

use folddb::BytesScan;
use serde_json::json;

use crate::args::CountArgs;
use crate::failure::Failure;
use crate::human;
use crate::ranges;
use crate::session::Session;

pub(crate) fn run(args: &CountArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.read(&args.store)?;
    let table = store.known_table(&args.table)?;
    if args.estimate {
        if args.range.at.is_some() || session.transaction.is_some() {
            let why = "an estimate is of the table as it is now: leave out --at, and commit or abort first";
            return Err(Failure::Usage(why.to_owned()));
        }
        return estimate(&ranges::narrow(&table, &args.range)?, session);
    }
    let keys = ranges::narrow_inside(&table, &args.range, session.transaction.as_ref())?.count()?;
    session.report(&json!({ "keys": keys }), |out| writeln!(out, "{keys}"))
}

fn estimate(range: &BytesScan, session: &mut Session) -> Result<(), Failure> {
    let about = range.estimate()?;
    let report = json!({
        "keys": about.rows,
        "records": about.records,
        "disk_bytes": about.disk_bytes,
        "disk_bytes_min": about.disk_bytes_min,
        "disk_bytes_max": about.disk_bytes_max,
        "value_bytes": about.value_bytes,
        "memory_bytes": about.memory_bytes,
    });
    session.report(&report, |out| {
        let (keys, bytes) = (human::plural(about.rows, "key"), human::bytes(about.disk_bytes));
        write!(out, "about {keys}, {bytes} in files")?;
        if about.value_bytes > 0 {
            write!(out, ", {} of separated values", human::bytes(about.value_bytes))?;
        }
        if about.memory_bytes > 0 {
            write!(out, ", {} in memory", human::bytes(about.memory_bytes))?;
        }
        writeln!(out)
    })
}
