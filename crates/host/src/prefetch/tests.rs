use super::prefetch;

#[test]
fn what_was_asked_for_is_as_it_was() {
    let lines: Vec<[u64; 8]> = (0..1000).map(|line| [line; 8]).collect();
    lines.iter().for_each(prefetch);
    assert!(lines.iter().zip(0..).all(|(line, number)| *line == [number; 8]));
    prefetch(&());
    prefetch::<[u64; 0]>(&[]);
}
