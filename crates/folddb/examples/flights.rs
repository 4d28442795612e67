//! The flights of README in Rust: how many there are by carrier and airport, their delays, and the
//! number of planes.
//!
//! ```text
//! cargo run -p folddb --example flights
//! ```

use std::fs::File;
use std::path::Path;

use flate2::read::GzDecoder;
use folddb::folds::{Hll, Stats};
use folddb::{Durability, Options, Record, Rules, Store};

/// The facts about the flights of a carrier from an airport. Each field folds on its own.
#[derive(Record, Debug)]
pub(crate) struct Flights {
    #[fold(sum)]
    flights: u64,
    /// Delays of those that departed.
    delay: Stats,
    tails: Hll,
}

impl Flights {
    /// The operand of one row of the file.
    fn of(delay: Option<f64>, tail: Option<&str>) -> Flights {
        Flights {
            flights: 1,
            delay: delay.map(Stats::of).unwrap_or_default(),
            tails: tail.map(Hll::of).unwrap_or_default(),
        }
    }
}

pub(crate) fn main() -> folddb::Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-flights-{}", std::process::id()));
    let store = Store::create(&dir, Options::default())?;
    let delays = store.table("delays", Rules::sorted::<(String, String), Flights>())?;

    // Each row is a blind write: nothing is looked up.
    let mut batch = store.batch();
    for row in rows().expect("the sample that comes with the project") {
        let (carrier, origin, delay, tail) = row;
        let flight = Flights::of(delay.parse().ok(), Some(tail.as_str()).filter(|tail| *tail != "NA"));
        batch.fold(&delays, &(carrier, origin), &flight);
    }
    batch.commit(Durability::Process)?;

    for row in delays.scan().limit(5) {
        let ((carrier, origin), known) = row?;
        let (flights, mean, tails) = (known.flights, known.delay.mean(), known.tails.estimate());
        println!("{carrier} {origin}: {flights} flights, {mean:.3} minutes late on average, {tails} planes");
    }
    let first = delays.get(&("9E", "EWR"))?.expect("there are flights of Endeavor Air from Newark");
    assert_eq!((first.flights, first.delay.count(), first.tails.estimate()), (32, 30, 23));
    assert_eq!((first.delay.sum(), first.delay.max()), (229.0, Some(120.0)));

    store.close()?;
    std::fs::remove_dir_all(&dir).ok();
    Ok(())
}

/// Carrier, airport, delay and tail number of a flight.
type Row = (String, String, String, String);

/// The flights of the sample.
fn rows() -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../samples/flights-2013-01-first-days.csv.gz");
    let mut reader = csv::Reader::from_reader(GzDecoder::new(File::open(path)?));
    let columns = reader.headers()?.clone();
    let place = |name: &str| columns.iter().position(|column| column == name).ok_or(format!("no `{name}`"));
    let places = [place("carrier")?, place("origin")?, place("dep_delay")?, place("tailnum")?];
    let mut rows = Vec::new();
    for row in reader.records() {
        let row = row?;
        let [carrier, origin, delay, tail] = places.map(|place| row[place].to_owned());
        rows.push((carrier, origin, delay, tail));
    }
    Ok(rows)
}
