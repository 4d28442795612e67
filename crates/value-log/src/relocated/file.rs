//! A file of relocated values, open for reading: its map is searched page by page.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use folddb_base::pointer::Pointer;
use folddb_base::{Error, FileNumber, Result, TableId, ValuePlace, error};
use folddb_host::{Files, ReadFile};
use folddb_layout::relocated::{
    Carried, Footer, MAP_PAGE_BYTES, Move, Page, RELOCATED_FOOTER_BYTES, RELOCATED_HEADER_BYTES, Top,
    check_header,
};

use super::copy::Source;
use super::writer::relocated_path;
use crate::segment::{read_at, read_value};

/// An open file of relocated values.
pub struct RelocatedFile {
    pub(super) file: Arc<dyn ReadFile>,
    pub(super) path: PathBuf,
    pub(super) number: FileNumber,
    pub(super) top: Top,
    pub(super) file_bytes: u64,
}

impl RelocatedFile {
    /// Opens file `number` of the store in `dir`: three reads. The pages of its map and its records
    /// are checked when they are read.
    ///
    /// # Errors
    /// `Corruption` if it is missing or not such a file; a failed call.
    pub fn open(files: &dyn Files, dir: &Path, number: FileNumber) -> Result<RelocatedFile> {
        RelocatedFile::open_so(files, dir, number, false)
    }

    /// As [`RelocatedFile::open`]; with `is_direct` reads bypass the page cache.
    ///
    /// # Errors
    /// As for [`RelocatedFile::open`].
    pub fn open_so(
        files: &dyn Files,
        dir: &Path,
        number: FileNumber,
        is_direct: bool,
    ) -> Result<RelocatedFile> {
        let path = relocated_path(dir, number);
        let opened = if is_direct { files.open_direct(&path) } else { files.open(&path) };
        let file = opened.map_err(|error| match error.kind() {
            std::io::ErrorKind::NotFound => error::corrupt(&path, 0, "it holds values, and it is not there"),
            _ => Error::io("open", &path, error),
        })?;
        let file_bytes = file.len_bytes().map_err(|error| Error::io("read", &path, error))?;
        let read = |offset: u64, len: usize| {
            let mut bytes = vec![0; len];
            read_at(&*file, &path, offset, &mut bytes).map(|()| bytes)
        };
        let damaged = |offset: u64, cause| error::corrupt(&path, offset, cause);
        if file_bytes < (RELOCATED_HEADER_BYTES + RELOCATED_FOOTER_BYTES) as u64 {
            return Err(error::corrupt(&path, file_bytes, "too short for a file of relocated values"));
        }
        check_header(&read(0, RELOCATED_HEADER_BYTES)?, number).map_err(|cause| damaged(0, cause))?;
        let footer_at = file_bytes - RELOCATED_FOOTER_BYTES as u64;
        let footer = Footer::decode(&read(footer_at, RELOCATED_FOOTER_BYTES)?, number, file_bytes)
            .map_err(|cause| damaged(footer_at, cause))?;
        // The footer is whole and says that the top is inside of the file.
        let top = Top::open(&read(footer.top_at, footer.top_bytes as usize)?, number, &footer)
            .map_err(|cause| damaged(footer.top_at, cause))?;
        Ok(RelocatedFile { file, path, number, top, file_bytes })
    }

    /// Its number.
    pub fn number(&self) -> FileNumber {
        self.number
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its length.
    pub fn file_bytes(&self) -> u64 {
        self.file_bytes
    }

    /// The segments with values in it, in order.
    pub fn carried(&self) -> &[Carried] {
        &self.top.carried
    }

    /// The file itself.
    pub fn file(&self) -> &dyn ReadFile {
        &*self.file
    }

    /// Where its records end.
    pub fn records_end(&self) -> u64 {
        self.top.map_at
    }

    /// Reads the value that a pointer leads to into `record`, in one read. `page_at` returns the
    /// page of the map at an offset, from memory or by [`RelocatedFile::read_page`].
    ///
    /// # Errors
    /// `Corruption`, which names file and offset, if the map does not have the value, or if it is
    /// not what the pointer says; a failed read.
    pub fn value<'r>(
        &self,
        of: (TableId, &[u8]),
        pointer: &Pointer<'_>,
        record: &'r mut Vec<u8>,
        page_at: impl FnOnce(u64) -> Result<Arc<[u8]>>,
    ) -> Result<&'r [u8]> {
        let unit = self.find(pointer.place, page_at)?;
        let place = ValuePlace { segment: pointer.place.segment, unit };
        read_value((&*self.file, self.top.map_at), &self.path, of, &Pointer { place, ..*pointer }, record)
    }

    /// The number of its segment with these low bits.
    pub fn segment_of_low(&self, low: u32, bits: u32) -> Option<u32> {
        let mask = (1u32 << bits) - 1;
        self.carried().iter().map(|carried| carried.segment).find(|segment| segment & mask == low)
    }

    /// The unit in this file of the record at `place`.
    ///
    /// # Errors
    /// As for [`RelocatedFile::value`].
    pub fn find(&self, place: ValuePlace, page_at: impl FnOnce(u64) -> Result<Arc<[u8]>>) -> Result<u32> {
        let lost = |offset: u64| {
            let what = format!(
                "its map does not have unit {} of segment {}, and a pointer leads there",
                place.unit, place.segment
            );
            error::corrupt(&self.path, offset, what)
        };
        let offset = self.top.page_of(place.segment, place.unit).ok_or_else(|| lost(self.top.map_at))?;
        let page = page_at(offset)?;
        let page = Page::of_checked(&page, place.segment)
            .map_err(|cause| error::corrupt(&self.path, offset, cause))?;
        page.find(place.unit).ok_or_else(|| lost(offset))
    }

    /// Reads and checks the page of the map at this offset.
    ///
    /// # Errors
    /// Damage; a failed read.
    pub fn read_page(&self, offset: u64) -> Result<Arc<[u8]>> {
        let mut bytes = vec![0; MAP_PAGE_BYTES];
        read_at(&*self.file, &self.path, offset, &mut bytes)?;
        let damaged = |cause| error::corrupt(&self.path, offset, cause);
        let segment = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
        Page::open(&bytes, (self.number, offset), segment).map_err(damaged)?;
        Ok(bytes.into())
    }

    /// Visits all entries of the map for a segment, page by page.
    ///
    /// # Errors
    /// Damage; a failed read; what `visit` returns.
    pub fn moves(&self, segment: u32, visit: &mut dyn FnMut(Move) -> Result<()>) -> Result<()> {
        let mut last = None;
        for offset in self.top.pages(segment) {
            let bytes = self.read_page(offset)?;
            let damaged = |cause| error::corrupt(&self.path, offset, cause);
            let page = Page::of_checked(&bytes, segment).map_err(|cause| damaged(cause.to_string()))?;
            for one in page.moves() {
                if last.is_some_and(|last| last >= one.old) {
                    return Err(damaged("the units of its map do not rise".to_owned()));
                }
                last = Some(one.old);
                visit(one)?;
            }
        }
        Ok(())
    }

    /// Its records, as a source for another file.
    pub fn source(&self) -> Source {
        Source::new(Arc::clone(&self.file), &self.path, self.top.map_at)
    }
}
