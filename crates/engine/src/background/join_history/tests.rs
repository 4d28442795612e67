use super::*;

const LIMITS: Limits = Limits { files_min: 3, bytes_max: 1 << 20 };

/// Files that follow on each other, of 100 places each.
fn files(bytes: &[u64]) -> Vec<HistoryFile> {
    let file = |(index, &file_bytes): (u64, &u64)| HistoryFile {
        number: FileNumber(index),
        is_archived: false,
        first_lsn: index * 100,
        next_lsn: index * 100 + 100,
        file_bytes,
    };
    (0..).zip(bytes).map(file).collect()
}

#[test]
fn as_many_small_files_as_a_merge_factor_are_joined() {
    assert_eq!(next_group(&files(&[4096; 2]), &[], LIMITS), None);
    assert_eq!(next_group(&files(&[4096; 3]), &[], LIMITS), Some(0..3));
    assert_eq!(next_group(&[], &[], LIMITS), None);
}

#[test]
fn no_file_is_joined_across_a_position_of_a_feed() {
    let files = files(&[4096; 9]);
    assert_eq!(next_group(&files, &[400], LIMITS), Some(4..9), "at a boundary: those after it first");
    assert_eq!(next_group(&files, &[700], LIMITS), Some(0..7), "too few after it");
    assert_eq!(next_group(&files, &[450], LIMITS), Some(5..9), "inside a file, which stays");
    assert_eq!(next_group(&files, &[0, 250, 550, 900], LIMITS), Some(6..9));
    assert_eq!(next_group(&files, &[250, 550, 800], LIMITS), None);
    assert_eq!(next_group(&files, &[0, 900], LIMITS), Some(0..9), "both ends may stay where they are");
}

#[test]
fn no_file_is_joined_across_a_gap() {
    let mut files = files(&[4096; 6]);
    files.remove(3);
    assert_eq!(next_group(&files, &[], LIMITS), Some(0..3));
}

#[test]
fn a_file_is_joined_again_only_with_as_many_newer_bytes() {
    assert_eq!(next_group(&files(&[500_000, 4096, 4096, 4096]), &[], LIMITS), Some(1..4));
    assert_eq!(next_group(&files(&[500_000, 130_000, 60_000, 60_000]), &[], LIMITS), Some(0..4));
    assert_eq!(next_group(&files(&[900_000, 400_000, 60_000, 60_000]), &[], LIMITS), None);
    let most = next_group(&files(&[400_000, 200_000, 100_000, 50_000]), &[], LIMITS);
    assert_eq!(most, Some(0..4), "the limit of an opening is not reached");
    let less = next_group(&files(&[700_000, 350_000, 100_000, 60_000, 60_000]), &[], LIMITS);
    assert_eq!(less, Some(1..5), "nor is more copied than an opening may");
}

/// A year of openings that each leave a file: few files, and each batch is copied a few times.
#[test]
fn many_openings_leave_few_files() {
    let limits = Limits { files_min: 8, bytes_max: 8 << 20 };
    let (mut bytes, mut copied, mut most) = (Vec::new(), 0, 0);
    for _ in 0..100_000 {
        bytes.push(4096);
        while let Some(group) = next_group(&files(&bytes), &[], limits) {
            let joined = bytes[group.clone()].iter().sum();
            copied += joined;
            bytes.splice(group, [joined]);
        }
        most = most.max(bytes.len());
    }
    let written = 100_000 * 4096;
    assert_eq!(bytes.iter().sum::<u64>(), written, "nothing is lost");
    assert!(most <= 60 + (written / (4 << 20)) as usize, "{most} files");
    assert!(copied <= 8 * written, "{} bytes copied for each", copied / written);
}
