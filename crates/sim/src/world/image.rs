//! The bytes of a file, in pages that copies share: a disk is copied at every crash, and few pages differ.
//!
//! ```text
//!   | page 0 | page 1 | (none) | page 3 |        a page that is not there is all zeros
//!   |<-------------- len_bytes --->|
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page: what a memory map writes back at once.
pub(crate) const PAGE_BYTES: u64 = 4096;

type Page = [u8; PAGE_BYTES as usize];

/// Bytes; those beyond the end are zeros.
#[derive(Clone, Default)]
pub(crate) struct Image {
    pages: BTreeMap<u64, Arc<Page>>,
    len_bytes: u64,
}

impl Image {
    pub(crate) fn len_bytes(&self) -> u64 {
        self.len_bytes
    }

    /// Makes it longer, with zeros, or cuts it.
    pub(crate) fn set_len(&mut self, len_bytes: u64) {
        if len_bytes < self.len_bytes {
            let kept_pages = len_bytes.div_ceil(PAGE_BYTES);
            self.pages.retain(|&page, _| page < kept_pages);
            let inside = len_bytes % PAGE_BYTES;
            if inside > 0
                && let Some(page) = self.pages.get_mut(&(len_bytes / PAGE_BYTES))
            {
                Arc::make_mut(page)[inside as usize..].fill(0);
            }
        }
        self.len_bytes = len_bytes;
    }

    /// Fills `buf` from `offset`; zeros beyond the end.
    pub(crate) fn read(&self, offset: u64, buf: &mut [u8]) {
        for_pages(offset, buf.len(), |page, inside, range| {
            let target = &mut buf[range.clone()];
            match self.pages.get(&page) {
                Some(bytes) => target.copy_from_slice(&bytes[inside..inside + range.len()]),
                None => target.fill(0),
            }
        });
    }

    /// Puts bytes at `offset`, beyond the end too.
    pub(crate) fn write(&mut self, offset: u64, bytes: &[u8]) {
        for_pages(offset, bytes.len(), |page, inside, range| {
            let page = self.pages.entry(page).or_insert_with(|| Arc::new([0; PAGE_BYTES as usize]));
            Arc::make_mut(page)[inside..inside + range.len()].copy_from_slice(&bytes[range]);
        });
        self.len_bytes = self.len_bytes.max(offset + bytes.len() as u64);
    }

    /// All bytes.
    pub(crate) fn to_vec(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len_bytes as usize];
        self.read(0, &mut bytes);
        bytes
    }
}

/// Cuts a range of bytes at the borders of pages.
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
