use super::*;

#[test]
fn a_thread_without_a_step_for_too_long_is_found_and_named() {
    let desks = [Desk::new("reader"), Desk::new("writer"), Desk::new("idler")];
    let (start, s) = (Instant::now(), Duration::from_secs);
    let mut watchman = Watchman::new(&desks, start);
    desks[2].end();
    for second in 1..=10 {
        desks[0].begin("a get");
        if second <= 6 {
            desks[1].begin("a commit");
        }
        assert_eq!(watchman.look(&desks, start + s(second), s(5)), None);
    }
    desks[0].begin("a scan");
    let dump = watchman.look(&desks, start + s(12), s(5)).unwrap();
    let lines: Vec<&str> = dump.lines().skip(1).map(str::trim).collect();
    assert_eq!(
        lines,
        [
            "reader  a scan, 0 s, 11 steps",
            "writer  a commit, 6 s, 6 steps",
            "idler  nothing yet, 0 s, 0 steps, ended"
        ]
    );
}
