use super::{prefetch, prefetch_all};

#[test]
fn what_was_asked_for_is_as_it_was() {
    let lines: Vec<[u64; 8]> = (0..1000).map(|line| [line; 8]).collect();
    lines.iter().for_each(prefetch);
    assert!(lines.iter().zip(0..).all(|(line, number)| *line == [number; 8]));
    prefetch(&());
    prefetch::<[u64; 0]>(&[]);
    lines.iter().for_each(prefetch_all);
    prefetch_all(&lines[..]);
    prefetch_all::<[u8]>(&[]);
    assert!(lines.iter().zip(0..).all(|(line, number)| *line == [number; 8]));
}
