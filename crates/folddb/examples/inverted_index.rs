//! An inverted index, as osmos' users wanted one: the words of a tree of text files, each with the
//! files that contain it.
//!
//! `cargo run --release -p folddb --example inverted_index -- CORPUS STORE [WORD...]`
//!
//! `CORPUS` is a directory, for example the sources that cargo has fetched
//! (`~/.cargo/registry/src`). `STORE` is rebuilt.
//!
//! A word is a key, its value the set of numbers of files, and indexing a file folds `{number}`
//! into each of its words: nothing is read for it, and the same word in a million files costs a
//! million appends. The same index is then built twice more by straightforward programs, and all
//! three must agree: one reads the set of each word, adds to it and writes it back to a table, the
//! other keeps a map in memory, and is limited by that. Finally it searches for files with all the
//! given words, for all words with the beginning of the first one, and for a range of words.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use folddb::folds::Bitmap;
use folddb::{Durability, Options, Result, Rules, Store, Table};

/// Longer files count as data.
const FILE_BYTES_MAX: u64 = 1 << 20;

type Terms = Table<String, Bitmap>;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let (Some(corpus), Some(dir)) = (args.next().map(PathBuf::from), args.next().map(PathBuf::from)) else {
        eprintln!("usage: inverted_index CORPUS STORE [WORD...]");
        std::process::exit(2);
    };
    let words: Vec<String> = args.map(|word| word.to_lowercase()).collect();
    index(&corpus, &dir, &words)
}

/// Indexes the files below a directory in three ways, compares them, and searches for words.
pub(crate) fn index(corpus: &Path, dir: &Path, words: &[String]) -> Result<()> {
    let mut files = Vec::new();
    collect(corpus, &mut files);
    files.sort();

    let store = Store::create(dir, Options::default().memory_bytes(32 << 20))?;
    let names = store.table("files", Rules::sorted::<u32, String>())?;
    let terms = store.table("terms", Rules::sorted::<String, Bitmap>().fold("bitmap"))?;
    let plain = store.table("read, add, write", Rules::sorted::<String, Vec<u8>>())?;

    let mut map: BTreeMap<String, BTreeSet<u32>> = BTreeMap::new();
    let mut took = [Duration::ZERO; 4];
    let (mut bytes, mut postings, mut indexed) = (0, 0, 0);
    for (number, path) in (0u32..).zip(&files) {
        let Ok(text) = fs::read_to_string(path) else { continue };
        let before = Instant::now();
        let found = words_of(&text);
        took[0] += before.elapsed();
        (bytes, postings, indexed) = (bytes + text.len(), postings + found.len(), indexed + 1);
        names.put(&number, &path.display().to_string())?;
        took[1] += timed(|| fold_in(&store, &terms, number, &found))?;
        took[2] += timed(|| read_add_write(&plain, number, &found))?;
        took[3] += timed(|| {
            for word in &found {
                map.entry(word.clone()).or_default().insert(number);
            }
            Ok(())
        })?;
    }
    took[1] += timed(|| store.settle())?;

    println!("{indexed} files, {bytes} bytes, {} words, {postings} postings", map.len());
    for (what, took) in ["finding words", "folding", "read, add, write", "map in memory"].iter().zip(took) {
        println!("{what:18} {:8.3} s  {:6.0} ns a posting", took.as_secs_f64(), per(took, postings));
    }
    assert_same(&terms, &plain, &map)?;
    println!("all three hold the same");
    search(&terms, &names, words)?;
    store.close()
}

fn per(took: Duration, count: usize) -> f64 {
    took.as_nanos() as f64 / count.max(1) as f64
}

fn timed(work: impl FnOnce() -> Result<()>) -> Result<Duration> {
    let before = Instant::now();
    work().map(|()| before.elapsed())
}

/// All files below a directory that are not too long.
fn collect(dir: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => collect(&entry.path(), into),
            Ok(kind) if kind.is_file() && entry.metadata().is_ok_and(|meta| meta.len() <= FILE_BYTES_MAX) => {
                into.push(entry.path());
            }
            _ => {}
        }
    }
}

/// The words of a text: letters, digits and underscores, at least three of them, in lower case,
/// each once.
fn words_of(text: &str) -> BTreeSet<String> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    let words = text.split(|letter| !is_letter(letter)).filter(|word| word.len() >= 3 && word.len() <= 64);
    words.map(str::to_lowercase).collect()
}

/// One batch per file: either all of its words find it, or none.
fn fold_in(store: &Store, terms: &Terms, number: u32, words: &BTreeSet<String>) -> Result<()> {
    let (mut batch, here) = (store.batch(), Bitmap::of(number));
    for word in words {
        batch.fold(terms, word, &here);
    }
    batch.commit(Durability::Process).map(drop)
}

/// The same without a fold.
fn read_add_write(plain: &Table<String, Vec<u8>>, number: u32, words: &BTreeSet<String>) -> Result<()> {
    for word in words {
        let set = plain.get(word)?.and_then(|bytes| Bitmap::from_bytes(&bytes).ok());
        let before = set.iter().flat_map(Bitmap::iter);
        let set: Bitmap = before.chain([number]).collect();
        plain.put(word, &set.to_bytes())?;
    }
    Ok(())
}

fn assert_same(
    terms: &Terms,
    plain: &Table<String, Vec<u8>>,
    map: &BTreeMap<String, BTreeSet<u32>>,
) -> Result<()> {
    let mut kept = map.iter();
    for (folded, written) in terms.scan().into_iter().zip(plain.scan()) {
        let ((word, folded), (also, written)) = (folded?, written?);
        let (known, files) = kept.next().expect("no word too many");
        assert_eq!((&word, &also), (known, known));
        assert!(folded.iter().eq(files.iter().copied()), "the files of {word}");
        assert_eq!(folded.to_bytes(), written, "the files of {word}");
    }
    assert!(kept.next().is_none(), "no word too few");
    Ok(())
}

fn search(terms: &Terms, names: &Table<u32, String>, words: &[String]) -> Result<()> {
    let Some(first) = words.first() else { return Ok(()) };
    let before = Instant::now();
    let mut sets = Vec::new();
    for word in words {
        sets.push(terms.get(word)?.unwrap_or_else(|| Bitmap::from_iter([])));
    }
    sets.sort_by_key(Bitmap::len);
    let (rarest, others) = sets.split_first().expect("there is a word");
    let hits: Vec<u32> = rarest.iter().filter(|file| others.iter().all(|set| set.contains(*file))).collect();
    println!("{}: {} files in {:?}", words.join(" and "), hits.len(), before.elapsed());
    for number in hits.iter().take(3) {
        println!("  {}", names.get(number)?.unwrap_or_default());
    }

    let before = Instant::now();
    let (mut begun, mut files) = (0, BTreeSet::new());
    for row in terms.scan().prefix(first) {
        begun += 1;
        files.extend(row?.1.iter());
    }
    println!("{first}*: {begun} words in {} files in {:?}", files.len(), before.elapsed());

    let last = words.iter().max().expect("there is a word");
    let from = words.iter().min().expect("there is a word");
    let before = Instant::now();
    let between = terms.scan().from(from).through(last).count()?;
    println!("{from} to {last}: {between} words in {:?}", before.elapsed());
    Ok(())
}
