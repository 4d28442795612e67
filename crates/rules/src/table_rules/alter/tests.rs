use std::time::Duration;

use super::*;
use crate::codec::{KeyCodec, ValueCodec};
use crate::head::HeadRule;
use crate::terms::IndexRule;
use crate::value_placement::ValuePlacement;

fn minutes(count: u64) -> Duration {
    Duration::from_secs(60 * count)
}

fn index(text: &str) -> IndexRule {
    text.parse().unwrap()
}

/// The names of the changed rules.
fn changed(from: &TableRules, to: &TableRules) -> Vec<&'static str> {
    from.changes_to(to).unwrap().iter().map(|change| change.rule).collect()
}

#[test]
fn what_only_says_how_parts_are_written_may_be_altered() {
    let rules = TableRules::new(KeyCodec::Utf8);
    assert_eq!(rules.changes_to(&rules).unwrap(), []);
    let wanted = rules.clone().block_bytes(8192).lz4().filter_bits(0).summaries(true);
    let changes = rules.changes_to(&wanted).unwrap();
    let texts: Vec<(&str, &str, &str)> =
        changes.iter().map(|change| (change.rule, &*change.from, &*change.to)).collect();
    assert_eq!(
        texts,
        [
            ("block_bytes", "4096", "8192"),
            ("compression", "none", "lz4"),
            ("filter_bits", "10", "0"),
            ("summaries", "off", "on")
        ]
    );
    assert!(changes.iter().all(|change| change.applies == Applies::ByMerges));
    assert_eq!(changed(&wanted, &rules).len(), 4, "and altered back");
}

#[test]
fn what_is_asked_at_a_write_may_be_altered() {
    let rules = TableRules::new(KeyCodec::Utf8).expire(Expire::After(minutes(5)));
    let wanted = rules.clone().expire(Expire::ByWrite).separate(2048).value_placement(ValuePlacement::Files);
    let changes = rules.changes_to(&wanted).unwrap();
    assert!(changes.iter().all(|change| change.applies == Applies::ToWrites), "{changes:?}");
    assert_eq!(changed(&rules, &wanted), ["expire", "separate", "value_placement"]);
    assert_eq!(changed(&wanted, &wanted.clone().separate(u32::MAX)), ["separate"]);
}

/// The newest of the values of a key is the one whose segment, or directory, has the highest
/// number.
#[test]
fn values_of_a_hashed_table_stay_in_segments_or_in_files() {
    for keep in [Keep::Latest, Keep::Versions(3)] {
        let segments = TableRules::hashed(KeyCodec::Utf8).keep(keep);
        let files = segments.clone().value_placement(ValuePlacement::Files);
        for (from, to) in [(&segments, &files), (&files, &segments)] {
            let refused = from.changes_to(to).unwrap_err();
            assert!(refused.message().contains("`value_placement`"), "{refused}");
            assert!(refused.advice().contains("folddb dump"), "{refused}");
        }
    }
}

#[test]
fn names_of_keys_and_spellings_of_folds_change_no_meaning() {
    let rules = TableRules::new(KeyCodec::Utf8).fold("sum:u64");
    assert_eq!(changed(&rules, &rules.clone().key_names(["page"])), ["key_names"]);
    assert_eq!(changed(&rules, &rules.clone().fold(" sum:u64 ")), [""; 0]);
}

#[test]
fn the_past_may_shrink_and_a_window_may_grow() {
    let windowed = |count| TableRules::new(KeyCodec::Utf8).keep(Keep::Window(minutes(count)));
    assert_eq!(changed(&windowed(5), &windowed(9)), ["keep"]);
    assert_eq!(changed(&windowed(5), &windowed(1)), ["keep"]);
    let expiring = |count| windowed(count).expire(Expire::ByWrite);
    assert_eq!(changed(&expiring(5), &expiring(1)), ["keep"]);
    assert!(expiring(5).changes_to(&expiring(9)).unwrap_err().message().contains("expired"));
    let versions = |count| TableRules::new(KeyCodec::Utf8).keep(Keep::Versions(count));
    assert_eq!(changed(&versions(5), &versions(2)), ["keep"]);
    for (from, to) in [
        (versions(2), versions(5)),
        (TableRules::new(KeyCodec::Utf8), versions(5)),
        (versions(2), TableRules::new(KeyCodec::Utf8)),
        (windowed(5), versions(2)),
        (windowed(5), windowed(5).keep(Keep::Forever)),
        (versions(2).kind(TableKind::Hashed), versions(1).kind(TableKind::Hashed)),
    ] {
        let refused = from.changes_to(&to).unwrap_err();
        assert!(refused.message().contains("`keep`"), "{refused}");
    }
}

#[test]
fn what_the_stored_bytes_mean_is_refused_by_name_and_with_the_way() {
    let rules = TableRules::new(KeyCodec::Utf8);
    let of_index = TableRules::of_index(index("all:value"), "of");
    for (rule, wanted) in [
        ("kind", rules.clone().kind(TableKind::Hashed)),
        ("key", rules.clone().key(KeyCodec::Bytes)),
        ("order", rules.clone().reversed()),
        ("value", rules.clone().value(ValueCodec::Utf8)),
        ("fold", rules.clone().fold("sum:u64")),
        ("fold", rules.clone().custom_fold("replace", 1)),
        ("delete", rules.clone().delete_when(b"x")),
        ("short_circuit", rules.clone().short_circuit_when(b"x")),
        ("head", rules.clone().head(HeadRule::First(4))),
        ("archive_log", rules.clone().archive_log(true)),
        ("expire", rules.clone().expire(Expire::ByWrite)),
    ] {
        let refused = rules.changes_to(&wanted).unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::RulesMismatch);
        assert!(refused.message().contains(&format!("`{rule}`")), "{refused}");
        assert!(
            refused.advice().contains("folddb dump") && refused.advice().contains("folddb load"),
            "{refused}"
        );
        assert!(wanted.changes_to(&rules).is_err(), "nor back");
    }
    let refused = rules.changes_to(&TableRules { index_of: of_index.index_of, ..rules.clone() }).unwrap_err();
    assert!(refused.message().contains("`index_of`"));
}

#[test]
fn indexes_and_a_threshold_that_goes_have_their_own_ways() {
    let rules = TableRules::new(KeyCodec::Utf8).separate(64);
    let refused = rules.changes_to(&rules.clone().index(index("all:value"))).unwrap_err();
    assert!(refused.message().contains("`index`") && refused.advice().contains("folddb index"), "{refused}");
    let refused = rules.changes_to(&rules.clone().separate(None)).unwrap_err();
    assert!(refused.message().contains("`separate`") && refused.advice().contains("4294967295"), "{refused}");
}

#[test]
fn rules_of_a_newer_version_stay() {
    let rules = TableRules::from_stored("rules 1\nfold=replace\n?newer=1\n").unwrap();
    let others = TableRules::from_stored("rules 1\nfold=replace\n?newer=2\n").unwrap();
    assert!(rules.changes_to(&others).unwrap_err().message().contains("`?newer`"));
    assert_eq!(changed(&rules, &rules.clone().key_names(["a"])), ["key_names"]);
}
