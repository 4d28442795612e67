use super::*;

#[test]
fn a_pager_is_for_terminals_that_move_a_cursor() {
    let pager = |is_terminal, term, stated| super::pager(is_terminal, term, stated);
    assert_eq!(pager(true, Some("xterm"), None).as_deref(), Some("less"));
    assert_eq!(pager(true, Some("xterm"), Some("more -s")).as_deref(), Some("more -s"));
    for none in [
        (false, Some("xterm"), None),
        (true, Some("dumb"), None),
        (true, None, None),
        (true, Some("xterm"), Some("")),
        (true, Some("xterm"), Some("cat")),
    ] {
        assert_eq!(pager(none.0, none.1, none.2), None);
    }
}

#[test]
fn a_screen_has_room_for_its_lines_and_a_prompt() {
    let screen = Screen { lines: 4, columns: 10 };
    assert!(!is_more_than(b"", screen));
    assert!(!is_more_than(b"1\n2\n", screen));
    assert!(is_more_than(b"1\n2\n3\n", screen));
    assert!(is_more_than(b"one that is long\n2\n", screen));
    assert!(is_more_than(&b"x\n".repeat(1000), screen));
}
