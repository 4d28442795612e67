//! An ordered map. Its clones share what they have in common.
//!
//! A clone costs one reference count. A change copies those nodes on the path to its place that are
//! shared: O(log n) nodes, and none if the map has no other holder. So a new version of a large map
//! costs only what is changed, and old versions stay as they are for their holders. A
//! weight-balanced tree (Adams 1993).

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::sync::Arc;

/// No side of a node has more than this many times the entries of the other.
const DELTA: usize = 3;
/// If the inner child of a side has this many times the entries of the outer one, the side is
/// rotated first.
const GAMMA: usize = 2;

/// See the module.
pub struct SharedMap<K, V> {
    root: Link<K, V>,
}

type Link<K, V> = Option<Arc<Node<K, V>>>;

#[derive(Clone)]
struct Node<K, V> {
    key: K,
    value: V,
    len: usize,
    left: Link<K, V>,
    right: Link<K, V>,
}

impl<K, V> SharedMap<K, V> {
    /// How many entries it has.
    pub fn len(&self) -> usize {
        len(&self.root)
    }

    /// Whether it has none.
    pub fn is_empty(&self) -> bool {
        self.root.is_none()
    }

    /// The entries, in ascending order of keys.
    pub fn iter(&self) -> Iter<'_, K, V> {
        let mut iter = Iter { path: Vec::new(), left: self.len() };
        iter.descend(&self.root);
        iter
    }

    /// The keys, ascending.
    pub fn keys(&self) -> impl Iterator<Item = &K> {
        self.iter().map(|(key, _)| key)
    }

    /// The values, in ascending order of keys.
    pub fn values(&self) -> impl Iterator<Item = &V> + Clone {
        self.iter().map(|(_, value)| value)
    }

    /// The entry with the highest key.
    pub fn last(&self) -> Option<(&K, &V)> {
        let mut node = self.root.as_ref()?;
        while let Some(right) = &node.right {
            node = right;
        }
        Some((&node.key, &node.value))
    }
}

impl<K: Ord, V> SharedMap<K, V> {
    /// The value of a key.
    pub fn get<Q: Ord + ?Sized>(&self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let mut link = &self.root;
        while let Some(node) = link {
            match key.cmp(node.key.borrow()) {
                Ordering::Less => link = &node.left,
                Ordering::Greater => link = &node.right,
                Ordering::Equal => return Some(&node.value),
            }
        }
        None
    }

    /// Whether a key has a value.
    pub fn contains_key<Q: Ord + ?Sized>(&self, key: &Q) -> bool
    where
        K: Borrow<Q>,
    {
        self.get(key).is_some()
    }

    /// The entries with keys above `key`.
    pub fn iter_above(&self, key: &K) -> Iter<'_, K, V> {
        let mut iter = Iter { path: Vec::new(), left: 0 };
        let mut link = &self.root;
        while let Some(node) = link {
            if node.key > *key {
                iter.path.push(node);
                iter.left += 1 + len(&node.right);
                link = &node.left;
            } else {
                link = &node.right;
            }
        }
        iter
    }
}

impl<K: Ord + Clone, V: Clone> SharedMap<K, V> {
    /// Sets the value of a key. Returns the previous one.
    pub fn insert(&mut self, key: K, value: V) -> Option<V> {
        insert(&mut self.root, key, value)
    }

    /// Removes a key. Returns its value. If it has none, nothing is copied.
    pub fn remove<Q: Ord + ?Sized>(&mut self, key: &Q) -> Option<V>
    where
        K: Borrow<Q>,
    {
        if !self.contains_key(key) {
            return None;
        }
        remove(&mut self.root, key)
    }

    /// The value of a key, to be changed. If it has none, nothing is copied.
    pub fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        if !self.contains_key(key) {
            return None;
        }
        let mut link = &mut self.root;
        while let Some(node) = link {
            let node = Arc::make_mut(node);
            match key.cmp(&node.key) {
                Ordering::Less => link = &mut node.left,
                Ordering::Greater => link = &mut node.right,
                Ordering::Equal => return Some(&mut node.value),
            }
        }
        None
    }
}

fn len<K, V>(link: &Link<K, V>) -> usize {
    link.as_ref().map_or(0, |node| node.len)
}

impl<K, V> Node<K, V> {
    fn recount(&mut self) {
        self.len = 1 + len(&self.left) + len(&self.right);
    }
}

fn insert<K: Ord + Clone, V: Clone>(link: &mut Link<K, V>, key: K, value: V) -> Option<V> {
    let Some(node) = link else {
        *link = Some(Arc::new(Node { key, value, len: 1, left: None, right: None }));
        return None;
    };
    let node = Arc::make_mut(node);
    let before = match key.cmp(&node.key) {
        Ordering::Less => insert(&mut node.left, key, value),
        Ordering::Greater => insert(&mut node.right, key, value),
        Ordering::Equal => return Some(std::mem::replace(&mut node.value, value)),
    };
    balance(link);
    before
}

/// Removes a key that exists.
fn remove<K: Ord + Clone + Borrow<Q>, Q: Ord + ?Sized, V: Clone>(
    link: &mut Link<K, V>,
    key: &Q,
) -> Option<V> {
    let node = Arc::make_mut(link.as_mut()?);
    let removed = match key.cmp(node.key.borrow()) {
        Ordering::Less => remove(&mut node.left, key),
        Ordering::Greater => remove(&mut node.right, key),
        Ordering::Equal => return Some(remove_root(link)?.1),
    };
    balance(link);
    removed
}

/// Removes the entry at the top; the next one takes its place.
fn remove_root<K: Ord + Clone, V: Clone>(link: &mut Link<K, V>) -> Option<(K, V)> {
    let node = Arc::make_mut(link.as_mut()?);
    let next = remove_first(&mut node.right);
    let removed = match next {
        Some((key, value)) => {
            (std::mem::replace(&mut node.key, key), std::mem::replace(&mut node.value, value))
        }
        None => {
            let removed = (node.key.clone(), node.value.clone());
            *link = node.left.take();
            return Some(removed);
        }
    };
    balance(link);
    Some(removed)
}

fn remove_first<K: Ord + Clone, V: Clone>(link: &mut Link<K, V>) -> Option<(K, V)> {
    let node = Arc::make_mut(link.as_mut()?);
    if node.left.is_none() {
        let removed = (node.key.clone(), node.value.clone());
        *link = node.right.take();
        return Some(removed);
    }
    let removed = remove_first(&mut node.left);
    balance(link);
    removed
}

/// Recounts and rebalances a node, after one entry was added or removed below it.
fn balance<K: Ord + Clone, V: Clone>(link: &mut Link<K, V>) {
    let Some(node) = link.as_mut() else { return };
    let node = Arc::make_mut(node);
    node.recount();
    let (left, right) = (len(&node.left), len(&node.right));
    if left + right <= 1 {
        return;
    }
    if right > DELTA * left {
        let inner_is_heavy =
            node.right.as_ref().is_some_and(|right| len(&right.left) >= GAMMA * len(&right.right));
        if inner_is_heavy {
            rotate_right(&mut node.right);
        }
        rotate_left(link);
    } else if left > DELTA * right {
        let inner_is_heavy =
            node.left.as_ref().is_some_and(|left| len(&left.right) >= GAMMA * len(&left.left));
        if inner_is_heavy {
            rotate_left(&mut node.left);
        }
        rotate_right(link);
    }
}

/// The right child comes to the top; without one nothing happens.
fn rotate_left<K: Clone, V: Clone>(link: &mut Link<K, V>) {
    let Some(mut top) = link.take() else { return };
    let node = Arc::make_mut(&mut top);
    let Some(mut right) = node.right.take() else {
        *link = Some(top);
        return;
    };
    let child = Arc::make_mut(&mut right);
    node.right = child.left.take();
    node.recount();
    child.left = Some(top);
    child.recount();
    *link = Some(right);
}

/// The left child comes to the top; without one nothing happens.
fn rotate_right<K: Clone, V: Clone>(link: &mut Link<K, V>) {
    let Some(mut top) = link.take() else { return };
    let node = Arc::make_mut(&mut top);
    let Some(mut left) = node.left.take() else {
        *link = Some(top);
        return;
    };
    let child = Arc::make_mut(&mut left);
    node.left = child.right.take();
    node.recount();
    child.right = Some(top);
    child.recount();
    *link = Some(left);
}

/// The entries of a [`SharedMap`], in ascending order of keys.
pub struct Iter<'m, K, V> {
    /// The next nodes, the first one last: each comes before its right subtree.
    path: Vec<&'m Node<K, V>>,
    left: usize,
}

impl<K, V> Clone for Iter<'_, K, V> {
    fn clone(&self) -> Self {
        Iter { path: self.path.clone(), left: self.left }
    }
}

impl<'m, K, V> Iter<'m, K, V> {
    fn descend(&mut self, mut link: &'m Link<K, V>) {
        while let Some(node) = link {
            self.path.push(node);
            link = &node.left;
        }
    }
}

impl<'m, K, V> Iterator for Iter<'m, K, V> {
    type Item = (&'m K, &'m V);

    fn next(&mut self) -> Option<Self::Item> {
        let node = self.path.pop()?;
        self.left -= 1;
        self.descend(&node.right);
        Some((&node.key, &node.value))
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}

impl<'m, K, V> IntoIterator for &'m SharedMap<K, V> {
    type Item = (&'m K, &'m V);
    type IntoIter = Iter<'m, K, V>;

    fn into_iter(self) -> Iter<'m, K, V> {
        self.iter()
    }
}

impl<K, V> Clone for SharedMap<K, V> {
    fn clone(&self) -> Self {
        SharedMap { root: self.root.clone() }
    }
}

impl<K, V> Default for SharedMap<K, V> {
    fn default() -> Self {
        SharedMap { root: None }
    }
}

impl<K: PartialEq, V: PartialEq> PartialEq for SharedMap<K, V> {
    fn eq(&self, other: &Self) -> bool {
        self.len() == other.len() && self.iter().eq(other.iter())
    }
}

impl<K: Eq, V: Eq> Eq for SharedMap<K, V> {}

impl<K: fmt::Debug, V: fmt::Debug> fmt::Debug for SharedMap<K, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.iter()).finish()
    }
}

impl<K: Ord + Clone, V: Clone> FromIterator<(K, V)> for SharedMap<K, V> {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(entries: I) -> Self {
        let mut map = SharedMap::default();
        entries.into_iter().for_each(|(key, value)| drop(map.insert(key, value)));
        map
    }
}

#[cfg(test)]
#[path = "shared_map/tests.rs"]
mod tests;
