//! The tables of a store, by number and by name.

use std::sync::{Arc, Weak};

use folddb_base::limits::TABLE_NAME_BYTES_MAX;
use folddb_base::{Error, ErrorKind, FileNumber, OpKind, Result, Seq, SharedMap, TableId};
use folddb_host::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use folddb_host::sync::{RwLock, Swap};
use folddb_layout::manifest_edit::IndexBuild;
use folddb_memtable::{Memtable, MemtableLimits};
use folddb_rules::IndexRule;
use folddb_rules::table_rules::BoundRules;
use folddb_rules::table_rules::TableRules;
use folddb_rules::value_placement::ValuePlacement;
use folddb_rules::{Expire, Extractor, FoldRules, Keep, KeyOrder};

use crate::state::chunk_reads::ChunkReads;
use crate::state::counters::Counter;
use crate::state::empty_ranges::EmptyRanges;
use crate::state::hash_index::{Hashed, RecordsOf};
use crate::state::repeats::Repeats;
use crate::state::view::{PartFiles, TableView};

/// A table in the engine; handles of users point here.
pub struct TableCore {
    pub id: TableId,
    pub name: String,
    /// The rules as they were when it was opened: what its keys and values mean, which nothing
    /// changes. Those that may be altered meanwhile are read from [`TableCore::present`], or by the
    /// method of their name.
    pub rules: Arc<BoundRules>,
    /// The rules as they are now.
    present: Swap<BoundRules>,
    /// Held shared by whoever must see either all of an alteration or nothing of it.
    pub(crate) altering: RwLock<()>,
    /// Parts with lower numbers were written before a rule about parts was altered.
    outdated_before: AtomicU64,
    /// The fold of the rules, shared with memtables.
    pub fold: Arc<FoldRules>,
    /// Values of this many bytes and more are separated.
    separate_from: AtomicUsize,
    /// Whether they are, each in a file of its own.
    in_files: AtomicBool,
    /// Whether operands of that length are, too: if folding joins them without examining them.
    pub separates_operands: bool,
    /// Whether a value of it is dead as soon as a newer run has its key: nothing is folded, and no
    /// past is kept.
    has_one_value: bool,
    /// The index, if it is a hashed table, which has neither memtables nor runs.
    pub hashed: Option<Hashed>,
    /// Whether it keeps some of its past.
    pub keeps_past: bool,
    /// Whether its records have stamps.
    pub has_stamps: bool,
    /// Whether its values may expire, wherever their deadlines are stored.
    pub expires: bool,
    /// Whether it needs the time, for one of these reasons.
    pub is_timed: bool,
    /// Up to here the past of a table with a window was folded before the store was opened: after a
    /// crash, the map of times may know less than before. Or before the window was altered: what a
    /// shorter one did not keep is gone.
    folded_before: AtomicU64,
    /// No record in the active memtable was written before this time. Changed under the commit
    /// lock.
    pub active_since_ms: AtomicU64,
    /// Where scans have found nothing.
    pub empty_ranges: EmptyRanges,
    /// What merges free of the bytes that its runs repeat, and what gets have paid for runs that
    /// stay separate.
    pub repeats: Repeats,
    /// Whether its rules allow users to write to it: not to an index, and not if a function is not
    /// available.
    pub takes_writes: bool,
    /// Its indexes, by name.
    indexes: RwLock<Arc<Vec<Arc<IndexCore>>>>,
    /// The table that it is an index of, if it is one.
    owner: RwLock<Option<Owner>>,
    view: Swap<TableView>,
    dropped: AtomicBool,
    /// It has more range deletes than merges should have left: writers of range deletes wait a
    /// while.
    pub has_many_ranges: AtomicBool,
    /// What readers pay for the chunks of the active memtable.
    pub chunk_reads: ChunkReads,
    /// Records written to it, those of a replayed log included.
    pub records_written: Counter,
    /// Bytes of their keys and payloads.
    pub bytes_written: Counter,
}

/// An index of a table. Its entries are the keys of another table, which readers and writers reach
/// only through this.
pub struct IndexCore {
    pub name: String,
    /// How terms are taken; or which function is not available, in words.
    pub extractor: std::result::Result<Extractor, String>,
    /// The table of its entries.
    pub table: Arc<TableCore>,
    /// Its progress, as in the manifest.
    pub build: RwLock<IndexBuild>,
    /// Existing records of the table are being added to it.
    pub is_in_work: AtomicBool,
    /// How many entries queries have read since the index was last cleaned, and how many of them
    /// were stale.
    pub read: AtomicU64,
    pub stale: AtomicU64,
    /// No entry was stale at this seq: a merge has checked all of them.
    pub cleaned_at: AtomicU64,
}

impl IndexCore {
    /// The rule that it follows.
    pub fn rule(&self) -> Option<&IndexRule> {
        self.table.rules.rules.indexes.first()
    }

    /// Whether all existing records of the table are in it.
    pub fn is_built(&self) -> bool {
        self.build.read().building.is_none()
    }
}

/// Whose index a table is.
#[derive(Clone)]
struct Owner {
    table: Weak<TableCore>,
    index: Weak<IndexCore>,
}

impl TableCore {
    /// A table with the contents that the manifest lists, and an empty memtable.
    pub fn new(
        id: TableId,
        name: &str,
        rules: BoundRules,
        hashed: Option<Hashed>,
        view: impl FnOnce(Arc<Memtable>) -> TableView,
    ) -> TableCore {
        let rules = Arc::new(rules);
        let fold = Arc::new(rules.fold.clone());
        let (keeps_past, has_stamps) = (rules.rules.keep.keeps_past(), fold.has_stamps());
        let expires = rules.rules.expire.has_stamps();
        let active = new_memtable(&rules.order, &fold, keeps_past);
        let view = view(active);
        TableCore {
            id,
            name: name.to_owned(),
            takes_writes: rules.missing.is_none() && rules.rules.index_of.is_none(),
            separate_from: AtomicUsize::new(separate_from(&rules)),
            in_files: AtomicBool::new(rules.rules.value_placement == ValuePlacement::Files),
            present: Swap::new(Arc::clone(&rules)),
            rules,
            altering: RwLock::default(),
            outdated_before: AtomicU64::new(0),
            separates_operands: fold.joins().is_some(),
            has_one_value: fold.spec() == "replace" && !keeps_past,
            fold,
            hashed,
            keeps_past,
            has_stamps,
            expires,
            is_timed: keeps_past || expires,
            active_since_ms: AtomicU64::new(0),
            folded_before: AtomicU64::new(view.folded_up_to()),
            empty_ranges: EmptyRanges::default(),
            repeats: Repeats::default(),
            indexes: RwLock::default(),
            owner: RwLock::default(),
            view: Swap::new(Arc::new(view)),
            dropped: AtomicBool::new(false),
            has_many_ranges: AtomicBool::new(false),
            chunk_reads: ChunkReads::default(),
            records_written: Counter::default(),
            bytes_written: Counter::default(),
        }
    }

    /// The rules as they are now. A reader of one of them that may be altered sees it as it was at
    /// some moment of the call.
    pub fn present(&self) -> Arc<BoundRules> {
        self.present.load()
    }

    /// What the manifest says about alterations, when the table is opened and when it is altered.
    pub fn note_altered(&self, outdated_before: FileNumber, kept_since: Seq) {
        self.outdated_before.store(outdated_before.0, Ordering::Release);
        self.folded_before.fetch_max(kept_since, Ordering::AcqRel);
    }

    /// From now on these are its rules. They mean the same as the present ones; they are durable in
    /// the manifest; and the caller holds [`TableCore::altering`].
    pub(crate) fn set_rules(&self, rules: Arc<BoundRules>) {
        self.in_files.store(rules.rules.value_placement == ValuePlacement::Files, Ordering::Release);
        // Before any value is separated: a reader that meets one knows that there may be some.
        self.separate_from.store(separate_from(&rules), Ordering::Release);
        self.present.replace(|_| rules);
    }

    /// Whether the part with this number was written before a rule about parts was altered.
    pub fn is_outdated(&self, part: FileNumber) -> bool {
        part.0 < self.outdated_before.load(Ordering::Acquire)
    }

    /// Values of this many bytes and more are separated; the highest number if none are, and none
    /// ever were.
    #[inline]
    pub fn separate_from(&self) -> usize {
        self.separate_from.load(Ordering::Acquire)
    }

    /// Where separated values are put.
    #[inline]
    pub fn value_placement(&self) -> ValuePlacement {
        match self.in_files.load(Ordering::Acquire) {
            true => ValuePlacement::Files,
            false => ValuePlacement::Segments,
        }
    }

    /// Whether a value of it is dead as soon as a newer run has its key, and is separated: nothing
    /// is folded, and no past is kept.
    pub fn hides_values(&self) -> bool {
        self.has_one_value && self.separate_from() < usize::MAX
    }

    /// How long its values last.
    #[inline]
    pub fn expire(&self) -> Expire {
        if self.expires { self.present().rules.expire } else { Expire::Never }
    }

    /// How much of the past it keeps.
    pub fn keep(&self) -> Keep {
        match (self.keeps_past, &self.hashed) {
            (false, _) => Keep::Latest,
            (true, Some(_)) => self.rules.rules.keep, // that of a hashed table is never altered
            (true, None) => self.present().rules.keep,
        }
    }

    /// Up to here the past of a table with a window was folded, whatever the window is now.
    pub(crate) fn folded_before(&self) -> Seq {
        self.folded_before.load(Ordering::Acquire)
    }

    /// How many versions it keeps of a key.
    pub fn versions(&self) -> usize {
        match self.keep() {
            Keep::Versions(count) => count as usize,
            _ => 1,
        }
    }

    /// How its records in the value log are read, if it is hashed.
    pub fn records_of(&self) -> RecordsOf {
        RecordsOf { table: self.id, has_fronts: self.is_timed }
    }

    /// Whether the value of an op of this kind is separated if it is long enough.
    pub fn separates(&self, kind: OpKind) -> bool {
        match kind {
            OpKind::Set | OpKind::Insert => true,
            OpKind::Fold => self.separates_operands,
            _ => false,
        }
    }

    /// The present view.
    #[inline]
    pub fn view(&self) -> Arc<TableView> {
        self.view.load()
    }

    /// The present view, and what `look` finds in it while it stays the present one. If `look`
    /// loads the published seq, everything that is published is in that view: its memtables, its
    /// runs, and its range deletes up to that seq.
    #[inline]
    pub(crate) fn view_with<R>(
        &self,
        mut look: impl FnMut(&TableView) -> Result<R>,
    ) -> Result<(Arc<TableView>, R)> {
        loop {
            let (view, version) = self.view.load_with_version();
            let found = look(&view)?;
            if self.view.is_at(version) {
                return Ok((view, found));
            }
        }
    }

    /// Makes the next view from the present one and swaps it in.
    pub(crate) fn change_view(&self, next: impl FnOnce(&TableView) -> TableView) {
        self.view.replace(|view| Arc::new(next(view)));
    }

    /// Drops the contents of the view, even if handles of the table live on. Readers check that
    /// they may read *after* they have taken a view, so none takes this one for an empty table.
    pub fn let_go(&self) {
        let active = new_memtable(&self.rules.order, &self.fold, false);
        let empty =
            TableView { active, sealed: Vec::new(), runs: Arc::default(), range_deletes: Arc::default() };
        let before = self.view.replace(|_| Arc::new(empty));
        self.hashed.iter().for_each(Hashed::let_go);
        drop(before); // memtables and files may be dropped with it, which no reader should wait for
    }

    /// Its indexes.
    pub fn indexes(&self) -> Arc<Vec<Arc<IndexCore>>> {
        Arc::clone(&self.indexes.read())
    }

    /// Its rules, with the indexes that it has.
    pub fn rules_with_indexes(&self) -> TableRules {
        let rules = self.present().rules.clone();
        self.indexes().iter().filter_map(|index| index.rule().cloned()).fold(rules, TableRules::index)
    }

    /// The index of this name.
    pub fn index(&self, name: &str) -> Option<Arc<IndexCore>> {
        self.indexes.read().iter().find(|index| index.name == name).cloned()
    }

    /// Gives it other indexes. The caller ensures that writers look again: see
    /// [`crate::state::engine::Engine::index_epoch`].
    pub fn set_indexes(self: &Arc<TableCore>, mut indexes: Vec<Arc<IndexCore>>) {
        indexes.sort_by(|a, b| a.name.cmp(&b.name));
        for index in &indexes {
            let owner = Owner { table: Arc::downgrade(self), index: Arc::downgrade(index) };
            *index.table.owner.write() = Some(owner);
        }
        *self.indexes.write() = Arc::new(indexes);
    }

    /// The table that this is an index of, and the index; none if it is not an index, or they are
    /// gone.
    pub fn owner(&self) -> Option<(Arc<TableCore>, Arc<IndexCore>)> {
        let owner = self.owner.read().clone()?;
        Some((owner.table.upgrade()?, owner.index.upgrade()?))
    }

    /// Whether it is an index of another table.
    pub fn is_index(&self) -> bool {
        self.rules.rules.index_of.is_some()
    }

    /// Fails if users may not write to it.
    #[cold]
    pub(crate) fn check_takes_writes(&self) -> Result<()> {
        self.rules.check_writable()?;
        match &self.rules.rules.index_of {
            None => Ok(()),
            Some(of) => Err(Error::invalid(format!(
                "`{}` is an index: write to table `{of}`, and the index follows",
                self.name
            ))),
        }
    }

    /// Fails once the table is dropped.
    #[inline]
    pub fn check_alive(&self) -> Result<()> {
        if self.dropped.load(Ordering::Acquire) {
            return Err(Error::new(ErrorKind::Closed, format!("table `{}` has been dropped", self.name)));
        }
        Ok(())
    }

    /// From now on the table refuses every use.
    pub(crate) fn mark_dropped(&self) {
        self.dropped.store(true, Ordering::Release);
    }

    /// The part files of the present view.
    pub fn part_files(&self) -> PartFiles {
        let view = self.view();
        let parts = view.runs.iter().flat_map(|run| &run.parts);
        parts.map(|part| (part.file.number, Arc::clone(&part.file))).collect()
    }
}

/// From which length on values are separated under these rules. A value that may count as deleted
/// is examined again and again, and stays inline.
fn separate_from(rules: &BoundRules) -> usize {
    rules.rules.separate.filter(|_| !rules.fold.has_delete()).map_or(usize::MAX, |bytes| bytes as usize)
}

/// An empty memtable.
pub(crate) fn new_memtable(order: &KeyOrder, fold: &Arc<FoldRules>, keeps_all: bool) -> Arc<Memtable> {
    let limits = MemtableLimits { keeps_all, ..MemtableLimits::default() };
    Arc::new(Memtable::new(order.clone(), Arc::clone(fold), limits))
}

/// All tables. A clone shares them: the next catalog costs only its changes.
#[derive(Clone, Default)]
pub struct Catalog {
    by_name: SharedMap<Arc<str>, Arc<TableCore>>,
    by_id: SharedMap<TableId, Arc<TableCore>>,
    /// Those of them that are hashed.
    hashed: SharedMap<TableId, Arc<TableCore>>,
}

/// Most tables that an error names.
const NAMES_MAX: usize = 20;

impl Catalog {
    pub fn insert(&mut self, table: Arc<TableCore>) {
        self.by_name.insert(table.name.as_str().into(), Arc::clone(&table));
        if table.hashed.is_some() {
            self.hashed.insert(table.id, Arc::clone(&table));
        }
        self.by_id.insert(table.id, table);
    }

    pub fn remove(&mut self, table: &TableCore) {
        self.by_name.remove(table.name.as_str());
        self.by_id.remove(&table.id);
        self.hashed.remove(&table.id);
    }

    pub fn by_name(&self, name: &str) -> Option<&Arc<TableCore>> {
        self.by_name.get(name)
    }

    pub(crate) fn by_id(&self, id: TableId) -> Option<&Arc<TableCore>> {
        self.by_id.get(&id)
    }

    /// The hashed ones.
    pub fn hashed(&self) -> impl Iterator<Item = (&Arc<TableCore>, &Hashed)> {
        self.hashed.values().filter_map(|table| Some((table, table.hashed.as_ref()?)))
    }

    /// The tables, by name. There may be many: frequent work should ask only for those that it
    /// needs.
    pub fn all(&self) -> impl Iterator<Item = &Arc<TableCore>> + Clone {
        self.by_name.values()
    }

    /// The tables that users created, by name: all but indexes.
    pub fn own(&self) -> impl Iterator<Item = &Arc<TableCore>> {
        self.all().filter(|table| !table.is_index())
    }

    /// The table of this number, if a user created it.
    pub fn own_by_id(&self, id: TableId) -> Option<&Arc<TableCore>> {
        self.by_id(id).filter(|table| !table.is_index())
    }

    /// The error for an unknown name, with the existing names.
    pub fn unknown(&self, name: &str) -> Error {
        let names: Vec<&str> = self.own().map(|table| table.name.as_str()).take(NAMES_MAX + 1).collect();
        let has = match names.get(..NAMES_MAX) {
            _ if names.is_empty() => "it has no tables yet".to_owned(),
            Some(first) if names.len() > NAMES_MAX => format!("it has {} and others", first.join(", ")),
            _ => format!("it has {}", names.join(", ")),
        };
        Error::new(ErrorKind::TableNotFound, format!("the store has no table `{name}`; {has}"))
    }
}

pub fn check_name(name: &str) -> Result<()> {
    let fits = !name.is_empty() && name.len() <= TABLE_NAME_BYTES_MAX && !name.chars().any(char::is_control);
    if fits {
        return Ok(());
    }
    Err(Error::invalid(format!(
        "a table's name has 1 to {TABLE_NAME_BYTES_MAX} bytes and no control characters; {name:?} does not fit"
    )))
}
