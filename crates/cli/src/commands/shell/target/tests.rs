use super::*;

#[test]
fn a_target_begins_a_word() {
    let of = |line| super::of(line).unwrap();
    let file = |name: &str, appends| Target::File { name: name.to_owned(), appends };
    let command = |line: &str| Target::Command(line.to_owned());
    assert_eq!(of("scan t"), ("scan t", Target::Usual));
    assert_eq!(of("scan t | grep -v 'a|b' | wc -l"), ("scan t ", command("grep -v 'a|b' | wc -l")));
    assert_eq!(of("scan t |wc"), ("scan t ", command("wc")));
    assert_eq!(of("scan t > out.txt"), ("scan t ", file("out.txt", false)));
    assert_eq!(of("scan t >>'my file'"), ("scan t ", file("my file", true)));
    for none in ["# a > b c", "count t # must stay > 3", "drop t # as in: tables | sh", "get t a#b '#' # |"] {
        assert_eq!(of(none), (none, Target::Usual));
    }
    assert_eq!(of("scan t > a#b"), ("scan t ", file("a#b", false)));
    for none in ["import t f --delimiter '|'", "create t --fold append:|", "get t a\\ \\| b", "get t 'a > b'"]
    {
        assert_eq!(of(none), (none, Target::Usual));
    }
}

#[test]
fn half_a_target_is_a_mistake() {
    for line in ["scan t |", "scan t >", "scan t > a b", "scan t > 'a"] {
        assert!(matches!(super::of(line), Err(Failure::Usage(_))), "{line}");
    }
}
