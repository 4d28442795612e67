//! Folds and reads keys this many times, as `overhead/overhead.c` does in C: `overhead/run` counts
//! both.

use folddb::{BackgroundWork, BytesTable, Options, Rules, Store, WriteOp};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().ok_or("overhead PATH FOLDS GETS");
    let (path, folds, gets) = (next()?, next()?.parse::<u64>()?, next()?.parse::<u64>()?);
    let store = Store::create(path, Options::default().background(BackgroundWork::Manual))?;
    store.table("counts", Rules::sorted::<u64, u64>().fold("sum:u64"))?;
    let table: BytesTable = store.bytes_table("counts")?;
    for n in 0..folds {
        table.write(WriteOp::Fold, &(n % 1000).to_be_bytes(), &1u64.to_le_bytes())?;
    }
    let mut total = 0u64;
    for n in 0..gets {
        let value = table.get(&(n % 1000).to_be_bytes())?.unwrap_or_default();
        total += u64::from_le_bytes(value.as_slice().try_into()?);
    }
    println!("{total}");
    store.close()?;
    Ok(())
}
