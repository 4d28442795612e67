//! The examples run, and their assertions hold.
#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
#[path = "../examples/access_log.rs"]
mod access_log;
#[allow(dead_code)]
#[path = "../examples/accounts.rs"]
mod accounts;
#[allow(dead_code)]
#[path = "../examples/async_commits.rs"]
mod async_commits;
#[allow(dead_code)]
#[path = "../examples/blob_cache.rs"]
mod blob_cache;
#[allow(dead_code)]
#[path = "../examples/flights.rs"]
mod flights;
#[allow(dead_code)]
#[path = "../examples/follow.rs"]
mod follow;
#[allow(dead_code)]
#[path = "../examples/inverted_index.rs"]
mod inverted_index;
#[allow(dead_code)]
#[path = "../examples/metrics.rs"]
mod metrics;
#[allow(dead_code)]
#[path = "../examples/people.rs"]
mod people;

#[test]
fn transfers_are_whole_and_reports_are_resumed() {
    accounts::main().unwrap();
}

#[test]
fn an_access_log_is_folded_by_page_and_sessions_end_by_themselves() {
    access_log::main().unwrap();
}

#[test]
fn one_thread_confirms_the_durable_commits_of_many_tasks() {
    async_commits::main().unwrap();
}

#[test]
fn blobs_are_streamed_listed_by_their_heads_and_gone_in_time() {
    blob_cache::main().unwrap();
}

#[test]
fn metrics_are_found_by_their_tags_and_aggregated_over_ranges() {
    metrics::main().unwrap();
}

#[test]
fn flights_are_folded_field_by_field() {
    flights::main().unwrap();
}

#[test]
fn a_follower_has_what_the_table_has() {
    follow::main().unwrap();
}

#[test]
fn people_are_found_by_what_is_known_of_them() {
    people::main().unwrap();
}

/// All three programs that index a text hold the same: this crate's own sources.
#[test]
fn an_inverted_index_holds_what_a_map_of_the_words_does() {
    let dir = tempfile::tempdir().unwrap();
    let corpus = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/maintenance");
    let words = ["store".to_owned(), "table".to_owned()];
    inverted_index::index(&corpus, &dir.path().join("store"), &words).unwrap();
}
