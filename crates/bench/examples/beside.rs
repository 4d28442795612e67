//! What a reader and a concurrent writer cost each other: for comparing two builds in turns.
//!
//! ```text
//! cargo run --release -p folddb-bench --example beside -- [rounds [pause_us [batch [rows [writes_per_s [loaded [memory_mb [hot]]]]]]]]
//! ```
//!
//! One thread folds sums onto keys by Zipf's law: as many keys as rows (2,000,000), in `batch`es
//! (1), at full speed or at `writes_per_s`. Another thread reads a key or, every eighth time, a
//! hundred rows, and sleeps for `pause_us` (10,000) between two reads. The store has `memory_mb`
//! (64).
//!
//! With `loaded`, so many keys are in the table before, and merged; then these are the keys that
//! are written and read. With `hot`, so many of them are read, each as often as the others.
//!
//! Next to the latencies it prints what the reading thread used: its time on the processor, its
//! waits for one, how often it slept within a read, and its page faults; and how many bytes of
//! parts were written for each write, by flushes and by merges.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb::{Durability, Options, Result, Rules, Store, Table};
use folddb_bench::generate::{Chance, UserKey, ZipfWrites};
use folddb_bench::measure::Latencies;

const SELECT_EVERY: u64 = 8;
const SELECT_ROWS: usize = 100;

struct Plan {
    rounds: u64,
    pause: Duration,
    batch: u64,
    rows: u64,
    writes_per_s: Option<u64>,
    /// How many keys are in the table before; 0 for none.
    loaded: u64,
    memory_bytes: usize,
    /// How many keys are read, each as often; 0 for all, by Zipf's law.
    hot: u64,
}

impl Plan {
    /// How many keys there are to write and to read.
    fn keys(&self) -> u64 {
        if self.loaded > 0 { self.loaded } else { self.rows }
    }
}

fn main() -> Result<()> {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u64>().expect("a number"));
    let mut next = |usual| numbers.next().unwrap_or(usual);
    let plan = Plan {
        rounds: next(5),
        pause: Duration::from_micros(next(10_000)),
        batch: next(1).max(1),
        rows: next(2_000_000),
        writes_per_s: Some(next(0)).filter(|rate| *rate > 0),
        loaded: next(0),
        memory_bytes: (next(64) as usize) << 20,
        hot: next(0),
    };
    let (mut gets, mut selects, mut used) = (Latencies::new(), Latencies::new(), Used::default());
    let (mut writing, mut writer_used) = (Duration::ZERO, Used::default());
    let mut moved = 0;
    for round in 0..plan.rounds {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options::default().memory_bytes(plan.memory_bytes);
        let store = Store::open_or_create(dir.path(), options)?;
        let table = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
        load(&store, &table, plan.loaded)?;
        let moved_before = store.stats().background.part_bytes;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let reading = scope.spawn(|| read(&table, &plan, round, &stop));
            let (took, by_writer) = write(&store, &table, &plan, round)?;
            stop.store(true, Ordering::Relaxed);
            let read = reading.join().expect("the reader lives")?;
            moved += store.stats().background.part_bytes - moved_before;
            (writing, writer_used) = (writing + took, writer_used.and(by_writer));
            gets.absorb(&read.0);
            selects.absorb(&read.1);
            used = used.and(read.2);
            Ok(())
        })?;
    }
    let rows = (plan.rounds * plan.rows) as f64;
    println!("gets    {}", gets.to_json());
    println!("selects {}", selects.to_json());
    println!("reader  {used:?}");
    println!("writer  {writer_used:?}");
    println!(
        "writes  {:.0} a second, {:.1} ns of its processor each",
        rows / writing.as_secs_f64(),
        writer_used.running_ns as f64 / rows
    );
    println!("parts   {:.1} bytes of them written for each write", moved as f64 / rows);
    Ok(())
}

/// Writes each key once, and waits for the merges that are due.
fn load(store: &Store, table: &Table<String, u64>, keys: u64) -> Result<()> {
    let mut batch = store.batch();
    for number in 0..keys {
        batch.fold(table, UserKey::new(number).text(), &1);
        if number % 1000 == 999 || number + 1 == keys {
            batch.commit(Durability::Process)?;
        }
    }
    store.settle()
}

fn write(store: &Store, table: &Table<String, u64>, plan: &Plan, round: u64) -> Result<(Duration, Used)> {
    let mut source = ZipfWrites::new(round, plan.keys());
    let (mut batch, started, before) = (store.batch(), Instant::now(), Used::now());
    for done in (0..plan.rows).step_by(plan.batch as usize) {
        if let Some(rate) = plan.writes_per_s {
            let due = started + Duration::from_secs_f64(done as f64 / rate as f64);
            while Instant::now() < due {
                std::hint::spin_loop();
            }
        }
        if plan.batch == 1 {
            table.fold(UserKey::new(source.next_key()).text(), &source.next_operand())?;
            continue;
        }
        for _ in 0..plan.batch {
            batch.fold(table, UserKey::new(source.next_key()).text(), &source.next_operand());
        }
        batch.commit(Durability::Process)?;
    }
    Ok((started.elapsed(), Used::now().since(before)))
}

fn read(
    table: &Table<String, u64>,
    plan: &Plan,
    round: u64,
    stop: &AtomicBool,
) -> Result<(Latencies, Latencies, Used)> {
    let mut source = ZipfWrites::new(round ^ 0x7265_6164, plan.keys());
    let hot: Vec<u64> = (0..plan.hot).map(|_| source.next_key()).collect();
    let mut chance = Chance::new(round);
    let mut next_key = || match plan.hot {
        0 => source.next_key(),
        count => hot[chance.below(count) as usize],
    };
    let (mut gets, mut selects, before) = (Latencies::new(), Latencies::new(), Used::now());
    let mut pauses = 0;
    for count in 1.. {
        let key = UserKey::new(next_key());
        let started = Instant::now();
        if count % SELECT_EVERY == 0 {
            for row in table.scan().from(key.text()).limit(SELECT_ROWS) {
                std::hint::black_box(row?);
            }
            selects.note(started.elapsed());
        } else {
            std::hint::black_box(table.get(key.text())?);
            gets.note(started.elapsed());
        }
        if stop.load(Ordering::Relaxed) {
            break;
        }
        if !plan.pause.is_zero() {
            pauses += 1;
            std::thread::sleep(plan.pause);
        }
    }
    let mut used = Used::now().since(before);
    used.slept = used.slept.saturating_sub(pauses);
    Ok((gets, selects, used))
}

/// What a thread has used, as Linux reports it; zeros on other systems.
#[derive(Clone, Copy, Debug, Default)]
struct Used {
    running_ns: u64,
    waiting_ns: u64,
    slept: u64,
    preempted: u64,
    page_faults: u64,
}

impl Used {
    fn now() -> Used {
        let text =
            |name: &str| std::fs::read_to_string(format!("/proc/thread-self/{name}")).unwrap_or_default();
        let (times, status, stat) = (text("schedstat"), text("status"), text("stat"));
        let mut times = times.split_whitespace().map(|ns| ns.parse().unwrap_or(0));
        let count = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
        };
        let behind_name = stat.rsplit(") ").next().unwrap_or_default();
        Used {
            running_ns: times.next().unwrap_or(0),
            waiting_ns: times.next().unwrap_or(0),
            slept: count("voluntary_ctxt_switches:"),
            preempted: count("nonvoluntary_ctxt_switches:"),
            page_faults: behind_name.split(' ').nth(7).and_then(|count| count.parse().ok()).unwrap_or(0),
        }
    }

    fn with(self, other: Used, join: impl Fn(u64, u64) -> u64) -> Used {
        Used {
            running_ns: join(self.running_ns, other.running_ns),
            waiting_ns: join(self.waiting_ns, other.waiting_ns),
            slept: join(self.slept, other.slept),
            preempted: join(self.preempted, other.preempted),
            page_faults: join(self.page_faults, other.page_faults),
        }
    }

    fn since(self, before: Used) -> Used {
        self.with(before, u64::saturating_sub)
    }

    fn and(self, other: Used) -> Used {
        self.with(other, u64::saturating_add)
    }
}
