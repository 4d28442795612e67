use folddb_base::FileNumber;
use proptest::prelude::*;

use super::FileName;

fn names() -> impl Strategy<Value = FileName> {
    let number = prop_oneof![0..2_000_000u64, any::<u64>()].prop_map(FileNumber);
    (0..10, number).prop_map(|(kind, number)| match kind {
        0 => FileName::Format,
        1 => FileName::Lock,
        2 => FileName::Manifest(number),
        3 => FileName::Log(number),
        4 => FileName::Values(number),
        5 => FileName::Relocated(number),
        6 => FileName::ValueDirectory(number),
        7 => FileName::ValueFile(number, number.0 as u32),
        8 => FileName::ArchivedLog(number),
        _ => FileName::Part(number),
    })
}

proptest! {
    #[test]
    fn what_is_printed_is_parsed(name in names()) {
        prop_assert_eq!(FileName::parse(&name.to_string()), Some(name));
    }

    #[test]
    fn what_is_parsed_is_what_is_printed(text in "(MANIFEST-)?[0-9]{5,21}(\\.log|\\.part|\\.tmp)?") {
        if let Some(name) = FileName::parse(&text) {
            prop_assert_eq!(name.to_string(), text);
        }
    }

    #[test]
    fn no_text_panics(text in ".*") {
        if let Some(name) = FileName::parse(&text) {
            prop_assert_eq!(name.to_string(), text);
        }
    }
}

#[test]
fn the_names_are_these() {
    let seven = FileNumber(7);
    assert_eq!(FileName::Manifest(seven).to_string(), "MANIFEST-000007");
    assert_eq!(FileName::Log(FileNumber(1_234_567)).to_string(), "1234567.log");
    assert_eq!(FileName::Part(seven).to_string(), "000007.part");
    assert_eq!(FileName::Part(seven).number(), Some(seven));
    assert_eq!(FileName::Lock.number(), None);
    assert_eq!(FileName::ValueFile(seven, 12).to_string(), "000007.shelf/000012.value");
}

#[test]
fn other_names_are_not_ours() {
    let others = [
        "",
        "000007.shelf/",
        "000007.shelf/7.value",
        "000007.log/000007.value",
        "000007.value",
        "format",
        "FORMAT.tmp",
        "7.log",
        "00007.log",
        "0000007.log",
        "000007.LOG",
        "000007.log.part",
    ];
    for other in
        others.into_iter().chain(["MANIFEST-", "MANIFEST-7", "+00007.log", "99999999999999999999.log"])
    {
        assert_eq!(FileName::parse(other), None, "{other}");
    }
}
