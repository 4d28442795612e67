//! Names of files, the file `FORMAT`, and the lists of backups.

use folddb_base::FileNumber;
use folddb_base::checksum::hash64;
use folddb_layout::backup::{BackupList, ListedFile, Origin, decode_place, encode_place};
use folddb_layout::file_name::FileName;
use folddb_layout::version::Version;

use crate::target::Target;

pub(super) const TARGETS: &[Target] = &[
    Target::new("file-name", file_name, file_name_seeds).words(&[
        "MANIFEST-",
        ".log",
        ".part",
        "000000",
        "FORMAT",
    ]),
    Target::new("format-file", format_file, format_seeds).sealed_by(seal_format).words(&[
        "folddb format ",
        " required ",
        " optional ",
        " store ",
        " sum ",
        "\n",
    ]),
    Target::new("backup-place", backup_place, backup_place_seeds).sealed_by(seal_format).words(BACKUP_WORDS),
    Target::new("backup-list", backup_list, backup_list_seeds).sealed_by(seal_list).words(BACKUP_WORDS),
];

const BACKUP_WORDS: &[&str] = &[
    "folddb backup",
    "s ",
    "generation ",
    "store ",
    "made ",
    "seqs ",
    "file ",
    "000009.part",
    " linked",
    " copied",
    "sum ",
];

/// What is read is what is printed, so no two names mean one file.
fn file_name(input: &[u8]) {
    let name = String::from_utf8_lossy(input);
    if let Some(parsed) = FileName::parse(&name) {
        assert_eq!(parsed.to_string(), name);
    }
}

fn file_name_seeds() -> Vec<Vec<u8>> {
    let names = [
        FileName::Format,
        FileName::Lock,
        FileName::Manifest(FileNumber(12)),
        FileName::Log(FileNumber(1_234_567)),
        FileName::Part(FileNumber(u64::MAX)),
    ];
    names.iter().map(|name| name.to_string().into_bytes()).collect()
}

fn format_file(input: &[u8]) {
    let Ok(version) = Version::decode(input) else { return };
    if version.is_readable() {
        assert_eq!(Version::decode(&version.encode()), Ok(version));
    }
}

/// Makes the sum right: that of all before ` sum `.
fn seal_format(input: &mut [u8]) {
    let mark = b" sum ";
    let Some(at) = input.windows(mark.len()).rposition(|bytes| bytes == mark) else { return };
    let sum = format!("{:016x}", hash64(0, &input[..at]));
    let from = at + mark.len();
    for (place, digit) in input[from..].iter_mut().zip(sum.bytes()) {
        *place = digit;
    }
}

fn format_seeds() -> Vec<Vec<u8>> {
    let current = Version::current(0x0123_4567_89ab_cdef);
    vec![
        current.encode(),
        Version { optional: 3, ..current }.encode(),
        Version { major: 2, required: 1, ..current }.encode(),
    ]
}

fn backup_place(input: &[u8]) {
    let Ok(store_id) = decode_place(input) else { return };
    assert_eq!(decode_place(&encode_place(store_id)), Ok(store_id));
}

fn backup_place_seeds() -> Vec<Vec<u8>> {
    vec![encode_place(0x0123_4567_89ab_cdef)]
}

fn backup_list(input: &[u8]) {
    let Ok(list) = BackupList::decode(input) else { return };
    assert_eq!(BackupList::decode(&list.encode()).as_ref(), Ok(&list));
}

/// Makes the sum right: that of all before the last `sum `.
fn seal_list(input: &mut [u8]) {
    let Some(at) = input.windows(4).rposition(|bytes| bytes == b"sum ") else { return };
    let sum = format!("{:016x}\n", hash64(0, &input[..at]));
    for (place, digit) in input[at + 4..].iter_mut().zip(sum.bytes()) {
        *place = digit;
    }
}

fn backup_list_seeds() -> Vec<Vec<u8>> {
    let file = |name, origin| ListedFile { name, len_bytes: 34_567, tail_hash: 0x89ab_cdef, origin };
    let list = BackupList {
        generation: 3,
        store_id: 0x0123_4567_89ab_cdef,
        made_unix_s: 1_763_706_328,
        first_seq: 120,
        last_seq: 4711,
        files: vec![
            file(FileName::Format, Origin::Copied),
            file(FileName::Manifest(FileNumber(12)), Origin::Copied),
            file(FileName::Part(FileNumber(9)), Origin::Linked),
        ],
    };
    vec![list.encode(), BackupList { files: Vec::new(), ..list }.encode()]
}
