//! A cache of blobs with a time to live: streamed in and out, listed by their heads without reading
//! them, in a sorted table and in a hashed one.
//!
//! ```text
//! cargo run -p folddb --example blob_cache
//! ```

use std::error::Error;
use std::io::{self, Read, Write};
use std::time::{Duration, SystemTime};

use folddb::{Expire, Lifetime, Options, Rules, Store, Table};

type Blobs = Table<String, Vec<u8>>;

/// Blobs written without a lifetime last an hour.
const LASTS: Duration = Duration::from_secs(3600);

/// Name, and length in bytes. The longest is written and read piece by piece, and never completely
/// in memory.
const BLOBS: [(&str, u64); 5] = [
    ("img/logo.svg", 900),
    ("img/photo.jpg", 180_000),
    ("pkg/tool-1.0.tar", 3_000_000),
    ("pkg/tool-1.1.tar", 24_000_000),
    ("tmp/upload", 50_000),
];

pub(crate) fn main() -> Result<(), Box<dyn Error>> {
    let dir = std::env::temp_dir().join(format!("folddb-blob-cache-{}", std::process::id()));
    let store = Store::create(&dir, Options::default())?;
    // Ranges of names, and values from 4 KiB on in the value log.
    let sorted = Rules::sorted::<String, Vec<u8>>().separate(4096).expire(Expire::After(LASTS));
    use_cache(&store, &store.table("by name", sorted)?)?;
    // No ranges, and a get is one read.
    let hashed = Rules::hashed::<String, Vec<u8>>().expire(Expire::After(LASTS));
    use_cache(&store, &store.table("by hash", hashed)?)?;
    store.close()?;
    let _ = std::fs::remove_dir_all(&dir); // the example cleans up
    Ok(())
}

fn use_cache(store: &Store, blobs: &Blobs) -> Result<(), Box<dyn Error>> {
    println!("{}:", blobs.name());
    for (name, len) in BLOBS {
        blobs.put_from(name, &mut Blob::new(name, len))?;
    }
    // One for a minute, written piece by piece.
    let minute = Lifetime::For(Duration::from_secs(60));
    let mut writer = blobs.with_lifetime(minute).writer("tmp/preview")?;
    io::copy(&mut Blob::new("tmp/preview", 200_000), &mut writer)?;
    writer.finish()?;
    // One that has expired, in place of the one above.
    let over = Lifetime::Until(SystemTime::now() - Duration::from_secs(1));
    blobs.with_lifetime(over).put_from("tmp/upload", &mut Blob::new("tmp/upload", 60_000))?;
    assert!(!blobs.contains("tmp/upload")? && blobs.read("tmp/upload")?.is_none());

    list(store, blobs)?;
    for (name, len) in [("pkg/tool-1.1.tar", 24_000_000), ("tmp/preview", 200_000)] {
        let mut reader = blobs.read(name)?.expect("it lasts");
        assert_eq!(reader.len_bytes(), len);
        assert_eq!(io::copy(&mut reader, &mut Same(Blob::new(name, len)))?, len);
        println!("  {name} came back as it was, {len} bytes");
    }
    // Eviction: the next reader must fetch it from the origin.
    blobs.delete("pkg/tool-1.0.tar")?;
    assert!(blobs.head("pkg/tool-1.0.tar")?.is_none());
    Ok(())
}

/// Name, length and remaining time of each blob. No blob is read for it.
fn list(store: &Store, blobs: &Blobs) -> folddb::Result<()> {
    let before = store.stats().reads.values;
    let (mut names, mut bytes) = (Vec::new(), 0);
    for row in blobs.scan().heads() {
        let (name, head) = row?;
        let deadline = head.deadline.expect("all blobs of a cache expire");
        let left = deadline.duration_since(store.now()).unwrap_or_default();
        println!(
            "  {name:18} {:10} bytes in {} pieces, {} s left",
            head.size_bytes,
            head.pieces,
            left.as_secs_f64().ceil()
        );
        bytes += head.size_bytes;
        names.push(name);
    }
    assert_eq!(store.stats().reads.values, before, "heads are read, blobs are not");
    names.sort();
    assert_eq!(
        names,
        ["img/logo.svg", "img/photo.jpg", "pkg/tool-1.0.tar", "pkg/tool-1.1.tar", "tmp/preview"]
    );
    assert_eq!(bytes, BLOBS.iter().map(|(_, len)| len).sum::<u64>() - 50_000 + 200_000);
    Ok(())
}

/// Bytes that are generated while they are read, like those from an origin.
struct Blob {
    state: u64,
    left: u64,
}

impl Blob {
    fn new(name: &str, len: u64) -> Blob {
        let state =
            name.bytes().fold(len, |state, byte| (state ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3));
        Blob { state: state | 1, left: len }
    }
}

impl Read for Blob {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let taken = into.len().min(usize::try_from(self.left).unwrap_or(usize::MAX));
        for byte in &mut into[..taken] {
            self.state ^= self.state << 13;
            self.state ^= self.state >> 7;
            self.state ^= self.state << 17;
            *byte = self.state as u8;
        }
        self.left -= taken as u64;
        Ok(taken)
    }
}

/// A writer that accepts only the expected bytes.
struct Same(Blob);

impl Write for Same {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut expected = vec![0; bytes.len()];
        self.0.read_exact(&mut expected)?;
        match expected == bytes {
            true => Ok(bytes.len()),
            false => Err(io::Error::other("these are other bytes")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
