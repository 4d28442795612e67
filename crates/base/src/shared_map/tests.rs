use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

impl<K: Ord, V> SharedMap<K, V> {
    /// Every node is balanced, and knows how many entries it has.
    fn assert_balanced(&self) {
        fn walk<K: Ord, V>(link: &Link<K, V>) -> usize {
            let Some(node) = link else { return 0 };
            let (left, right) = (walk(&node.left), walk(&node.right));
            assert_eq!(node.len, left + right + 1);
            let sits = left + right <= 1 || (left <= DELTA * right && right <= DELTA * left);
            assert!(sits, "{left} entries beside {right}");
            node.len
        }
        walk(&self.root);
    }
}

proptest! {
    #[test]
    fn it_does_what_an_ordered_map_does_and_older_versions_stay(
        steps in proptest::collection::vec((any::<bool>(), 0_u8..60, any::<u16>()), 0..200),
    ) {
        let (mut map, mut model) = (SharedMap::default(), BTreeMap::new());
        let mut versions = Vec::new();
        for (puts, key, value) in steps {
            if puts {
                prop_assert_eq!(map.insert(key, value), model.insert(key, value));
            } else {
                prop_assert_eq!(map.remove(&key), model.remove(&key));
            }
            if let Some(value) = map.get_mut(&(key / 2)) {
                *value ^= 1;
                *model.get_mut(&(key / 2)).unwrap() ^= 1;
            }
            map.assert_balanced();
            versions.push((map.clone(), model.clone()));
        }
        for (map, model) in &versions {
            prop_assert!(map.iter().eq(model.iter()));
            prop_assert_eq!((map.len(), map.last()), (model.len(), model.last_key_value()));
            for key in 0..60 {
                prop_assert_eq!(map.get(&key), model.get(&key));
                let above: Vec<_> = map.iter_above(&key).collect();
                prop_assert_eq!(map.iter_above(&key).size_hint().0, above.len());
                prop_assert!(above.into_iter().eq(model.range(key + 1..)));
            }
        }
    }
}

#[test]
fn a_change_of_a_version_copies_the_path_to_it_and_no_more() {
    let map: SharedMap<u32, Arc<u32>> = (0..100_000).map(|key| (key, Arc::new(key))).collect();
    map.assert_balanced();
    let mut next = map.clone();
    next.insert(31_337, Arc::new(0));
    next.remove(&77_777);
    // If its node was copied, an entry is held twice.
    let copied = map.values().filter(|value| Arc::strong_count(value) > 1).count();
    assert!((1..=100).contains(&copied), "{copied} nodes copied");
    assert_eq!((map.len(), next.len(), **map.get(&31_337).unwrap()), (100_000, 99_999, 31_337));
}
