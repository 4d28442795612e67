//! What a reader and a concurrent writer cost each other: for comparing two builds in turns.
//!
//! ```text
//! cargo run --release -p folddb-bench --example beside -- [rounds [pause_us [batch [rows [writes_per_s]]]]]
//! ```
//!
//! One thread folds sums onto keys by Zipf's law: as many keys as rows (2,000,000), in `batch`es
//! (1), at full speed or at `writes_per_s`, with 64 MB of memory. Another thread reads a key or,
//! every eighth time, a hundred rows, and sleeps for `pause_us` (10,000) between two reads. Next to
//! the latencies it prints what the reading thread used: its time on the processor, its waits for
//! one, how often it slept within a read, and its page faults.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use folddb::{Durability, Options, Result, Rules, Store, Table};
use folddb_bench::generate::{UserKey, ZipfWrites};
use folddb_bench::measure::Latencies;

const SELECT_EVERY: u64 = 8;
const SELECT_ROWS: usize = 100;
const MEMORY_BYTES: usize = 64 << 20;

struct Plan {
    rounds: u64,
    pause: Duration,
    batch: u64,
    rows: u64,
    writes_per_s: Option<u64>,
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
    };
    let (mut gets, mut selects, mut used) = (Latencies::new(), Latencies::new(), Used::default());
    let (mut writing, mut writer_used) = (Duration::ZERO, Used::default());
    for round in 0..plan.rounds {
        let dir = tempfile::tempdir().expect("a directory");
        let options = Options::default().memory_bytes(MEMORY_BYTES);
        let store = Store::open_or_create(dir.path(), options)?;
        let table = store.table("visits", Rules::sorted::<String, u64>().fold("sum:u64"))?;
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| -> Result<()> {
            let reading = scope.spawn(|| read(&table, &plan, round, &stop));
            let (took, by_writer) = write(&store, &table, &plan, round)?;
            stop.store(true, Ordering::Relaxed);
            let read = reading.join().expect("the reader lives")?;
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
    Ok(())
}

fn write(store: &Store, table: &Table<String, u64>, plan: &Plan, round: u64) -> Result<(Duration, Used)> {
    let mut source = ZipfWrites::new(round, plan.rows);
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
    let mut source = ZipfWrites::new(round ^ 0x7265_6164, plan.rows);
    let (mut gets, mut selects, before) = (Latencies::new(), Latencies::new(), Used::now());
    let mut pauses = 0;
    for count in 1.. {
        let key = UserKey::new(source.next_key());
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
