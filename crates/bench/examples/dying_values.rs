//! How many bytes reach the device for each byte of values that are overwritten evenly: what of it
//! dies before it is written back. For comparing two builds (decision 65).
//!
//! ```text
//! cargo run --release -p folddb-bench --example dying_values -- DIR [keys [rounds [bytes [hashed]]]]
//! ```
//!
//! One thread puts `rounds` (8) times as many values of `bytes` (12,288) as there are keys (8,192)
//! to random keys of a sorted table, or of a hashed one if `hashed` is 1, in a store in DIR. What
//! the device of DIR has written is read from /proc/diskstats, so nothing else should write to it:
//! a file system of its own, as on a loop device, is best.

use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::time::Instant;

use folddb::{Options, Result, Rules, Store};
use folddb_bench::generate::Chance;

const MEMORY_BYTES: usize = 64 << 20;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let dir = arguments.next().expect("a directory");
    let mut numbers = arguments.map(|number| number.parse::<u64>().expect("a number"));
    let keys = numbers.next().unwrap_or(8192);
    let rounds = numbers.next().unwrap_or(8);
    let bytes = numbers.next().unwrap_or(12_288) as usize;
    let is_hashed = numbers.next() == Some(1);
    let rules = if is_hashed { Rules::hashed() } else { Rules::sorted().separate(1024) };

    let place = Path::new(&dir).join("dying-values");
    let before = device_bytes(Path::new(&dir));
    let written = || device_bytes(Path::new(&dir)) - before;
    let store = Store::create(&place, Options::default().memory_bytes(MEMORY_BYTES))?;
    let table = store.table::<u64, Vec<u8>>("values", rules)?;
    let (started, mut random, mut value) = (Instant::now(), Chance::new(1), vec![0; bytes]);
    for put in 0..keys * rounds {
        value[..8].copy_from_slice(&put.to_le_bytes());
        table.put(&random.below(keys), &value)?;
    }
    let put_bytes = (keys * rounds * bytes as u64) as f64;
    let say = |when: &str| {
        let disk = store.stats().disk;
        println!(
            "{when} {:5.1} s, {:.2} bytes to the device for each, values take {:.2} of a round",
            started.elapsed().as_secs_f64(),
            written() as f64 / put_bytes,
            disk.value_bytes as f64 / (put_bytes / rounds as f64),
        );
    };
    say("put    ");
    store.settle()?;
    say("settled");
    drop(table);
    store.close()?;
    println!("closed  {:.2} bytes to the device for each", written() as f64 / put_bytes);
    std::fs::remove_dir_all(&place).expect("it is removed");
    Ok(())
}

/// What the device of this directory has written since the system began.
fn device_bytes(dir: &Path) -> u64 {
    let device = std::fs::metadata(dir).expect("the directory is there").dev();
    let (major, minor) = (device >> 8 & 0xfff, device & 0xff | device >> 12 & 0xffff_ff00);
    let all = std::fs::read_to_string("/proc/diskstats").expect("this is Linux");
    let fields = all.lines().map(|line| line.split_whitespace().collect::<Vec<_>>());
    let mut ours = fields.filter(|line| line[0] == major.to_string() && line[1] == minor.to_string());
    ours.next().expect("the directory is on a device")[9].parse::<u64>().expect("sectors") * 512
}
