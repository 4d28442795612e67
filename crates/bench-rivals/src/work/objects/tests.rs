use super::*;

#[test]
fn ids_differ_and_begin_with_their_number() {
    let shelf = Shelf::new(1, 64, 100, 200);
    let id = shelf.id(5);
    assert_eq!(id.bytes().len(), 64);
    assert_eq!(id.bytes()[..8], shelf.number(5).to_be_bytes());
    assert_ne!(id.bytes()[8..16], id.bytes()[16..24]);
    assert_ne!(id.bytes(), shelf.id(6).bytes());
    assert_eq!(Shelf::new(1, 8, 100, 200).id(5).bytes(), &id.bytes()[..8]);
}

#[test]
fn puts_leave_the_versions_that_are_expected() {
    let shelf = Shelf::new(2, 8, 16, 64);
    let (keys, puts) = (7, 24);
    let mut source = Puts::new(&shelf, keys);
    let mut store = std::collections::BTreeMap::new();
    for _ in 0..puts {
        if let Op::Put { key, value } = source.next() {
            store.insert(key.to_vec(), value.to_vec());
        }
    }
    let versions = Versions::after(&shelf, puts, keys);
    assert_eq!(versions.last, [3, 3, 3, 2, 2, 2, 2]);
    let mut sum = RowSum::default();
    for (key, value) in &store {
        let (number, version) = versions.numbers(key, value).expect("it is of the shelf");
        sum.add(number, version);
    }
    assert_eq!(sum, versions.sum());
    let bytes: usize = store.iter().map(|(key, value)| key.len() + value.len()).sum();
    assert_eq!(versions.live_bytes(), bytes as u64);
}
