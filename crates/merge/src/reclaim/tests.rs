use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

const MB: u64 = 1 << 20;

fn file(number: u64, bytes: u64, live_bytes: u64) -> ValueFile {
    ValueFile { number, segments: vec![number as u32], bytes, live_values: live_bytes / 4096, live_bytes }
}

fn options() -> ReclaimOptions {
    ReclaimOptions {
        bound: 1.4,
        fresh_bytes: 0,
        spare_bytes: 0,
        hidden_bytes: 0,
        file_bytes: 64 * MB,
        gain_bytes_min: 4 * MB,
        room_bytes: u64::MAX,
        is_short: false,
    }
}

#[test]
fn nothing_is_copied_within_the_bound() {
    let files = [file(1, 64 * MB, 60 * MB), file(2, 64 * MB, 40 * MB)];
    assert_eq!(plan_reclaim(&files, &options()), None);
    assert_eq!(plan_reclaim(&[], &options()), None);
}

#[test]
fn the_deadest_go_first_and_together() {
    let files = [file(1, 64 * MB, 60 * MB), file(2, 64 * MB, 8 * MB), file(3, 64 * MB, 10 * MB)];
    let plan = plan_reclaim(&files, &options()).unwrap();
    assert_eq!((plan.files, plan.segments), (vec![2, 3], vec![2, 3]));
    assert_eq!((plan.bytes, plan.live_bytes), (128 * MB, 18 * MB));
    assert!(plan.new_bytes > 18 * MB && plan.new_bytes < 19 * MB);
}

#[test]
fn of_two_that_are_as_dead_the_older_goes() {
    let files = [file(1, 64 * MB, 32 * MB), file(2, 64 * MB, 32 * MB), file(3, 64 * MB, 60 * MB)];
    assert_eq!(plan_reclaim(&files, &options()).unwrap().files, [1]);
}

#[test]
fn a_copy_is_no_longer_than_a_file() {
    let files: Vec<ValueFile> = (1..9).map(|number| file(number, 64 * MB, 30 * MB)).collect();
    let plan = plan_reclaim(&files, &options()).unwrap();
    assert_eq!(plan.files.len(), 2, "{plan}");
}

#[test]
fn hidden_bytes_count_as_dead_and_preallocated_space_counts() {
    let files = [file(1, 64 * MB, 50 * MB), file(2, 64 * MB, 50 * MB)];
    assert_eq!(plan_reclaim(&files, &options()), None, "1.28 times what is said to be alive");
    let hidden = ReclaimOptions { hidden_bytes: 12 * MB, ..options() };
    assert_eq!(plan_reclaim(&files, &hidden).unwrap().files, [1]);
    let spare = ReclaimOptions { spare_bytes: 100 * MB, ..options() };
    assert_eq!(plan_reclaim(&files, &spare).unwrap().files, [1], "an eighth of what is alive counts");
    let fresh = ReclaimOptions { fresh_bytes: 64 * MB, ..spare };
    assert_eq!(plan_reclaim(&files, &fresh), None, "what is fresh is alive");
}

#[test]
fn short_of_space_the_least_is_copied_and_no_more_than_there_is_room_for() {
    let files = [file(1, 64 * MB, 20 * MB), file(2, 64 * MB, MB), file(3, 64 * MB, 5 * MB)];
    let short = ReclaimOptions { is_short: true, gain_bytes_min: 1, room_bytes: 3 * MB, ..options() };
    assert_eq!(plan_reclaim(&files, &short).unwrap().files, [2]);
    let roomier = ReclaimOptions { room_bytes: 8 * MB, ..short };
    assert_eq!(plan_reclaim(&files, &roomier).unwrap().files, [2, 3]);
    assert_eq!(plan_reclaim(&files, &ReclaimOptions { room_bytes: MB, ..short }), None);
}

#[test]
fn small_files_are_gathered_by_size() {
    let mut files: Vec<ValueFile> = (1..64).map(|number| file(number, 20_000, 16_000)).collect();
    files.push(file(120, 5 * MB, 5 * MB));
    assert_eq!(plan_reclaim(&files, &options()), None);
    files.push(file(121, 18_000, 12_000));
    let plan = plan_reclaim(&files, &options()).unwrap();
    assert_eq!((plan.files.len(), plan.reason), (64, ReclaimReason::SmallFiles));
    assert!(!plan.files.contains(&120));
}

#[test]
fn a_plan_is_said_in_a_line() {
    let files = [file(1, 64 * MB, 0), file(2, 64 * MB, 10 * MB)];
    let plan = plan_reclaim(&files, &options()).unwrap();
    let said = "reclaim 2 files of values: 128.0 MiB, 10.0 MiB live -> 1 file: all values take 12.80 times what is alive";
    assert_eq!(plan.to_string(), said);
}

proptest! {
    /// A plan frees space, keeps within the available space, and takes each file once.
    #[test]
    fn plans_are_upright(
        sizes in prop::collection::vec((1u64..200_000, 0u64..101), 0..40),
        is_short: bool,
        bound in 1.05f64..3.0,
        room_bytes in 0u64..4_000_000,
    ) {
        let files: Vec<ValueFile> = sizes
            .iter()
            .zip(1..)
            .map(|(&(bytes, share), number)| file(number, bytes, bytes * share / 100))
            .collect();
        let options =
            ReclaimOptions { bound, file_bytes: 100_000, gain_bytes_min: 2000, room_bytes, is_short, ..options() };
        if let Some(plan) = plan_reclaim(&files, &options) {
            prop_assert!(plan.new_bytes <= room_bytes);
            prop_assert!(plan.files.is_sorted_by(|a, b| a < b) && !plan.files.is_empty());
            if plan.reason != ReclaimReason::SmallFiles {
                prop_assert!(plan.new_bytes + 2000 <= plan.bytes, "{}", plan);
            }
            let single = plan.files.len() == 1;
            prop_assert!(single || plan.new_bytes <= options.file_bytes + FRAME_BYTES);
        }
    }
}

// ---- the outcome of plans -----------------------------------------------------------------------

/// A value log without bytes: where each key's value is, and what is live in each file.
struct ValueLog {
    options: ReclaimOptions,
    value_bytes: u64,
    files: BTreeMap<u64, ValueFile>,
    place: Vec<u64>,
    open: u64,
    next: u64,
    written: u64,
    copied: u64,
    ratio_max: f64,
    ratios: (f64, u64),
}

impl ValueLog {
    fn new(keys: usize, options: ReclaimOptions) -> ValueLog {
        let mut value_log = ValueLog {
            options,
            value_bytes: 8192,
            files: BTreeMap::new(),
            place: vec![0; keys],
            open: 1,
            next: 2,
            written: 0,
            copied: 0,
            ratio_max: 0.0,
            ratios: (0.0, 0),
        };
        value_log.files.insert(1, file(1, 0, 0));
        value_log
    }

    fn write(&mut self, key: usize) {
        let bytes = self.value_bytes;
        self.written += bytes;
        if let Some(old) = self.files.get_mut(&self.place[key]) {
            (old.live_bytes, old.live_values) = (old.live_bytes - bytes, old.live_values - 1);
        }
        let open = self.files.get_mut(&self.open).unwrap();
        (open.bytes, open.live_bytes, open.live_values) =
            (open.bytes + bytes, open.live_bytes + bytes, open.live_values + 1);
        self.place[key] = self.open;
        if open.bytes >= self.options.file_bytes {
            (self.open, self.next) = (self.next, self.next + 1);
            self.files.insert(self.open, file(self.open, 0, 0));
            self.reclaim();
        }
    }

    fn reclaim(&mut self) {
        let open = self.open;
        self.files.retain(|&number, file| number == open || file.live_values > 0);
        loop {
            let sealed: Vec<ValueFile> =
                self.files.values().filter(|file| file.number != open).cloned().collect();
            let Some(plan) = plan_reclaim(&sealed, &self.options) else { break };
            let number = self.next;
            self.next += 1;
            self.copied += plan.live_bytes;
            for place in self.place.iter_mut().filter(|place| plan.files.contains(place)) {
                *place = number;
            }
            plan.files.iter().for_each(|gone| drop(self.files.remove(gone)));
            let live_values = plan.live_bytes / self.value_bytes;
            let (segments, bytes) = (plan.segments, plan.new_bytes);
            let moved = ValueFile { number, segments, bytes, live_values, live_bytes: plan.live_bytes };
            self.files.insert(number, moved);
        }
        let bytes: u64 = self.files.values().map(|file| file.bytes).sum();
        let ratio = bytes as f64 / (self.place.len() as u64 * self.value_bytes) as f64;
        self.ratios = (self.ratios.0 + ratio, self.ratios.1 + 1);
        self.ratio_max = self.ratio_max.max(ratio);
    }

    /// Bytes written per byte of values, and the greatest and the mean space per live byte.
    fn figures(&self) -> (f64, f64, f64) {
        let amplification = (self.written + self.copied) as f64 / self.written as f64;
        (amplification, self.ratio_max, self.ratios.0 / self.ratios.1 as f64)
    }
}

/// Loads all keys, then overwrites some: mostly hot ones.
fn overwrite(bound: f64, hot_keys_of_100: usize, hot_draws_of_100: usize) -> (f64, f64, f64) {
    let keys = 20_000;
    let options = ReclaimOptions { bound, file_bytes: 4 * MB, gain_bytes_min: 256 << 10, ..options() };
    let mut value_log = ValueLog::new(keys, options);
    (0..keys).for_each(|key| value_log.write(key));
    (value_log.written, value_log.copied, value_log.ratio_max, value_log.ratios) = (0, 0, 0.0, (0.0, 0));
    let mut chance = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        (chance >> 11) as usize % below
    };
    let hot = keys * hot_keys_of_100 / 100;
    for _ in 0..keys * 12 {
        let key = if draw(100) < hot_draws_of_100 { draw(hot) } else { hot + draw(keys - hot) };
        value_log.write(key);
    }
    value_log.figures()
}

#[test]
fn space_is_bounded_and_copying_is_too() {
    for (name, hot_keys, hot_draws, amplification_max) in
        [("uniform", 50, 50, 2.3), ("80:20", 20, 80, 2.2), ("90:10", 10, 90, 2.0)]
    {
        let (amplification, most, mean) = overwrite(1.4, hot_keys, hot_draws);
        println!("{name}: written {amplification:.2}, space at most {most:.2}, mean {mean:.2}");
        assert!(most <= 1.5, "{name}: {most}");
        assert!(amplification <= amplification_max, "{name}: {amplification}");
    }
}
