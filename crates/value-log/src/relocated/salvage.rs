//! Reads a file of relocated values with a damaged map, top or footer, as far as pages of the map
//! are whole, and rewrites it.
//!
//! Each page of the map names its segment, and its hash includes its place, so pages can be found
//! without the top. The records of a lost page cannot be found any more: they stay in the file as
//! dead bytes.
//!
//! Called for `repair`.

use std::path::Path;

use folddb_base::{Error, FileNumber, Result, error};
use folddb_host::{Files, ReadFile};
use folddb_layout::relocated::{
    Carried, Footer, MAP_PAGE_BYTES, MAP_PAGE_VALUES, Move, Page, RELOCATED_FOOTER_BYTES,
    RELOCATED_HEADER_BYTES, Top, header, put_pages,
};

use super::file::RelocatedFile;
use super::writer::{BUFFER_BYTES, relocated_path};

const PAGE: u64 = MAP_PAGE_BYTES as u64;

/// Bytes that are read at a time where reads fail: at most what a disk loses at once.
const BLOCK_BYTES: u64 = 4096;

/// For each page of a map, its segment and its first unit; none if the page is lost.
type Pages = Vec<Option<(u32, u32)>>;

/// Opens file `number` of the store in `dir` as far as it can be read, even if header, pages, top
/// or footer are lost or cannot be read.
///
/// # Errors
/// `Corruption` if no page is whole, so that no record can be found; a failed call to open it.
pub fn open_damaged(files: &dyn Files, dir: &Path, number: FileNumber) -> Result<RelocatedFile> {
    let path = relocated_path(dir, number);
    let file = files.open(&path).map_err(|error| Error::io("open", &path, error))?;
    let file_bytes = file.len_bytes().map_err(|error| Error::io("read", &path, error))?;
    let footer = footer_of(&*file, number, file_bytes);
    let top = match footer.and_then(|footer| top_of(&*file, number, &footer)) {
        Some(top) => top,
        None => {
            let (from, to) = footer.map_or((PAGE, file_bytes), |footer| (footer.map_at, footer.top_at));
            search(&*file, &path, number, from..to)?
        }
    };
    Ok(RelocatedFile { file, path, number, top, file_bytes })
}

/// Writes a copy of the file, with the same name, into `dir`: its records at the same offsets,
/// zeros for what cannot be read, and a map with the entries of its whole pages. Returns the
/// length, and how many pages are lost.
///
/// # Errors
/// A failed write or sync.
pub fn write_salvaged(moved: &RelocatedFile, files: &dyn Files, dir: &Path) -> Result<(u64, u64)> {
    let path = relocated_path(dir, moved.number);
    let failed = |error| Error::io("write", &path, error);
    let mut file = files.create(&path).map_err(|error| Error::io("create", &path, error))?;
    file.append(&header(moved.number)).map_err(failed)?;
    let (mut at, mut window) = (RELOCATED_HEADER_BYTES as u64, Vec::new());
    while at < moved.top.map_at {
        window.resize((moved.top.map_at - at).min(BUFFER_BYTES as u64) as usize, 0);
        read_past_errors(&*moved.file, at, &mut window);
        file.append(&window).map_err(failed)?;
        at += window.len() as u64;
    }
    let (mut lost, mut carried) = (0, Vec::new());
    for one in &moved.top.carried {
        let moves = whole_moves(moved, one.segment, &mut lost);
        let mut pages = Vec::new();
        carried.push(put_pages(&mut pages, (moved.number, at), one.segment, one.bytes, &moves));
        file.append(&pages).map_err(failed)?;
        at += pages.len() as u64;
    }
    let mut end = Vec::new();
    Top::new(moved.top.map_at, carried).put(&mut end, moved.number);
    file.append(&end).map_err(failed)?;
    file.sync().map_err(|error| Error::io("sync", &path, error))?;
    Ok((at + end.len() as u64, lost))
}

/// The entries of the whole pages of a segment.
fn whole_moves(moved: &RelocatedFile, segment: u32, lost: &mut u64) -> Vec<Move> {
    let mut moves: Vec<Move> = Vec::new();
    for offset in moved.top.pages(segment) {
        match page_at(&*moved.file, moved.number, offset) {
            Some((of, page)) if of == segment => moves.extend(page),
            _ => *lost += 1,
        }
    }
    moves.dedup_by(|next, before| next.old <= before.old); // never happens: each page has a hash
    moves
}

/// Fills `buf` with what can be read, and the rest with zeros. Returns how many bytes are zeros.
///
/// A read that fails is tried again block by block, so that one bad sector costs only the values in
/// it.
pub fn read_past_errors(file: &dyn ReadFile, offset: u64, buf: &mut [u8]) -> u64 {
    if file.read_exact_at(offset, buf).is_ok() {
        return 0;
    }
    let (mut unread, mut at) = (0, 0);
    while at < buf.len() {
        let to_boundary = BLOCK_BYTES - (offset + at as u64) % BLOCK_BYTES;
        let block = at..buf.len().min(at + to_boundary as usize);
        if file.read_exact_at(offset + at as u64, &mut buf[block.clone()]).is_err() {
            buf[block.clone()].fill(0);
            unread += block.len() as u64;
        }
        at = block.end;
    }
    unread
}

fn footer_of(file: &dyn ReadFile, number: FileNumber, file_bytes: u64) -> Option<Footer> {
    let mut bytes = [0; RELOCATED_FOOTER_BYTES];
    file.read_exact_at(file_bytes.checked_sub(RELOCATED_FOOTER_BYTES as u64)?, &mut bytes).ok()?;
    Footer::decode(&bytes, number, file_bytes).ok()
}

fn top_of(file: &dyn ReadFile, number: FileNumber, footer: &Footer) -> Option<Top> {
    let mut bytes = vec![0; footer.top_bytes as usize];
    file.read_exact_at(footer.top_at, &mut bytes).ok()?;
    Top::open(&bytes, number, footer).ok()
}

/// The segment and the entries of the page at this offset; none if it cannot be read or is not
/// whole.
fn page_at(file: &dyn ReadFile, number: FileNumber, offset: u64) -> Option<(u32, Vec<Move>)> {
    let mut bytes = vec![0; MAP_PAGE_BYTES];
    file.read_exact_at(offset, &mut bytes).ok()?;
    let segment = u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]);
    let page = Page::open(&bytes, (number, offset), segment).ok()?;
    Some((segment, page.moves().collect()))
}

/// Searches for pages between two offsets, and makes a top from them. A place between two pages
/// without a whole page counts as a lost page.
fn search(file: &dyn ReadFile, path: &Path, number: FileNumber, range: std::ops::Range<u64>) -> Result<Top> {
    let (mut map_at, mut pages) = (range.start, Pages::new());
    for offset in range.clone().step_by(MAP_PAGE_BYTES).filter(|offset| offset + PAGE <= range.end) {
        let found = page_at(file, number, offset);
        let found = found.and_then(|(segment, moves)| Some((segment, moves.first()?.old)));
        if found.is_some() && pages.is_empty() {
            map_at = offset;
        }
        if found.is_some() || !pages.is_empty() {
            pages.push(found);
        }
    }
    while pages.last().is_some_and(Option::is_none) {
        pages.pop();
    }
    if pages.is_empty() {
        return Err(error::corrupt(
            path,
            range.start,
            "no page of its map is whole, so nothing leads to its values",
        ));
    }
    Ok(Top::new(map_at, carried_by(&pages)))
}

/// The segments of these pages. A lost page counts for the segment before it: a reader that needs
/// it finds that it is damaged.
fn carried_by(pages: &Pages) -> Vec<Carried> {
    let mut carried: Vec<Carried> = Vec::new();
    for page in pages {
        let last = carried.last_mut();
        match (page, last) {
            (Some((segment, first)), Some(last)) if last.segment == *segment => last.page_firsts.push(*first),
            (Some((segment, first)), _) => {
                carried.push(Carried { segment: *segment, page_firsts: vec![*first], ..Carried::default() });
            }
            (None, Some(last)) => {
                let before = last.page_firsts.last().copied().unwrap_or(0);
                last.page_firsts.push(before.saturating_add(1));
            }
            (None, None) => {}
        }
    }
    for one in &mut carried {
        one.values = (one.page_firsts.len() * MAP_PAGE_VALUES) as u64; // at most
    }
    carried
}
