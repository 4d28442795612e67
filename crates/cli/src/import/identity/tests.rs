use std::fs;

use super::*;

/// The record of a file that is in as it is now.
fn entry_of(name: &str, number: u64) -> Entry {
    let mut tape = Tape::new();
    tape.feed(&fs::read(name).unwrap());
    let disk = on_disk(name).unwrap().unwrap();
    Entry { number, file: name.to_owned(), disk, content: tape.content(), done: true, ..Entry::default() }
}

fn find(records: &Records, name: &str) -> Known {
    records.find(name, &on_disk(name).unwrap().unwrap(), Sought::default()).unwrap()
}

fn number_of(known: &Known) -> (&'static str, u64) {
    match known {
        Known::New => ("new", 0),
        Known::In(entry) => ("in", entry.number),
        Known::UpTo(entry) => ("up to", entry.number),
    }
}

#[test]
fn files_are_found_among_many_records_by_what_they_hold() {
    let place = tempfile::tempdir().unwrap();
    let name = |file: &str| place.path().join(file).to_str().unwrap().to_owned();
    let mut records = Records::default();
    for number in 1..=200 {
        // Every third one is long enough to be known anywhere.
        let rows = if number % 3 == 0 { 1500 } else { number };
        let text: String = (0..rows).map(|row| format!("{number},{row}\n")).collect();
        fs::write(name(&format!("{number}.csv")), text).unwrap();
        records.put(entry_of(&name(&format!("{number}.csv")), number));
    }
    assert_eq!(records.next_number(), 201);
    for number in [1, 2, 3, 100, 150, 199] {
        let (file, other) = (name(&format!("{number}.csv")), name("other.csv"));
        assert_eq!(number_of(&find(&records, &file)), ("in", number));
        assert_eq!(records.at_path(&records.get(number).unwrap().disk.path).unwrap().number, number);
        // A copy of a short one is another file, as long as the first is there.
        fs::copy(&file, &other).unwrap();
        let as_long = if number % 3 == 0 { ("in", number) } else { ("new", 0) };
        assert_eq!(number_of(&find(&records, &other)), as_long);
        fs::remove_file(&file).unwrap();
        assert_eq!(number_of(&find(&records, &other)), ("in", number));
        let grown = fs::read_to_string(&other).unwrap() + "more,1\n";
        fs::write(&other, grown).unwrap();
        assert_eq!(number_of(&find(&records, &other)), ("up to", number));
    }
    fs::write(name("empty.csv"), "").unwrap();
    fs::write(name("else.csv"), "k,n\n").unwrap();
    for file in ["empty.csv", "else.csv"] {
        assert_eq!(find(&records, &name(file)), Known::New);
    }
}

#[test]
fn another_state_of_a_record_takes_the_place_of_it() {
    let place = tempfile::tempdir().unwrap();
    let name = place.path().join("a.csv").to_str().unwrap().to_owned();
    fs::write(&name, "a,1\n").unwrap();
    let first = entry_of(&name, 1);
    let mut records = Records::of(vec![first.clone()]);
    fs::write(&name, "b,2\nb,3\n").unwrap();
    assert_eq!(find(&records, &name), Known::New);
    records.put(entry_of(&name, 1));
    assert_eq!(number_of(&find(&records, &name)), ("in", 1));
    records.put(first.clone());
    assert_eq!(find(&records, &name), Known::New, "the state between is forgotten");
    // Counted again: the newer one is known.
    records.put(entry_of(&name, 2));
    assert_eq!(records.at_path(&first.disk.path).unwrap().number, 2);
    records.remove(2);
    assert_eq!(records.at_path(&first.disk.path).unwrap().number, 1);
    records.remove(1);
    assert_eq!((records.at_path(&first.disk.path), records.next_number()), (None, 1));
}

#[test]
fn a_file_that_grew_within_a_line_is_refused_beside_a_longer_one_that_begins_like_it() {
    let place = tempfile::tempdir().unwrap();
    let name = |file: &str| place.path().join(file).to_str().unwrap().to_owned();
    let (short, long) = (name("short.csv"), name("long.csv"));
    let begin = "hello\n".repeat(1000);
    fs::write(&short, begin.clone() + "hel").unwrap();
    fs::write(&long, begin.clone() + &"xx\n".repeat(1000)).unwrap();
    let mut records = Records::of(vec![Entry { read: 1001, ..entry_of(&short, 1) }]);
    for _ in 0..2 {
        assert_eq!(number_of(&find(&records, &short)), ("in", 1));
        fs::write(&short, begin.clone() + "hello\n").unwrap();
        let refused = records.find(&short, &on_disk(&short).unwrap().unwrap(), Sought::default());
        assert!(matches!(refused, Err(Failure::Refused(_))), "{refused:?}");
        // The end of the line alone is no more of it.
        fs::write(&short, begin.clone() + "hel\nmore\n").unwrap();
        assert_eq!(number_of(&find(&records, &short)), ("up to", 1));
        fs::write(&short, begin.clone() + "hel").unwrap();
        records.put(entry_of(&long, 2));
    }
    assert_eq!(number_of(&find(&records, &long)), ("in", 2));
}

/// What is in of a file ends within a line, and a longer record of another has that line whole.
#[test]
fn a_line_that_grew_is_not_taken_for_that_of_another_file() {
    let place = tempfile::tempdir().unwrap();
    let name = |file: &str| place.path().join(file).to_str().unwrap().to_owned();
    let rows = "a,1\n".repeat(2000);
    fs::write(name("other.csv"), rows.clone() + "b,2").unwrap();
    fs::write(name("grown.csv"), rows.clone() + "b,").unwrap();
    let entry = |file: &str, number| Entry { read: 2001, ..entry_of(&name(file), number) };
    let records = Records::of(vec![entry("other.csv", 1), entry("grown.csv", 2)]);
    fs::write(name("grown.csv"), rows.clone() + "b,2\nc,3\n").unwrap();
    let disk = on_disk(&name("grown.csv")).unwrap().unwrap();
    let refused = records.find(&name("grown.csv"), &disk, Sought::default()).unwrap_err().to_string();
    assert!(refused.contains("grown.csv has grown within its line"), "{refused}");
    fs::write(name("other.csv"), rows + "b,2\nc,3\n").unwrap();
    assert_eq!(number_of(&find(&records, &name("other.csv"))), ("up to", 1));
}

#[test]
fn a_record_is_of_another_file_while_that_is_there() {
    let place = tempfile::tempdir().unwrap();
    let name = |file: &str| place.path().join(file).to_str().unwrap().to_owned();
    fs::write(name("1.csv"), "a,1\n").unwrap();
    let entry = entry_of(&name("1.csv"), 1);
    let of = |file: &str| is_of_another(&entry, &on_disk(&name(file)).unwrap().unwrap());
    fs::copy(name("1.csv"), name("2.csv")).unwrap();
    assert_eq!((of("1.csv"), of("2.csv")), (false, true));
    fs::rename(name("1.csv"), name("3.csv")).unwrap();
    assert_eq!((of("2.csv"), of("3.csv")), (false, false), "it was renamed");
}
