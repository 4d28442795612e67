//! The content of `docs/FORMAT.md`, from its fences: offsets, constants, the fields of changes,
//! examples.
//!
//! A fence that does not parse as its kind requires is a failure. So no line that the tests cannot
//! see seems to be tested.

use std::collections::BTreeMap;
use std::path::PathBuf;

/// The document.
pub(crate) struct Document {
    text: String,
    constants: BTreeMap<String, u64>,
    layouts: BTreeMap<String, Layout>,
}

/// Fields of fixed length, one after the other.
pub(crate) struct Layout {
    name: String,
    fields: Vec<(String, usize, usize)>,
}

/// The fields of a change, or of a group: name and type.
pub(crate) type Fields = Vec<(String, String)>;

fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/FORMAT.md")
}

impl Document {
    pub(crate) fn read() -> Document {
        let text = std::fs::read_to_string(path()).expect("docs/FORMAT.md is there");
        let mut doc = Document { text, constants: BTreeMap::new(), layouts: BTreeMap::new() };
        doc.constants = doc.read_constants();
        doc.layouts = doc.read_layouts();
        doc
    }

    /// The lines of all fences with this word, and the text after the word.
    fn fences(&self, word: &str) -> Vec<(String, Vec<&str>)> {
        let mut fences: Vec<(String, Vec<&str>)> = Vec::new();
        let mut open = None;
        for line in self.text.lines() {
            match (line.strip_prefix("```"), open) {
                (Some(info), None) => {
                    let (kind, name) = info.split_once(' ').unwrap_or((info, ""));
                    if kind == word {
                        fences.push((name.to_owned(), Vec::new()));
                    }
                    open = Some(kind == word);
                }
                (Some(_), Some(_)) => open = None,
                (None, Some(true)) => fences.last_mut().expect("a fence is open").1.push(line),
                (None, _) => {}
            }
        }
        assert!(!fences.is_empty(), "the document has a fence of {word}");
        fences
    }

    fn read_constants(&self) -> BTreeMap<String, u64> {
        let mut constants = BTreeMap::new();
        for line in self.fences("constants").iter().flat_map(|(_, lines)| lines) {
            let (name, value) = line.split_once('=').unwrap_or_else(|| panic!("`{line}` is no constant"));
            let value = value.trim();
            let number = match value.strip_prefix("0x") {
                Some(hex) => u64::from_str_radix(hex, 16).expect("a hexadecimal number"),
                None => value.parse().expect("a number"),
            };
            assert!(constants.insert(name.trim().to_owned(), number).is_none(), "`{line}` is said twice");
        }
        constants
    }

    fn read_layouts(&self) -> BTreeMap<String, Layout> {
        let fences = self.fences("fields").into_iter();
        fences.map(|(name, lines)| (name.clone(), Layout::read(name, &lines))).collect()
    }

    /// The constant of this name.
    pub(crate) fn constant(&self, name: &str) -> u64 {
        *self.constants.get(name).unwrap_or_else(|| panic!("the document has no constant {name}"))
    }

    /// The names of all constants that begin with this.
    pub(crate) fn constants_of(&self, prefix: &str) -> impl Iterator<Item = (&str, u64)> {
        let begin = move |(name, _): &(&String, &u64)| name.starts_with(prefix);
        self.constants.iter().filter(begin).map(|(name, value)| (name.as_str(), *value))
    }

    /// The names of all layouts.
    pub(crate) fn layout_names(&self) -> impl Iterator<Item = &str> {
        self.layouts.keys().map(String::as_str)
    }

    /// The names of files in the table of the directory, as they are written there.
    pub(crate) fn file_names(&self) -> Vec<&str> {
        let rows = self.text.lines().skip_while(|line| !line.starts_with("| file |")).skip(2);
        let rows = rows.take_while(|line| line.starts_with('|'));
        rows.map(|row| row.split('`').nth(1).expect("a name in backticks")).collect()
    }

    /// The layout of this name.
    pub(crate) fn layout(&self, name: &str) -> &Layout {
        self.layouts.get(name).unwrap_or_else(|| panic!("the document has no fields {name}"))
    }

    /// The changes of a manifest by tag, and the groups by name.
    pub(crate) fn changes(&self) -> (BTreeMap<u8, (String, Fields)>, BTreeMap<String, Fields>) {
        let (mut changes, mut groups) = (BTreeMap::new(), BTreeMap::new());
        for line in self.fences("changes").iter().flat_map(|(_, lines)| lines) {
            let mut words = line.split_whitespace();
            let (tag, name) = (words.next().expect("a tag"), words.next().expect("a name").to_owned());
            let fields = words.map(|word| word.split_once(':').expect("name:type"));
            let fields = fields.map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect();
            match tag.parse() {
                Ok(tag) => assert!(changes.insert(tag, (name, fields)).is_none(), "tag {tag} twice"),
                Err(_) => assert!(groups.insert(name, fields).is_none(), "a group twice"),
            }
        }
        (changes, groups)
    }

    /// The examples: their labels, and the bytes as hexadecimal text.
    pub(crate) fn examples(&self) -> Vec<(String, String)> {
        let fences = self.fences("bytes");
        let lines = fences.iter().flat_map(|(_, lines)| lines);
        let example = |line: &&str| {
            let (label, hex) = line.rsplit_once('|').unwrap_or_else(|| panic!("`{line}` is no example"));
            (label.trim().to_owned(), hex.trim().to_owned())
        };
        lines.map(example).collect()
    }

    /// Puts these bytes into the example with this label.
    pub(crate) fn mend(&mut self, label: &str, hex: &str) {
        let mended = self.text.lines().map(|line| match line.rsplit_once('|') {
            Some((left, _)) if left.trim() == label => format!("{left}| {hex}"),
            _ => line.to_owned(),
        });
        self.text = mended.collect::<Vec<_>>().join("\n") + "\n";
    }

    pub(crate) fn save(&self) {
        std::fs::write(path(), &self.text).expect("docs/FORMAT.md can be written");
    }
}

fn length_of(kind: &str) -> usize {
    match kind {
        "u8" => 1,
        "u16" => 2,
        "u32" => 4,
        "u64" => 8,
        "u128" => 16,
        _ => {
            let inner = kind.strip_prefix("bytes[").and_then(|rest| rest.strip_suffix(']'));
            inner.and_then(|len| len.parse().ok()).unwrap_or_else(|| panic!("no type: {kind}"))
        }
    }
}

impl Layout {
    fn read(name: String, lines: &[&str]) -> Layout {
        let mut layout = Layout { name, fields: Vec::new() };
        for line in lines {
            let mut words = line.split_whitespace();
            let (Some(offset), Some(field), Some(kind)) = (words.next(), words.next(), words.next()) else {
                panic!("{}: `{line}` is not: offset name type", layout.name);
            };
            let offset: usize = offset.parse().expect("an offset");
            assert_eq!(offset, layout.len(), "{}.{field} begins where the field before ends", layout.name);
            layout.fields.push((field.to_owned(), offset, length_of(kind)));
        }
        layout
    }

    /// Bytes of all fields.
    pub(crate) fn len(&self) -> usize {
        self.fields.last().map_or(0, |(_, offset, len)| offset + len)
    }

    /// Where a field begins.
    pub(crate) fn offset(&self, field: &str) -> usize {
        self.field(field).0
    }

    fn field(&self, field: &str) -> (usize, usize) {
        let found = self.fields.iter().find(|(name, _, _)| name == field);
        let (_, offset, len) = found.unwrap_or_else(|| panic!("{} has no field {field}", self.name));
        (*offset, *len)
    }

    /// The bytes of a field.
    pub(crate) fn bytes<'a>(&self, bytes: &'a [u8], field: &str) -> &'a [u8] {
        let (offset, len) = self.field(field);
        &bytes[offset..offset + len]
    }

    /// The number in a field, little-endian.
    pub(crate) fn wide(&self, bytes: &[u8], field: &str) -> u128 {
        self.bytes(bytes, field).iter().rev().fold(0, |number, byte| number << 8 | u128::from(*byte))
    }

    /// The number in a field of at most 8 bytes.
    pub(crate) fn number(&self, bytes: &[u8], field: &str) -> u64 {
        u64::try_from(self.wide(bytes, field)).expect("a field of at most 8 bytes")
    }
}
