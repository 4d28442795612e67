use super::*;

fn keys(count: usize) -> Vec<Vec<u8>> {
    (0..count).map(|key| (key as u16).to_be_bytes().to_vec()).collect()
}

#[test]
fn cuts_are_as_many_as_asked_for_and_even() {
    for count in [1, 7, 31, 32, 100] {
        for pieces in 1..40 {
            let (all, cut) = (keys(count), cuts(keys(count), pieces));
            assert_eq!(cut.len(), (pieces - 1).min(count), "{pieces} pieces of {count} keys");
            let at: Vec<usize> =
                cut.iter().map(|key| all.iter().position(|one| one == key).unwrap()).collect();
            assert!(at.is_sorted_by(|a, b| a < b));
            let longest = at.windows(2).map(|two| two[1] - two[0]).max().unwrap_or(0);
            assert!(longest <= (count + 1).div_ceil(pieces.min(count + 1)), "{pieces} of {count}: {longest}");
        }
    }
}

#[test]
fn nothing_is_cut_where_there_is_nothing() {
    assert!(cuts(Vec::new(), 8).is_empty());
}
