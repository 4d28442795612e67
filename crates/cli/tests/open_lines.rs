//! A file that is caught at any place of its text, and imported again once it is whole: each row is
//! in once, or, where a row had been taken that has grown since, the file is refused and says so.

mod support;

use support::Place;

/// Texts by their names: some end lines in two bytes, some have lines without anything, one has no
/// header, and some have comments.
const TEXTS: [(&str, &str, &[&str]); 6] = [
    (
        "notes.csv",
        "# a\nk,n\na,1\n# of b\n#\nb,2\r\n# end",
        &["--comment=#", "--key=k", "--fold=n: sum:u64 = n"],
    ),
    (
        "notes.ndjson",
        "{\"k\":\"a\",\"n\":1}\n# of b\n  {\"k\":\"b\",\"n\":2}\n# end\n",
        &["--comment=#", "--key=k", "--fold=n: sum:u64 = n"],
    ),
    ("rows.csv", "k,n\na,1\r\n\"b\",22\n\nc,3,x\nd,x\ne,5", &["--key=k", "--fold=n: sum:u64 = n"]),
    ("bare.csv", "a,1\nb,22\nc,x\nd,4\n", &["--no-header", "--key=c1", "--fold=n: sum:u64 = c2"]),
    (
        "rows.ndjson",
        "{\"k\":\"a\",\"n\":1}\n{\"k\":\"b\"}\n\n{\"k\":\"c\",\"n\":22}",
        &["--key=k", "--fold=n: sum:u64 = n", "--optional=n"],
    ),
    ("rows.log", "a=1 n=2\nb\na=3 n=44\n", &["--format=logfmt", "--key=a", "--fold=n: sum:u64 = n"]),
];

fn import(place: &Place, table: &str, file: &str, options: &[&str]) -> support::Ran {
    place.run(&[&["import", "s", table, file, "--create"], options].concat())
}

fn check(name: &str, text: &str, options: &[&str]) {
    let place = Place::new();
    let shown = |table: &str| place.done(&["export", "s", table, "--format", "ndjson"]);
    place.write(name, text);
    import(&place, "whole", name, options);
    let (mut whole, mut refused) = (0, 0);
    for cut in 0..text.len() {
        let table = format!("t{cut}");
        place.write(name, &text[..cut]);
        import(&place, &table, name, options);
        place.write(name, text);
        let ran = import(&place, &table, name, options);
        match ran.code {
            3 => {
                assert!(ran.err.contains("has grown within its line"), "{:?}: {}", &text[..cut], ran.err);
                refused += 1;
            }
            _ => {
                assert_eq!(shown(&table), shown("whole"), "{:?}: {}", &text[..cut], ran.err);
                whole += 1;
            }
        }
    }
    assert!(whole > 4 * refused, "{name}: {whole} cuts are mended, {refused} are refused");
}

#[test]
fn a_file_that_is_caught_at_any_place_goes_on() {
    for (name, text, options) in TEXTS {
        check(name, text, options);
    }
}

#[test]
fn a_file_that_is_caught_at_any_place_goes_on_one_by_one() {
    for (name, text, options) in TEXTS {
        check(name, text, &[options, &["--threads=1"]].concat());
    }
}
