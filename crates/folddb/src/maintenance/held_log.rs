//! Checks the part of the log before the start of a replay, which only feeds and archived logs
//! hold.
//!
//! ```text
//!   log   | seg | kept | seg | seg | seg ...
//!          ^ feed `f`   ^ table `t` archives   ^ a replay begins
//! ```
//!
//! Damage in it costs the tables nothing. It costs a feed the changes that it has not given yet,
//! and a table the log from which its runs can be rebuilt. Called by `verify` and `repair`.

use std::collections::BTreeMap;
use std::path::Path;

use folddb_base::{Error, Lsn, Result, TableId};
use folddb_host::Host;
use folddb_journal::follow::{Follower, HistoryFile};
use folddb_layout::file_name::FileName;
use folddb_layout::frame::{self, FrameRecord};
use folddb_manifest::{FeedState, State, TableState};
use folddb_run::Depth;

use crate::maintenance::finding::{Finding, Misfits};
use crate::maintenance::survey::in_words;
use folddb_engine::edit::feeds::history_in;
use folddb_engine::edit::log_archive::archived_log;
use folddb_engine::values::at_rest::ValuesAtRest;
use folddb_engine::values::load::rope_of;

/// Who holds the log.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Holders {
    /// Feeds, and tables that archive their logs.
    All,
    /// Feeds only.
    Feeds,
}

/// The damage in the held log, up to the start of a replay, which reads the rest: missing files,
/// and at the depth of records, damage in any batch.
///
/// # Errors
/// A directory that cannot be listed.
pub(crate) fn damage_of_held_log(
    host: &Host,
    dir: &Path,
    state: &State,
    values: &ValuesAtRest<'_>,
    (holders, depth): (Holders, Depth),
) -> Result<Vec<Finding>> {
    let walk = HeldLog::of(dir, state, values, holders);
    let Some(from_lsn) = walk.begin_lsn() else { return Ok(Vec::new()) };
    let files = history_in(host, dir, state)?;
    Ok(match depth {
        Depth::Index => walk.missing(&files, from_lsn, state.log_start_lsn),
        Depth::Records => walk.read(host, &files, from_lsn, state.log_start_lsn),
    })
}

/// Notes that the new store of a repair has no feeds.
pub(crate) fn feeds_left_out(state: &State, file: &str) -> Vec<Finding> {
    let feeds = state.feeds.holding().filter(|feed| !feed.is_archive());
    let note = |name: &str| {
        let what = format!(
            "feed `{name}` is not in the new store, nor are the changes that it has not delivered yet: begin it there, \
             with the present rows"
        );
        Finding::note(file, what)
    };
    feeds.map(|feed| note(&feed.name)).collect()
}

/// Where the next file of the log after a place begins.
fn next_file(files: &[HistoryFile], lsn: Lsn) -> Option<Lsn> {
    files.iter().map(|file| file.first_lsn).find(|first_lsn| *first_lsn > lsn)
}

/// A check of the log that is held.
struct HeldLog<'a> {
    dir: &'a Path,
    /// The tables with archived logs, and where these begin.
    tables: BTreeMap<TableId, (String, Lsn)>,
    /// The feeds, and where they are.
    feeds: Vec<&'a FeedState>,
    /// The names of tables, also of dropped ones that a feed may have to give.
    names: BTreeMap<TableId, &'a str>,
    values: &'a ValuesAtRest<'a>,
}

/// What is wrong with the records that a kind of holder needs.
#[derive(Default)]
struct Wrong {
    misfits: Misfits,
    /// The end of the last batch with such a record.
    through_lsn: Lsn,
}

impl Wrong {
    fn misfits_at(&mut self, end_lsn: Lsn) -> &mut Misfits {
        self.through_lsn = end_lsn;
        &mut self.misfits
    }

    /// A finding for each file.
    fn findings(self) -> impl Iterator<Item = Finding> {
        self.misfits.findings().map(|(finding, _)| finding)
    }
}

impl<'a> HeldLog<'a> {
    fn of(dir: &'a Path, state: &'a State, values: &'a ValuesAtRest<'a>, holders: Holders) -> HeldLog<'a> {
        let archived = |table: &TableState| {
            Some((table.id, (table.name.clone(), archived_log(state, &table.name)?.lsn)))
        };
        let tables = state.tables.values().filter(|_| holders == Holders::All).filter_map(archived).collect();
        let feeds = state.feeds.holding().filter(|feed| !feed.is_archive()).collect();
        let noted = state.feeds.notes().map(|note| (note.table, &note.name[..]));
        let living = state.tables.values().map(|table| (table.id, &table.name[..]));
        HeldLog { dir, tables, feeds, names: noted.chain(living).collect(), values }
    }

    fn begin_lsn(&self) -> Option<Lsn> {
        self.tables.values().map(|(_, lsn)| *lsn).chain(self.feeds.iter().map(|feed| feed.lsn)).min()
    }

    /// Whether a table that archives its log can be rebuilt from this record only.
    fn is_archived(&self, record: &FrameRecord<'_>, end_lsn: Lsn) -> bool {
        self.tables.get(&record.table).is_some_and(|(_, from_lsn)| *from_lsn < end_lsn)
    }

    /// Whether a feed has still to give this record.
    fn is_owed(&self, record: &FrameRecord<'_>, end_lsn: Lsn) -> bool {
        let name = self.names.get(&record.table);
        self.feeds.iter().any(|feed| {
            feed.lsn < end_lsn
                && record.key.starts_with(&feed.prefix)
                && (feed.table.is_empty() || name.is_none_or(|name| *name == feed.table))
        })
    }

    /// The places that no file has.
    fn missing(&self, files: &[HistoryFile], from_lsn: Lsn, to_lsn: Lsn) -> Vec<Finding> {
        let (mut lsn, mut findings) = (from_lsn, Vec::new());
        while lsn < to_lsn {
            let file = files.iter().find(|file| file.covers(lsn));
            let next = file.map_or_else(|| next_file(files, lsn).unwrap_or(to_lsn), |file| file.next_lsn);
            // A listed file that does not exist has no bytes.
            if file.is_none_or(|file| file.file_bytes == 0) {
                let name = file.map_or_else(|| "the log".to_owned(), name_of);
                let what = format!("nothing has the log from LSN {lsn} to {}", next.min(to_lsn));
                findings.push(self.with_costs(Finding::damage(name, None, what), next.min(to_lsn)));
            }
            lsn = next;
        }
        findings
    }

    /// Reads all of it, also after damage.
    fn read(&self, host: &Host, files: &[HistoryFile], from_lsn: Lsn, to_lsn: Lsn) -> Vec<Finding> {
        let (mut findings, mut archived, mut owed) = (Vec::new(), Wrong::default(), Wrong::default());
        let file_at = |lsn: Lsn| files.iter().find(|file| file.covers(lsn)).copied();
        let mut follower = Follower::at(host, self.dir, from_lsn);
        loop {
            let file = file_at(follower.lsn());
            match follower.next(to_lsn, &file_at) {
                Ok(None) => break,
                Ok(Some(batch)) => {
                    // Marks and seals before it were skipped.
                    let file = file_at(batch.end_lsn.saturating_sub(1)).or(file);
                    self.batch(batch.end_lsn, file.as_ref(), batch.payload, (&mut archived, &mut owed));
                }
                Err(error) => {
                    let next = next_file(files, follower.lsn());
                    findings.push(self.hole(&error, next.unwrap_or(to_lsn)));
                    // The rest is examined, too.
                    let Some(next) = next else { break };
                    follower = Follower::at(host, self.dir, next);
                }
            }
        }
        let (of_tables, of_feeds) = (archived.through_lsn, owed.through_lsn);
        findings.extend(archived.findings().map(|finding| self.costing_tables(finding, of_tables)));
        findings.extend(owed.findings().map(|finding| self.costing_feeds(finding, of_feeds)));
        findings
    }

    /// Checks a batch that ends there, and every separated value that its records lead to: a value
    /// may be live in no table, and still be needed here.
    fn batch(
        &self,
        end_lsn: Lsn,
        file: Option<&HistoryFile>,
        payload: &[u8],
        (archived, owed): (&mut Wrong, &mut Wrong),
    ) {
        let own_file = file.map_or_else(|| "the log".to_owned(), name_of);
        for record in frame::records(payload) {
            let record = match record {
                Ok(record) => record,
                Err(cause) => {
                    let what = format!("the batch before LSN {end_lsn}: {cause}");
                    if self.tables.values().any(|(_, lsn)| *lsn < end_lsn) {
                        archived.misfits_at(end_lsn).add(&own_file, None, None, what.clone());
                    }
                    if self.feeds.iter().any(|feed| feed.lsn < end_lsn) {
                        owed.misfits_at(end_lsn).add(&own_file, None, None, what);
                    }
                    return;
                }
            };
            let (is_archived, is_owed) = (self.is_archived(&record, end_lsn), self.is_owed(&record, end_lsn));
            let rope = rope_of(&record).filter(|_| is_archived || is_owed);
            for pointer in rope.iter().flat_map(|rope| rope.pointers()) {
                let Err(error) = self.values.piece((record.table, record.key), &pointer) else { continue };
                let add = |wrong: &mut Wrong, said| {
                    let misfits = wrong.misfits_at(end_lsn);
                    misfits.add_value(self.dir, &own_file, record.key, &error, said);
                };
                if is_archived {
                    add(archived, "a value that the archived log leads to");
                }
                if is_owed {
                    add(owed, "a value that a feed has not delivered yet");
                }
            }
        }
    }

    /// A place before `next_lsn` that cannot be read.
    fn hole(&self, error: &Error, next_lsn: Lsn) -> Finding {
        let file = error.damage().and_then(|damage| damage.file.file_name());
        let file = file.map_or_else(|| "the log".to_owned(), |name| name.to_string_lossy().into_owned());
        let offset = error.damage().and_then(|damage| damage.offset);
        self.with_costs(Finding::damage(file, offset, in_words(error)), next_lsn)
    }

    /// The finding for damage before `next_lsn`, with what it costs.
    fn with_costs(&self, finding: Finding, next_lsn: Lsn) -> Finding {
        self.costing_feeds(self.costing_tables(finding, next_lsn), next_lsn)
    }

    /// The finding with the tables that damage before this place costs something.
    fn costing_tables(&self, mut finding: Finding, next_lsn: Lsn) -> Finding {
        let hit = self.tables.values().filter(|(_, lsn)| *lsn < next_lsn);
        finding.archives.extend(hit.map(|(name, _)| name.clone()));
        if let Some(tables) = quoted(&finding.archives) {
            finding.what += &format!(
                ": the runs of tables that archive their logs ({tables}) can no longer be rebuilt from it"
            );
        }
        finding
    }

    /// The finding with the feeds that damage before this place costs something.
    fn costing_feeds(&self, mut finding: Finding, next_lsn: Lsn) -> Finding {
        let hit = self.feeds.iter().filter(|feed| feed.lsn < next_lsn);
        finding.feeds.extend(hit.map(|feed| feed.name.clone()));
        if let Some(feeds) = quoted(&finding.feeds) {
            finding.what += &format!(
                ": feeds that have not delivered what is there ({feeds}) lose their places; begin them again, with the \
                 present rows"
            );
        }
        finding
    }
}

/// Names in backticks; none if there are none.
fn quoted(names: &[String]) -> Option<String> {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    Some(names.join(", ")).filter(|names| !names.is_empty())
}

fn name_of(file: &HistoryFile) -> String {
    let name = if file.is_archived { FileName::ArchivedLog(file.number) } else { FileName::Log(file.number) };
    name.to_string()
}
