use super::*;

#[test]
fn the_whole_is_the_sum_of_its_seconds() {
    let mut commits = Commits::start();
    for _ in 0..10 {
        commits.note(3);
    }
    commits.second_ends = Instant::now();
    commits.started = commits.second_ends - Duration::from_secs(1);
    commits.note(3);
    commits.note(4);
    let (all, by_second) = commits.end();
    assert_eq!(all["count"], 12);
    let rows: Vec<u64> =
        by_second.as_array().into_iter().flatten().filter_map(|s| s["rows"].as_u64()).collect();
    assert_eq!(rows, [33, 4]);
}
