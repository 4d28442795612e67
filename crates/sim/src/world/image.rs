//! The bytes of a file, in pages that copies share: a disk is copied at every crash, and few pages
//! differ. Each computes its hash on demand, so that comparing two disks reads little.
//!
//! ```text
//!   | page 0 | page 1 | (none) | page 3 |        a page that is not there is all zeros
//!   |<-------------- len_bytes --->|
//! ```

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, OnceLock};

use folddb_base::checksum::hash64;

/// Bytes of a page: what a memory map writes back at once.
pub(crate) const PAGE_BYTES: u64 = 4096;

#[derive(Clone)]
struct Page {
    bytes: [u8; PAGE_BYTES as usize],
    /// Of the bytes; none where they are all zeros, like a missing page.
    hash: OnceLock<Option<u64>>,
}

impl Page {
    fn bytes_mut(&mut self) -> &mut [u8; PAGE_BYTES as usize] {
        self.hash.take();
        &mut self.bytes
    }

    fn hash(&self) -> Option<u64> {
        *self.hash.get_or_init(|| {
            let is_filled = self.bytes != [0; PAGE_BYTES as usize];
            is_filled.then(|| hash64(0, &self.bytes))
        })
    }
}

impl Default for Page {
    fn default() -> Page {
        Page { bytes: [0; PAGE_BYTES as usize], hash: OnceLock::new() }
    }
}

/// Bytes; those beyond the end are zeros.
#[derive(Clone, Default)]
pub(crate) struct Image {
    pages: Arc<BTreeMap<u64, Arc<Page>>>,
    len_bytes: u64,
    /// A hash of the pages, and the end of the last byte that is not zero, computed on demand.
    filled: OnceLock<(u64, u64)>,
}

impl Image {
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Makes it longer, with zeros, or cuts it.
    pub(crate) fn set_len(&mut self, len_bytes: u64) {
        if len_bytes < self.len_bytes {
            let kept_pages = len_bytes.div_ceil(PAGE_BYTES);
            let pages = Arc::make_mut(&mut self.pages);
            pages.retain(|&page, _| page < kept_pages);
            let inside = len_bytes % PAGE_BYTES;
            if inside > 0
                && let Some(page) = pages.get_mut(&(len_bytes / PAGE_BYTES))
            {
                Arc::make_mut(page).bytes_mut()[inside as usize..].fill(0);
            }
        }
        self.len_bytes = len_bytes;
        self.filled.take();
    }

    /// Fills `buf` from `offset`; zeros beyond the end.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) {
        for_pages(offset, buf.len(), |page, inside, range| {
            let target = &mut buf[range.clone()];
            match self.pages.get(&page) {
                Some(page) => target.copy_from_slice(&page.bytes[inside..inside + range.len()]),
                None => target.fill(0),
            }
        });
    }

    /// Puts bytes at `offset`, beyond the end too.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        let pages = Arc::make_mut(&mut self.pages);
        for_pages(offset, bytes.len(), |page, inside, range| {
            let page = Arc::make_mut(pages.entry(page).or_default());
            page.bytes_mut()[inside..inside + range.len()].copy_from_slice(&bytes[range]);
        });
        self.filled.take();
        self.len_bytes = self.len_bytes.max(offset + bytes.len() as u64);
    }

    /// A number for its bytes and its length, and the same for any length beyond `given_up` if
    /// there are zeros only.
    pub(crate) fn print(&self, given_up: Option<u64>) -> (u64, u64) {
        let (hash, filled_bytes) = *self.filled.get_or_init(|| self.filled());
        let least = given_up.unwrap_or(self.len_bytes).max(filled_bytes);
        (hash, self.len_bytes.min(least))
    }

    fn filled(&self) -> (u64, u64) {
        let (mut hash, mut last) = (DefaultHasher::new(), None);
        for (at, page) in &*self.pages {
            if let Some(of_page) = page.hash() {
                (at, of_page).hash(&mut hash);
                last = Some((at, page));
            }
        }
        let end_of = |(at, page): (&u64, &Arc<Page>)| {
            let inside = page.bytes.iter().rposition(|&byte| byte != 0).map_or(0, |last| last as u64 + 1);
            at * PAGE_BYTES + inside
        };
        (hash.finish(), last.map_or(0, end_of))
    }

    /// All bytes.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len_bytes as usize];
        self.read(0, &mut bytes);
        bytes
    }
}

/// Cuts a range of bytes at the boundaries of pages.
fn for_pages(offset: u64, len: usize, mut each: impl FnMut(u64, usize, std::ops::Range<usize>)) {
    let mut done = 0;
    while done < len {
        let at = offset + done as u64;
        let inside = (at % PAGE_BYTES) as usize;
        let take = (len - done).min(PAGE_BYTES as usize - inside);
        each(at / PAGE_BYTES, inside, done..done + take);
        done += take;
    }
}
