use super::*;
use crate::maintenance::finding::Finding;
use crate::table::stats::TableStats;

fn healthy() -> Facts {
    let table = TableStats {
        outdated_parts: 0,
        outdated_bytes: 0,
        name: "t".to_owned(),
        records: 100_000,
        keys_estimate: 90_000,
        disk_bytes: 8 << 20,
        memtable_bytes: 0,
        runs: Vec::new(),
        range_deletes: 3,
        index_bytes: None,
        records_written: 0,
        bytes_written: 0,
    };
    Facts {
        store: "s".to_owned(),
        is_live: true,
        tables: vec![TableFacts {
            stats: table,
            filter_bits: 10,
            missing: None,
            unfit: None,
            lacks_log: false,
        }],
        free_bytes: 1 << 40,
        reserve_bytes: 64 << 20,
        cache_bytes: 10 << 20,
        merge_factor: 8,
        log_bytes: 128 << 20,
        segment_bytes: 64 << 20,
        ..Facts::default()
    }
}

#[test]
fn nothing_is_said_of_a_healthy_store() {
    assert_eq!(advise(&healthy()), []);
}

/// The only advice on a store that is healthy except for a change.
fn on(change: impl FnOnce(&mut Facts)) -> Advice {
    let mut facts = healthy();
    change(&mut facts);
    let mut advice = advise(&facts);
    assert_eq!(advice.len(), 1, "{advice:?}");
    advice.remove(0)
}

#[test]
fn each_trouble_has_its_advice_and_names_what_to_do() {
    let altered = on(|facts| facts.tables[0].stats.outdated_bytes = 3 << 20);
    assert_eq!(altered.weight, Weight::Minor);
    assert!(altered.what.starts_with("3.0 MiB of table `t`") && altered.todo.contains("folddb compact s t"));

    let damage = on(|facts| facts.findings.push(Finding::damage("000003.part", Some(7), "rot")));
    assert_eq!(damage.weight, Weight::Broken);
    assert!(damage.what.contains("000003.part at offset 7") && damage.todo.contains("folddb repair s NEW"));

    let given_up = on(|facts| facts.stats.damage.push("table `t`: rot".to_owned()));
    assert!(given_up.weight == Weight::Broken && given_up.what.contains("table `t`"));

    let poison = on(|facts| facts.stats.poisoned_by = Some("cannot sync".to_owned()));
    assert!(poison.weight == Weight::Broken && poison.todo.contains("open it again"));

    let refused = on(|facts| facts.refused = Some("format 9".to_owned()));
    assert!(refused.weight == Weight::Broken && refused.what.contains("format 9"));

    let full = on(|facts| facts.stats.short_of_space = Some("the disk is full".to_owned()));
    assert_eq!(full.weight, Weight::Broken);
    let mut feed = crate::FeedStats::default();
    (feed.name, feed.has_begun) = ("slow".to_owned(), true);
    (feed.lag, feed.held_bytes, feed.bytes_max) = (100, 600, 1000);
    let slow = on(|facts| facts.feeds.push(feed.clone()));
    assert!(slow.what.contains("slow") && slow.todo.contains("folddb feed drop s slow"), "{slow}");
    (feed.held_bytes, feed.held_files) = (400, 501);
    let scattered = on(|facts| facts.feeds.push(feed.clone()));
    assert!(scattered.what.contains("keeps 501 files"), "{scattered}");
    (feed.lost, feed.held_bytes) = (Some("why".to_owned()), 0);
    let lost = on(|facts| facts.feeds.push(feed));
    assert!(lost.what.contains("why"), "{lost}");
    let nearly = on(|facts| facts.free_bytes = 100 << 20);
    assert!(nearly.weight == Weight::Costly && nearly.costs.contains("soon"));
    assert!(nearly.todo.contains("free 28.0 MiB"), "{nearly}");
    let short = on(|facts| facts.free_bytes = 3 << 20);
    assert!(short.weight == Weight::Broken && !short.costs.contains("soon"), "{short}");
    assert!(short.what.contains("3.0 MiB") && short.todo.contains("free 61.0 MiB"), "{short}");
    let budget = on(|facts| (facts.bytes_max, facts.stats.disk.bytes) = (Some(1000), 950));
    assert!(budget.todo.contains("disk_bytes_max"));

    let folds = on(|facts| facts.stats.reads.fold_failures = 3);
    assert!(folds.what.contains("3 times") && folds.todo.contains("folddb explain s TABLE KEY"));

    let snapshot = on(|facts| facts.stats.snapshots.oldest_s = Some(4000.0));
    assert!(snapshot.what.contains("4000 seconds"));

    let behind = on(|facts| facts.overdue_bytes = 1 << 30);
    assert_eq!(behind.weight, Weight::Costly);
    let log = on(|facts| facts.log_bytes = 9 * (64 << 20));
    assert!(log.todo.contains("flush"));
    let unclosed = on(|facts| (facts.is_live, facts.batches_to_replay) = (false, 12));
    assert!(unclosed.what.contains("12 batches") && unclosed.weight == Weight::Minor);
    let cut = on(|facts| (facts.is_live, facts.batches_cut) = (false, 3));
    assert!(cut.what.contains("removes 3 batches") && cut.weight == Weight::Costly);

    let memory = on(|facts| facts.cache_bytes = 1000);
    assert!(memory.todo.contains("--memory"));
    let missing = on(|facts| facts.tables[0].missing = Some("the fold is not at hand".to_owned()));
    assert!(missing.todo.contains("custom_fold"));

    let unread = on(|facts| facts.parts_unread = 2);
    assert!(unread.weight == Weight::Broken && unread.what.contains("cannot read 2 parts"), "{unread}");
    let leftover = on(|facts| facts.findings.push(Finding::note("000009.part", "left by a merge")));
    assert!(leftover.weight == Weight::Minor && leftover.what.contains("000009.part"));
}

#[test]
fn each_table_is_examined() {
    let many = on(|facts| facts.tables[0].stats.range_deletes = 40_000);
    assert_eq!((many.weight, many.todo.as_str()), (Weight::Costly, "folddb compact s t"));
    let garbage = on(|facts| facts.tables[0].stats.keys_estimate = 20_000);
    assert!(garbage.what.contains("80 %") && garbage.todo == "folddb compact s t", "{garbage}");
    let small = |facts: &mut Facts| {
        (facts.tables[0].stats.keys_estimate, facts.tables[0].stats.disk_bytes) = (20_000, 4096);
    };
    let mut facts = healthy();
    small(&mut facts);
    assert_eq!(advise(&facts), [], "a small table is not worth an advice");
    let run = crate::table::stats::RunInfo { id: folddb_base::ids::RunId(1), tier: 0, parts: Vec::new() };
    let with = |runs, merge_factor, disk_bytes| {
        let mut facts = healthy();
        facts.merge_factor = merge_factor;
        (facts.tables[0].stats.runs, facts.tables[0].stats.disk_bytes) =
            (vec![run.clone(); runs], disk_bytes);
        let advice = advise(&facts);
        assert!(advice.iter().all(|one| one.what.contains(&format!("{runs} runs"))), "{advice:?}");
        !advice.is_empty()
    };
    // At 32 runs there is advice, for any size of the table and of a merge.
    for merge_factor in [2, 8, 16, 64, 1000] {
        assert!(with(32, merge_factor, 8 << 20), "merge factor {merge_factor}");
        assert!(with(32, merge_factor, 4096), "merge factor {merge_factor}");
        assert!(!with(31, merge_factor, 4096), "merge factor {merge_factor}");
    }
    assert!(with(17, 8, 8 << 20) && !with(16, 8, 8 << 20), "two merges that are due");
}

#[test]
fn unfit_values_are_no_damage_and_no_repair_is_advised() {
    let unfit = on(|facts| facts.tables[0].unfit = Some("the value of key 7: too short".to_owned()));
    assert_eq!(unfit.weight, Weight::Costly);
    assert!(unfit.what.contains("table `t`") && unfit.what.contains("key 7: too short"), "{unfit}");
    assert!(unfit.todo.contains("put or delete") && unfit.todo.contains("folddb explain s t KEY"), "{unfit}");
    assert!(unfit.costs.contains("nor a repair fixes this"), "{unfit}");
}

#[test]
fn a_store_without_a_list_is_sent_to_that_of_a_backup() {
    let damage = |needs_list| {
        on(|facts| {
            facts.findings.push(Finding::damage("MANIFEST", None, "there is none"));
            facts.needs_list = needs_list;
        })
    };
    assert!(damage(true).todo.contains("folddb repair s NEW --list-from BACKUP"), "{}", damage(true));
    assert!(!damage(false).todo.contains("--list-from"), "{}", damage(false));
}

#[test]
fn the_heaviest_comes_first() {
    let mut facts = healthy();
    facts.log_bytes = 9 * (64 << 20);
    facts.stats.reads.fold_failures = 1;
    facts.stats.poisoned_by = Some("cannot sync".to_owned());
    let weights: Vec<Weight> = advise(&facts).iter().map(|advice| advice.weight).collect();
    assert_eq!(weights, [Weight::Broken, Weight::Costly, Weight::Minor]);
}
