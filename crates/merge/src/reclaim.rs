//! Plans which files of the value log to reclaim: their live values are copied, and the files are
//! removed. Pure.
//!
//! ```text
//!   over the bound   the value log takes more than `bound` times the live bytes: first the files
//!                    that free most for each copied byte, older ones sooner
//!   small files      many small files of about one size, as of openings that each wrote little
//!   short of space   first the files that free most for each copied byte, as far as there is room
//! ```
//!
//! Live values count with the space that they take in the copy, including their share of its map,
//! so that a plan always frees more than it takes. Of two files with equal shares of dead values,
//! the older is chosen: old values tend to stay, while more values of young files will soon be dead
//! anyway.
//!
//! Called by the engine's background work, and for `folddb reclaim`.

use std::fmt;

use folddb_base::{counted, size_text};

/// A file of values, as planning sees it. Planning gets only files with a known number of live
/// values.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ValueFile {
    /// Its number.
    pub number: u64,
    /// The segments with values in it.
    pub segments: Vec<u32>,
    /// Its length.
    pub bytes: u64,
    /// How many values in it something points to.
    pub live_values: u64,
    /// Bytes of the records of the live values.
    pub live_bytes: u64,
}

/// The limits of a plan.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReclaimOptions {
    /// The whole value log may take this many times the live bytes.
    pub bound: f64,
    /// Bytes of the value log outside these files, all counted as live: segments that are being
    /// filled, or that memtables point to.
    pub fresh_bytes: u64,
    /// Space that is preallocated for the value log and not filled yet.
    pub spare_bytes: u64,
    /// About how many of the bytes that count as live are dead, because a merge has not yet dropped
    /// the pointers.
    pub hidden_bytes: u64,
    /// How large the new file may become; one value that is larger makes it larger.
    pub file_bytes: u64,
    /// A plan must free at least this many bytes.
    pub gain_bytes_min: u64,
    /// Free space that the new file may take before the others are removed.
    pub room_bytes: u64,
    /// Space is short: choose the files that free most for each byte that is copied, whatever their
    /// age.
    pub is_short: bool,
}

/// Why files are copied.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ReclaimReason {
    /// All files together take this many times the live bytes.
    Space(f64),
    /// They are small.
    SmallFiles,
    /// There is hardly any space left.
    Short,
}

/// Files that are to be reclaimed: their live values will be copied into one file.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ReclaimPlan {
    /// The files that will be removed, by number.
    pub files: Vec<u64>,
    /// The segments with values in them, ascending.
    pub segments: Vec<u32>,
    /// Bytes of the files.
    pub bytes: u64,
    /// Bytes of the live values in them.
    pub live_bytes: u64,
    /// About how long the new file will be.
    pub new_bytes: u64,
    /// Why.
    pub reason: ReclaimReason,
}

/// What a file takes in addition to its records and its map, in bytes.
const FRAME_BYTES: u64 = 4096 + 4096 + 256;
/// A page of a map, and how many values it lists.
const PAGE_BYTES: u64 = 4096;
const PAGE_VALUES: u64 = 510;

/// The lowest age of a file. It is above 0, so that the gain of the youngest file counts at all.
const AGE_MIN: f64 = 0.001;

/// If there are this many small files of one size, they are joined. Ordinary segments grow with the
/// store, so there are never so many of one size.
pub const SMALL_FILES: usize = 64;
/// The step of size classes in powers of two: files of one class differ in length by less than a
/// factor of 8.
const SIZE_STEP: u32 = 3;

impl ValueFile {
    /// The space that its live values take in a new file.
    fn taken_bytes(&self) -> u64 {
        let pages = self.live_values.div_ceil(PAGE_VALUES) + self.segments.len() as u64;
        self.live_bytes + pages.min(self.live_values.max(1)) * PAGE_BYTES
    }

    fn gain_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.taken_bytes())
    }

    /// Its youngest segment, which determines its age.
    fn youngest(&self) -> u32 {
        self.segments.last().copied().unwrap_or(0)
    }

    /// Its size class, if it is small.
    fn size_class(&self, file_bytes: u64) -> Option<u32> {
        (self.bytes < file_bytes / 4).then(|| self.bytes.max(1).ilog2() / SIZE_STEP)
    }
}

/// The estimate of live bytes, without hidden ones, is at least the known live bytes divided by
/// this.
const LIVE_SHARE: u64 = 2;
/// Preallocated space counts up to the live bytes divided by this: a small value log has relatively
/// more of it.
const SPARE_SHARE: u64 = 8;

impl ReclaimOptions {
    /// How many bytes the whole value log takes, and about how many of these are live.
    pub fn value_log(&self, files: &[ValueFile]) -> (u64, u64) {
        let known: u64 = files.iter().map(|file| file.live_bytes).sum::<u64>() + self.fresh_bytes;
        let live = known.saturating_sub(self.hidden_bytes).max(known / LIVE_SHARE);
        let filled: u64 = files.iter().map(|file| file.bytes).sum::<u64>() + self.fresh_bytes;
        (filled + self.spare_bytes.min(live / SPARE_SHARE), live)
    }
}

/// The next plan; none if no files are worth the work.
pub fn plan_reclaim(files: &[ValueFile], options: &ReclaimOptions) -> Option<ReclaimPlan> {
    let (bytes, live) = options.value_log(files);
    let ratio = bytes as f64 / live.max(1) as f64;
    if options.is_short {
        return Pick::new(options, ReclaimReason::Short).take_all(by_worth(files, |_| 1.0), 0.02, u64::MAX);
    }
    let over = (bytes as f64 - options.bound * live as f64).max(0.0) as u64;
    let by_space = (over > 0)
        .then(|| {
            let age = ages(files);
            let worth = by_worth(files, |file| age(file));
            let share_min = (1.0 - 1.0 / options.bound) / 2.0;
            Pick::new(options, ReclaimReason::Space(ratio)).take_all(worth, share_min, over)
        })
        .flatten();
    by_space.or_else(|| small_files(files, options))
}

/// The age of a file from 0 to 1: the share of all bytes that are in younger files.
fn ages(files: &[ValueFile]) -> impl Fn(&ValueFile) -> f64 {
    let total = files.iter().map(|file| file.bytes).sum::<u64>().max(1) as f64;
    let mut young: Vec<(u32, u64)> = files.iter().map(|file| (file.youngest(), file.bytes)).collect();
    young.sort_unstable();
    let mut sum = 0;
    let below: Vec<(u32, u64)> = young
        .iter()
        .map(|&(segment, bytes)| {
            sum += bytes;
            (segment, sum)
        })
        .collect();
    move |file| {
        let at = below.partition_point(|&(segment, _)| segment < file.youngest());
        let older = at.checked_sub(1).map_or(0, |before| below[before].1);
        1.0 - older as f64 / total
    }
}

/// Files that free something, the best first: by the gain for each byte that is copied, times the
/// age (Rosenblum and Ousterhout 1991).
fn by_worth(files: &[ValueFile], age: impl Fn(&ValueFile) -> f64) -> Vec<&ValueFile> {
    let worth = |file: &ValueFile| {
        age(file).max(AGE_MIN) * file.gain_bytes() as f64 / (file.taken_bytes() + FRAME_BYTES) as f64
    };
    let mut worthy: Vec<(f64, &ValueFile)> =
        files.iter().filter(|file| file.gain_bytes() > 0).map(|file| (worth(file), file)).collect();
    worthy.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.number.cmp(&b.1.number)));
    worthy.into_iter().map(|(_, file)| file).collect()
}

/// The plan for small files of one size; the smallest size first.
fn small_files(files: &[ValueFile], options: &ReclaimOptions) -> Option<ReclaimPlan> {
    let class = |file: &ValueFile| file.size_class(options.file_bytes);
    let mut classes: Vec<u32> = files.iter().filter_map(class).collect();
    classes.sort_unstable();
    let crowded = classes.chunk_by(|a, b| a == b).find(|same| same.len() >= SMALL_FILES)?[0];
    let mut pick = Pick::new(options, ReclaimReason::SmallFiles);
    files.iter().filter(|file| class(file) == Some(crowded)).for_each(|file| {
        pick.take(file);
    });
    (pick.files.len() >= SMALL_FILES).then(|| pick.plan())
}

/// Files that are being chosen.
struct Pick<'a> {
    options: &'a ReclaimOptions,
    reason: ReclaimReason,
    files: Vec<&'a ValueFile>,
    new_bytes: u64,
    bytes: u64,
}

impl<'a> Pick<'a> {
    fn new(options: &'a ReclaimOptions, reason: ReclaimReason) -> Pick<'a> {
        Pick { options, reason, files: Vec::new(), new_bytes: FRAME_BYTES, bytes: 0 }
    }

    /// Chooses a file, if the new file has room for its live values.
    fn take(&mut self, file: &'a ValueFile) -> bool {
        let new_bytes = self.new_bytes + file.taken_bytes();
        let is_too_long = !self.files.is_empty() && new_bytes > self.options.file_bytes + FRAME_BYTES;
        if is_too_long || new_bytes > self.options.room_bytes {
            return false;
        }
        (self.new_bytes, self.bytes) = (new_bytes, self.bytes + file.bytes);
        self.files.push(file);
        true
    }

    /// Chooses files in this order until enough is freed, and after that only files that free at
    /// least half of their bytes. Skips files that free a smaller share than `share_min`.
    fn take_all(mut self, worthy: Vec<&'a ValueFile>, share_min: f64, over: u64) -> Option<ReclaimPlan> {
        for file in worthy {
            let share = file.gain_bytes() as f64 / file.bytes.max(1) as f64;
            let is_enough = self.gain_bytes() >= over.max(self.options.gain_bytes_min);
            if share >= if is_enough { 0.5 } else { share_min } {
                self.take(file);
            }
        }
        (self.gain_bytes() >= self.options.gain_bytes_min.max(1)).then(|| self.plan())
    }

    fn gain_bytes(&self) -> u64 {
        self.bytes.saturating_sub(self.new_bytes)
    }

    fn plan(self) -> ReclaimPlan {
        let mut files: Vec<u64> = self.files.iter().map(|file| file.number).collect();
        files.sort_unstable();
        let mut segments: Vec<u32> =
            self.files.iter().flat_map(|file| file.segments.iter().copied()).collect();
        segments.sort_unstable();
        ReclaimPlan {
            files,
            segments,
            bytes: self.bytes,
            live_bytes: self.files.iter().map(|file| file.live_bytes).sum(),
            new_bytes: self.new_bytes,
            reason: self.reason,
        }
    }
}

/// `reclaim 3 files of values: 812.0 MiB, 213.0 MiB live -> 1 file: they take 1.62 times what is
/// alive`
impl fmt::Display for ReclaimPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "reclaim {} of values: {}, {} live -> 1 file: {}",
            counted(self.files.len() as u64, "file"),
            size_text(self.bytes),
            size_text(self.live_bytes),
            self.reason
        )
    }
}

impl fmt::Display for ReclaimReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ReclaimReason::Space(ratio) => write!(f, "all values take {ratio:.2} times what is alive"),
            ReclaimReason::SmallFiles => f.write_str("they are small"),
            ReclaimReason::Short => f.write_str("space is short"),
        }
    }
}

#[cfg(test)]
#[path = "reclaim/tests.rs"]
mod tests;
