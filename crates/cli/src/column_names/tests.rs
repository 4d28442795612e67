use super::*;

#[test]
fn names_may_have_commas_in_brackets_or_in_backquotes() {
    let names = |text: &str| split(&[text.to_owned()]);
    assert_eq!(names("split(p, \"/\", 2),n"), ["split(p, \"/\", 2)", "n"]);
    assert_eq!(names("`a,b`,c"), ["a,b", "c"]);
    // Blanks between names are none of theirs.
    assert_eq!(names(" a, b ,day(t, \"x\") "), ["a", "b", "day(t, \"x\")"]);
    assert_eq!(names("a, ` b `"), ["a", " b "]);
    // Brackets and quotes may be letters of a name.
    assert_eq!(names("it's,n"), ["it's", "n"]);
    assert_eq!(names("a(b,c"), ["a(b", "c"]);
    assert_eq!(names("a)b,c"), ["a)b", "c"]);
    assert_eq!(names(""), [""]);
}
