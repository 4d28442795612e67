//! A file that is caught at any place of its text, and imported again once it is whole: each row is
//! in once, or, where a row had been taken that has grown since, the file is refused and says so.

mod support;

use std::io::Write;

use support::Place;

/// Texts by their names: some end lines in two bytes, some have lines without anything, one has no
/// header, and some have comments.
const TEXTS: [(&str, &str, &[&str]); 9] = [
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
    (
        "quoted.csv",
        "k,n\n\"a\n\",1\n\"b\n1,2\n\n3,4\nc\",22\nd,\"3\"\n\"e \"\"x\"\"\n,4\",5\n",
        &["--key=k", "--fold=n: sum:u64 = n"],
    ),
    (
        "stray.csv",
        "k,n\na,1\n\"b,2\nc,3\n\"d\",4\ne,5\nf,\"6\ng,7\nh,8\n\"i\nj\",9\n",
        &["--key=k", "--fold=n: sum:u64 = n"],
    ),
    (
        "quoted_bare.csv",
        "\"a\nb,c\n\",1\n\"d\n\",2\n",
        &["--no-header", "--key=c1", "--fold=n: sum:u64 = c2"],
    ),
    ("rows.log", "a=1 n=2\nb\na=3 n=44\n", &["--format=logfmt", "--key=a", "--fold=n: sum:u64 = n"]),
];

fn import(place: &Place, table: &str, file: &str, options: &[&str]) -> support::Ran {
    place.run(&[&["import", "s", table, file, "--create"], options].concat())
}

fn packed(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).expect("it is packed");
    packed.finish().expect("it is packed")
}

fn check(name: &str, text: &str, options: &[&str], made: impl Fn(&str) -> Vec<u8>) {
    let place = Place::new();
    let shown = |table: &str| place.run(&["export", "s", table, "--format", "ndjson"]).out;
    place.write(name, made(text));
    import(&place, "whole", name, options);
    let (mut whole, mut refused) = (0, 0);
    for cut in 0..text.len() {
        let table = format!("t{cut}");
        place.write(name, made(&text[..cut]));
        import(&place, &table, name, options);
        place.write(name, made(text));
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
        check(name, text, options, |text| text.as_bytes().to_vec());
    }
}

#[test]
fn a_file_that_is_caught_at_any_place_goes_on_one_by_one() {
    for (name, text, options) in TEXTS {
        check(name, text, &[options, &["--threads=1"]].concat(), |text| text.as_bytes().to_vec());
    }
}

#[test]
fn a_packed_file_that_is_caught_at_any_place_goes_on() {
    for (name, text, options) in [TEXTS[0], TEXTS[1], TEXTS[5]] {
        check(&format!("{name}.gz"), text, options, packed);
    }
}
