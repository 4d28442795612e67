use std::collections::BTreeMap;
use std::fmt::Write;

use folddb_base::checksum::key_hash;
use folddb_base::ids::RunId;
use folddb_base::{Seq, size_text};
use proptest::prelude::*;

use super::*;
use crate::plan::hidden::hidden_value_bytes;
use crate::sketch::PART_HASHES_MAX;
use crate::sketch::Sketch;

/// A table that only knows which keys its runs hold, and which of them are deletes.
#[derive(Default)]
struct Table {
    /// Newest first.
    runs: Vec<(RunSummary, BTreeMap<u32, bool>)>,
    numbers: u64,
    seq: Seq,
    moment: Moment,
    relocated_bytes: u64,
    written_bytes: u64,
    /// Bytes of each separated value.
    value_bytes: u64,
}

const RECORD_BYTES: u64 = 100;

impl Table {
    fn flush(&mut self, keys: impl IntoIterator<Item = u32>, is_delete: bool) {
        let records: BTreeMap<u32, bool> = keys.into_iter().map(|key| (key, is_delete)).collect();
        let min_seq = self.seq + 1;
        self.seq += records.len() as u64;
        let run = self.summary(0, (min_seq, self.seq), self.seq, &records);
        self.written_bytes += run.bytes;
        self.runs.insert(0, (run, records));
    }

    fn summary(&mut self, tier: u8, seqs: (Seq, Seq), age: Seq, records: &BTreeMap<u32, bool>) -> RunSummary {
        self.numbers += 1;
        let key = |key: Option<(&u32, &bool)>| key.map_or(Vec::new(), |(key, _)| key.to_be_bytes().to_vec());
        let mut hashes: Vec<u64> = records.keys().map(|key| key_hash(&key.to_be_bytes())).collect();
        hashes.sort_unstable();
        hashes.truncate(PART_HASHES_MAX);
        let deletes = records.values().filter(|is_delete| **is_delete).count() as u64;
        RunSummary {
            id: RunId(self.numbers),
            tier,
            age,
            bytes: records.len() as u64 * RECORD_BYTES,
            value_bytes: (records.len() as u64 - deletes) * self.value_bytes,
            records: records.len() as u64,
            deletes,
            outdated: 0,
            is_old_form: false,
            min_seq: seqs.0,
            max_seq: seqs.1,
            low: key(records.first_key_value()),
            high: key(records.last_key_value()),
            sketch: Sketch::of_part(&hashes),
            parts: 1,
            busy: false,
        }
    }

    fn summaries(&self) -> Vec<RunSummary> {
        self.runs.iter().map(|(run, _)| run.clone()).collect()
    }

    fn plan(&self, options: &MergeOptions) -> Option<Plan> {
        plan(&KeyOrder::Bytewise, &self.summaries(), &self.moment, options)
    }

    fn carry_out(&mut self, plan: &Plan) {
        let first = self.runs.iter().position(|(run, _)| run.id == plan.inputs[0]).unwrap();
        let inputs: Vec<_> = self.runs.drain(first..first + plan.inputs.len()).collect();
        let seqs = (
            inputs.iter().map(|(run, _)| run.min_seq).min().unwrap(),
            inputs.iter().map(|(run, _)| run.max_seq).max().unwrap(),
        );
        let mut records: BTreeMap<u32, bool> = BTreeMap::new();
        for (_, input) in inputs.iter().rev() {
            records.extend(input);
        }
        let records_in: usize = inputs.iter().map(|(_, input)| input.len()).sum();
        match plan.way {
            Way::Join => assert_eq!(records.len(), records_in, "joined runs share no keys"),
            Way::Merge => self.relocated_bytes += plan.bytes,
        }
        if plan.is_bottom && plan.way == Way::Merge {
            records.retain(|_, is_delete| !*is_delete);
        }
        if !records.is_empty() {
            let run = self.summary(plan.target_tier, seqs, plan.target_age, &records);
            self.runs.insert(first, (run, records));
        }
    }

    /// Carries plans out until there are no more; gives what was done.
    fn settle(&mut self, options: &MergeOptions) -> Vec<Plan> {
        let mut plans = Vec::new();
        while let Some(plan) = self.plan(options) {
            self.carry_out(&plan);
            plans.push(plan);
            assert!(plans.len() < 100, "planning comes to rest: {}", plans.last().unwrap());
        }
        plans
    }
}

/// Carries out a script: lines that start with `>` are commands, what they print follows them.
fn play(script: &str) -> String {
    let (mut table, mut options, mut text) = (Table::default(), MergeOptions::default(), String::new());
    options.garbage_bytes_min = 1;
    for line in script.lines().filter(|line| line.is_empty() || line.starts_with(['>', '#'])) {
        writeln!(text, "{line}").unwrap();
        let Some(command) = line.strip_prefix("> ") else { continue };
        let words: Vec<&str> = command.split(' ').collect();
        let number = |at: usize| words.get(at).and_then(|word| word.parse::<u64>().ok()).unwrap();
        match words[0] {
            "table" => {
                table = Table::default();
                let garbage_bytes_min = options.garbage_bytes_min;
                options = MergeOptions { garbage_bytes_min, ..MergeOptions::with_factor(number(2) as usize) };
            }
            "freed" => options.freed_by_repeat = number(1) as f64 / 100.0,
            "paid" => table.moment.joined_bytes = number(1),
            "reads-max" => options.read_runs_max = number(1) as usize,
            "snapshot" => table.moment.boundaries.push(table.seq),
            "release" => table.moment.boundaries.clear(),
            "busy" => {
                table.runs.iter_mut().for_each(|(run, _)| run.busy |= u64::from(run.tier) == number(2));
            }
            "idle" => table.runs.iter_mut().for_each(|(run, _)| run.busy = false),
            "flush" | "delete" => {
                let (keys, times) =
                    (number(1) as u32..number(3) as u32, words.get(5).map_or(1, |_| number(5)));
                let step =
                    words.iter().position(|word| *word == "step").map_or(1, |at| number(at + 1) as usize);
                for _ in 0..times {
                    table.flush(keys.clone().step_by(step), words[0] == "delete");
                    table.settle_aloud(&options, &mut text);
                }
            }
            "settle" => table.settle_aloud(&options, &mut text),
            "compact" => {
                let plan = compact_plan(&KeyOrder::Bytewise, &table.summaries());
                match &plan {
                    Some(plan) => writeln!(text, "{plan}").unwrap(),
                    None => writeln!(text, "nothing to do").unwrap(),
                }
                plan.iter().for_each(|plan| table.carry_out(plan));
            }
            "runs" => table.show(&mut text),
            other => panic!("unknown command {other}"),
        }
    }
    text
}

impl Table {
    fn settle_aloud(&mut self, options: &MergeOptions, text: &mut String) {
        for plan in self.settle(options) {
            writeln!(text, "{plan}").unwrap();
        }
    }

    fn show(&self, text: &mut String) {
        if self.runs.is_empty() {
            writeln!(text, "no runs").unwrap();
        }
        for (run, records) in &self.runs {
            let (low, high) = (records.keys().next().unwrap(), records.keys().last().unwrap());
            let (id, tier, bytes) = (run.id, run.tier, size_text(run.bytes));
            write!(
                text,
                "{id} tier {tier} {bytes} keys {low}..={high} seqs {}..={}",
                run.min_seq, run.max_seq
            )
            .unwrap();
            writeln!(text, "{}", if run.busy { " busy" } else { "" }).unwrap();
        }
    }
}

#[test]
fn the_scripts_plan_what_they_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/src/plan/stories.txt");
    let written = std::fs::read_to_string(path).unwrap();
    let told = play(&written);
    if std::env::var_os("UPDATE").is_some() {
        std::fs::write(path, told).unwrap();
    } else {
        assert_eq!(told, written, "run with UPDATE=1 to rewrite {path}, and read the difference");
    }
}

#[test]
fn a_thousand_flushes_are_moved_a_logarithm_of_times() {
    let flushes = 1000u32;
    for merge_factor in [2, 4, 8, 16] {
        let options = MergeOptions::with_factor(merge_factor);
        let mut table = Table::default();
        for flush in 0..flushes {
            // All runs span the whole range and no key comes twice.
            table.flush((0..4).map(|part| part << 16 | flush), false);
            table.settle(&options);
            assert!(table.runs.len() <= options.read_runs_max);
        }
        let times = table.relocated_bytes as f64 / table.written_bytes as f64;
        let bound = f64::from(flushes).log(merge_factor as f64) + 1.0;
        println!("merge factor {merge_factor}: every byte was moved {times:.2} times; bound {bound:.2}");
        assert!(times <= bound, "merge factor {merge_factor}: {times:.2} over {bound:.2}");
    }
}

#[test]
fn rising_keys_are_never_moved() {
    let options = MergeOptions::default();
    let mut table = Table::default();
    for flush in 0..500u32 {
        table.flush(flush * 10..(flush + 1) * 10, false);
        table.settle(&options);
    }
    assert_eq!(table.relocated_bytes, 0);
    assert!(table.runs.len() <= options.read_runs_max);
}

#[test]
fn overwriting_a_set_of_keys_stays_within_the_space_bound() {
    let options = MergeOptions { garbage_bytes_min: 1, ..MergeOptions::default() };
    let mut table = Table::default();
    table.flush(0..20_000, false);
    let (mut state, mut bytes_max) = (1u64, 0);
    for _ in 0..300 {
        let keys: Vec<u32> = (0..500)
            .map(|_| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
                (state >> 40) as u32 % 20_000
            })
            .collect();
        table.flush(keys, false);
        table.settle(&options);
        bytes_max = bytes_max.max(table.runs.iter().map(|(run, _)| run.bytes).sum::<u64>());
    }
    let live_bytes = 20_000 * RECORD_BYTES;
    assert!(bytes_max as f64 <= 1.3 * live_bytes as f64, "{bytes_max} of {live_bytes}");
    let times = table.relocated_bytes as f64 / table.written_bytes as f64;
    assert!(times <= 8.0, "every byte was moved {times:.2} times");
}

/// Merges of lists move everything and free little: only full tiers cause merges, until gets have
/// cost enough.
#[test]
fn what_merges_do_not_free_is_moved_by_tiers_alone() {
    let moved_times = |freed_by_repeat: f64| {
        let options = MergeOptions { garbage_bytes_min: 1, freed_by_repeat, ..MergeOptions::with_factor(8) };
        let mut table = Table::default();
        for _ in 0..60 {
            table.flush(0..1000, false);
            table.settle(&options);
        }
        table.relocated_bytes as f64 / table.written_bytes as f64
    };
    let (as_garbage, as_lists) = (moved_times(1.0), moved_times(0.1));
    assert!(as_garbage > 1.9, "each flush meets the bottom: {as_garbage}");
    assert!(as_lists < 1.3, "a tier at a time: {as_lists}");
}

#[test]
fn gets_pay_for_a_merge_where_garbage_causes_none() {
    let mut table = Table::default();
    (0..3).for_each(|_| table.flush(0..1000, false));
    let price = |table: &Table, options: &MergeOptions| {
        joined_price(&KeyOrder::Bytewise, &table.summaries(), &table.moment, options)
    };
    let lists = MergeOptions { freed_by_repeat: 0.1, ..MergeOptions::default() };
    assert_eq!(table.plan(&MergeOptions::default()), None, "the garbage of small tables is tolerated");
    assert_eq!(price(&table, &MergeOptions::default()), Some(300_000), "also where merges free all of it");
    assert_eq!(price(&table, &lists), Some(300_000));
    let half = MergeOptions { freed_by_repeat: 0.6, ..MergeOptions::default() };
    assert_eq!(table.plan(&half), None, "this little is no garbage");
    assert_eq!(price(&table, &half), Some(300_000), "so gets may pay");
    table.moment.joined_bytes = 299_999;
    assert_eq!(table.plan(&lists), None);
    table.moment.boundaries = vec![2000];
    assert_eq!(price(&table, &lists), Some(200_000), "a snapshot keeps the newest run apart");
    table.moment.boundaries = vec![1000, 2000];
    assert_eq!(price(&table, &lists), None, "and here all of them");
    table.moment.boundaries.clear();
    table.runs[1].0.busy = true;
    assert_eq!(price(&table, &lists), None, "a merge is on its way");
    table.runs[1].0.busy = false;
    table.moment.joined_bytes = 300_000;
    let plan = table.plan(&lists).unwrap();
    assert_eq!((plan.inputs.len(), plan.reason), (3, Reason::Joined(300_000)));
    assert!((0.6..0.7).contains(&plan.repeated), "two of three runs have what the third has");
    table.carry_out(&plan);
    assert_eq!(table.plan(&lists), None, "one run is joined with nothing");
}

fn runs() -> impl Strategy<Value = Vec<RunSummary>> {
    let run = (0u8..3, 0u32..50, 1u32..400, any::<bool>(), prop::bool::weighted(0.2));
    prop::collection::vec(run, 0..24).prop_map(|mut shapes| {
        shapes.sort_by_key(|shape| std::cmp::Reverse(shape.0));
        let mut table = Table::default();
        for (tier, first, count, is_delete, busy) in shapes {
            table.flush(first * 20..first * 20 + count, is_delete);
            table.runs[0].0.tier = tier;
            table.runs[0].0.busy = busy;
        }
        table.summaries()
    })
}

fn check(plan: &Plan, runs: &[RunSummary]) {
    let first = runs.iter().position(|run| run.id == plan.inputs[0]).unwrap();
    let inputs = &runs[first..first + plan.inputs.len()];
    let older = &runs[first + plan.inputs.len()..];
    assert!(inputs.iter().map(|run| run.id).eq(plan.inputs.iter().copied()), "inputs are neighbors in age");
    assert!(inputs.iter().all(|run| !run.busy), "busy runs are left alone");
    assert_eq!(plan.target_age, inputs[0].age);
    assert!(plan.target_tier >= plan.tiers.1);
    assert_eq!(plan.bytes, inputs.iter().map(|run| run.bytes).sum::<u64>());
    let apart = |input: &RunSummary, run: &RunSummary| input.high < run.low || run.high < input.low;
    assert_eq!(plan.is_bottom, inputs.iter().all(|input| older.iter().all(|run| apart(input, run))));
    if plan.way == Way::Join {
        assert!(are_disjoint(&KeyOrder::Bytewise, inputs));
    }
    if plan.inputs.len() == 1 {
        assert!(inputs[0].deletes > 0 && plan.is_bottom, "one run is rewritten for its deletes only");
    }
}

#[test]
fn deletes_that_are_older_than_may_be_meet_what_they_delete() {
    let mut table = Table::default();
    table.flush(0..1000, false);
    table.flush(0..3, true);
    let options = MergeOptions::default();
    assert_eq!(table.plan(&options), None, "a few deletes are worth no merge");
    table.moment.deletes_before = 1000;
    assert_eq!(table.plan(&options), None, "they are not as old as that");
    table.moment.deletes_before = 1001;
    table.moment.boundaries = vec![1000];
    assert_eq!(table.plan(&options), None, "a snapshot stands between them and what they delete");
    table.moment.boundaries.clear();
    let plan = table.plan(&options).unwrap();
    assert_eq!((plan.inputs.len(), plan.is_bottom, plan.reason), (2, true, Reason::OldDeletes));
    table.carry_out(&plan);
    assert_eq!(table.plan(&options), None, "and there is nothing more to do");

    for round in 0..4 {
        table.flush(10 + round..11 + round, true);
    }
    table.moment.deletes_before = 1004;
    let plan = table.plan(&options).unwrap();
    assert_eq!(
        (plan.inputs.len(), plan.is_bottom),
        (5, true),
        "younger ones come along: not one merge for each"
    );
    table.carry_out(&plan);
    table.moment.deletes_before = 2000;
    assert_eq!(table.plan(&options), None);
}

#[test]
fn younger_deletes_that_meet_what_is_older_still_do_not_come_along() {
    let mut table = Table::default();
    table.flush(0..1000, false);
    table.flush(2000..3000, false);
    table.flush(2000..2003, true);
    table.flush(0..3, true);
    table.moment.deletes_before = 2001;
    let options = MergeOptions::default();
    let plan = table.plan(&options).unwrap();
    assert_eq!((plan.inputs.len(), plan.is_bottom), (2, true));
    assert_eq!(
        plan.inputs[0], table.runs[1].0.id,
        "the newest meets the oldest run, and waits for its own turn"
    );
}

proptest! {
    #[test]
    fn plans_keep_their_promises(
        runs in runs(),
        merge_factor in 0usize..6,
        boundaries in prop::collection::vec(0u64..4000, 0..3),
    ) {
        let base = MergeOptions::with_factor(merge_factor);
        let options = MergeOptions { garbage_bytes_min: 1, ..base };
        let moment = Moment { boundaries, ..Moment::default() };
        if let Some(plan) = plan(&KeyOrder::Bytewise, &runs, &moment, &options) {
            check(&plan, &runs);
            prop_assert!(plan.reason != Reason::TierFull || plan.inputs.len() <= options.inputs_max);
        }
        if let Some(plan) = compact_plan(&KeyOrder::Bytewise, &runs) {
            check_compact(&plan, &runs);
        }
    }

    #[test]
    fn planning_comes_to_rest(
        flushes in prop::collection::vec((0u32..50, 1u32..300, prop::bool::weighted(0.3), 0u8..12), 1..60),
        merge_factor in 2usize..6,
    ) {
        let options = MergeOptions { garbage_bytes_min: 1, ..MergeOptions::with_factor(merge_factor) };
        let mut table = Table::default();
        for (first, count, is_delete, snapshot) in flushes {
            table.flush(first * 20..first * 20 + count, is_delete);
            match snapshot {
                0 => table.moment.boundaries.push(table.seq),
                1 => table.moment.boundaries.clear(),
                _ => {}
            }
            table.settle(&options);
            prop_assert!(table.runs.len() <= options.read_runs_max.max(1));
            prop_assert!(table.runs.windows(2).all(|pair| pair[0].0.age > pair[1].0.age));
        }
    }
}

#[test]
fn runs_that_share_a_single_key_are_merged_and_not_joined() {
    for (second, way) in [(9..20, Way::Merge), (10..20, Way::Join)] {
        let mut table = Table::default();
        table.flush(0..10, false);
        table.flush(second, false);
        let options = MergeOptions::with_factor(2);
        let plan = plan(&KeyOrder::Bytewise, &table.summaries(), &table.moment, &options).unwrap();
        assert_eq!((plan.inputs.len(), plan.way), (2, way));
    }
}

fn check_compact(plan: &Plan, runs: &[RunSummary]) {
    assert!(plan.is_bottom);
    assert_eq!(plan.inputs.len(), runs.len());
    assert!(runs.iter().all(|run| !run.busy));
}

/// A merge does not move separated values, but frees them.
#[test]
fn garbage_counts_separated_values() {
    let mut table = Table::default();
    table.flush(0..1000, false);
    table.flush(0..1000, false);
    let mut runs = table.summaries();
    let options = MergeOptions::default();
    let planned = |runs: &[RunSummary]| plan(&KeyOrder::Bytewise, runs, &table.moment, &options);
    assert!(planned(&runs).is_none(), "a few kilobytes are no garbage");
    runs.iter_mut().for_each(|run| run.value_bytes = options.garbage_bytes_min + run.bytes);
    let plan = planned(&runs).expect("each value is there twice");
    assert!(matches!(plan.reason, Reason::Garbage(ratio) if ratio > 0.9), "{plan}");
    assert_eq!(plan.bytes, runs.iter().map(|run| run.bytes).sum::<u64>(), "values are not moved");
    runs[1].value_bytes = 0;
    runs[0].value_bytes = 0;
    assert!(planned(&runs).is_none());
}

#[test]
fn a_loaded_run_gets_the_tier_that_merges_would_have_given_it() {
    let tiers = [0, 1, 100, 101, 800, 801, 6400, 6401].map(|bytes| tier_of(bytes, 100, 8));
    assert_eq!(tiers, [0, 0, 0, 1, 1, 2, 2, 3]);
    assert_eq!(tier_of(u64::MAX, 0, 0), 64);
}

/// What runs point to, except the newest value of each key.
fn hidden_bytes(table: &Table) -> u64 {
    let mut newest: BTreeMap<u32, bool> = BTreeMap::new();
    let mut pointers = 0;
    for (_, records) in table.runs.iter().rev() {
        pointers += records.values().filter(|is_delete| !**is_delete).count() as u64;
        newest.extend(records.iter());
    }
    let alive = newest.values().filter(|is_delete| !**is_delete).count() as u64;
    (pointers - alive) * table.value_bytes
}

/// Overwrites 20,000 keys eight times, in the order drawn, and then deletes a tenth of them.
/// Returns the most hidden bytes per live byte, and the bytes that merges move per byte of value
/// put.
fn overwrite_values(hot_draws_of_100: u32, value_bytes: u64) -> (f64, f64) {
    const KEYS: u32 = 20_000;
    let options = MergeOptions::default().hiding_values(1 << 20);
    let mut table = Table { value_bytes, ..Table::default() };
    let mut state = 1u64;
    let mut draw = |below: u32| {
        state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (state >> 33) as u32 % below
    };
    table.flush(0..KEYS, false);
    let alive = (u64::from(KEYS) * value_bytes) as f64;
    let mut most = 0.0f64;
    for _ in 0..8 * KEYS / 500 {
        let hot = KEYS / 5;
        let keys: Vec<u32> = (0..500)
            .map(|_| if draw(100) < hot_draws_of_100 { draw(hot) } else { hot + draw(KEYS - hot) })
            .collect();
        table.flush(keys, false);
        table.settle(&options);
        most = most.max(hidden_bytes(&table) as f64 / alive);
    }
    let moved = table.relocated_bytes as f64 / (8.0 * alive);
    table.flush(0..KEYS / 10 * 9, true);
    table.settle(&options);
    most = most.max(hidden_bytes(&table) as f64 / alive);
    (most, moved)
}

#[test]
fn few_dead_values_are_hidden_and_little_is_moved_for_it() {
    for (hot, value_bytes) in [(20, 4096), (80, 4096), (95, 4096), (20, 16 << 10), (20, 1024)] {
        let (hidden, moved) = overwrite_values(hot, value_bytes);
        println!(
            "{hot} of 100 to a fifth, {value_bytes} bytes: hidden {hidden:.3}, moved {moved:.3} for each byte put"
        );
        let (h, v) =
            ((RECORD_BYTES as f64 / (3.5 * value_bytes as f64)).sqrt().max(0.03), value_bytes as f64);
        // A part's sketch has 256 keys; ten to thirty of these are hidden.
        assert!(hidden <= 2.0 * h, "{hot} {value_bytes}: {hidden} hidden");
        assert!(moved <= 1.6 * RECORD_BYTES as f64 / v / h, "{hot} {value_bytes}: {moved} moved");
    }
}

#[test]
fn values_that_a_snapshot_keeps_are_not_hidden() {
    let options = MergeOptions::default().hiding_values(1 << 10);
    let mut table = Table { value_bytes: 4096, ..Table::default() };
    table.flush(0..1000, false);
    table.moment.boundaries.push(table.seq);
    table.flush(0..1000, false);
    assert_eq!(hidden_value_bytes(&table.summaries(), &table.moment), 0);
    assert_eq!(table.plan(&options), None);
    table.moment.boundaries.clear();
    let hidden = hidden_value_bytes(&table.summaries(), &table.moment);
    assert!((3_600_000..4_600_000).contains(&hidden), "{hidden}");
    let plan = table.plan(&options).expect("half of them are dead");
    assert!(matches!(plan.reason, Reason::HiddenValues(_)), "{plan}");
    assert_eq!(table.plan(&MergeOptions::default()), None, "not where nobody asks for it");
}

/// Of runs of one age the one with the highest number is the newest, and an output has a new one.
#[test]
fn an_output_does_not_come_before_newer_runs_of_its_age() {
    let options = MergeOptions { garbage_bytes_min: 1, ..MergeOptions::with_factor(2) };
    let planned = |newer: std::ops::Range<u32>, newer_age: Seq, is_busy: bool| {
        let mut table = Table::default();
        for (tier, age, keys) in [(0, 1, 40..60), (0, 1, 10..30), (1, newer_age, newer), (2, 9, 0..100)] {
            let records = keys.map(|key| (key, false)).collect();
            let run = table.summary(tier, (age, age), age, &records);
            table.runs.insert(0, (run, records));
        }
        table.runs[1].0.busy = is_busy;
        table.plan(&options).map(|plan| plan.inputs.iter().map(|run| run.0).collect::<Vec<_>>())
    };
    assert_eq!(planned(30..40, 1, false), Some(vec![2, 1]), "it shares no keys with them");
    assert_eq!(planned(20..40, 2, false), Some(vec![2, 1]), "it is of another age");
    assert_eq!(planned(20..40, 1, false), Some(vec![3, 2, 1]));
    assert_eq!(planned(30..40, 1, true), None, "what comes of it may share keys");
    assert_eq!(planned(20..40, 2, true), Some(vec![2, 1]));
}
