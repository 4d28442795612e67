//! The position of the feed in the manifest, which is read repeatedly.

use folddb_base::{Error, ErrorKind, Lsn, Result, Seq};
use folddb_journal::follow::Follower;
use folddb_manifest::{ArchivedLog, FeedState};

use crate::feed::secondary::manifest::SeenManifest;
use crate::feed::secondary::reader::{BEGIN_AGAIN, SecondaryFeed};
use folddb_engine::edit::feeds::lost_error;

/// The result of a check of the manifest.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum ManifestCheck {
    Same,
    Changed,
    /// The follower was moved to the position of the feed: the end of the log was rewritten, or the
    /// feed has moved on.
    Elsewhere,
}

/// Reads the manifest if it has changed, or if forced.
pub(crate) fn check_manifest(feed: &mut SecondaryFeed, is_forced: bool) -> Result<ManifestCheck> {
    let before = feed.manifest.length(&feed.host, &feed.dir);
    if !is_forced && before.is_some() && before == feed.manifest.len_bytes {
        return Ok(ManifestCheck::Same);
    }
    let seen = SeenManifest::read(&feed.host, &feed.dir, Some((feed.manifest.number, before)))?;
    let known = std::mem::replace(&mut feed.manifest, seen);
    let now = &feed.manifest;
    if (now.number, now.edits) == (known.number, known.edits) {
        return Ok(ManifestCheck::Same);
    }
    let is_new = |archived: &ArchivedLog| !known.state.feeds.archived().contains(archived);
    let is_rewritten = now.state.feeds.archived().iter().any(is_new);
    if now.state.store_id != known.state.store_id {
        let why = format!("there is another store in {} now", feed.dir.display());
        return Err(Error::new(ErrorKind::FeedLost, why).advise(BEGIN_AGAIN));
    }
    let stands = take_state(feed)?;
    // A feed without changes moves on over places without batches, and releases their files.
    if is_rewritten || stands.lsn > feed.follower.lsn() {
        go_to(feed, &stands);
        return Ok(ManifestCheck::Elsewhere);
    }
    Ok(ManifestCheck::Changed)
}

/// Takes over the manifest's state of the feed, and of tables; returns that of the feed.
pub(crate) fn take_state(feed: &mut SecondaryFeed) -> Result<FeedState> {
    let feeds = &feed.manifest.state.feeds;
    let stands = feeds.get(&feed.name);
    let Some(stands) = stands.filter(|feed| feed.holds()).cloned() else {
        return Err(lost_error(&feed.name, stands).advise(BEGIN_AGAIN));
    };
    if stands.seq > feed.place.seq || stands.note > feed.place.note {
        let why = format!(
            "feed `{}` was also read by another consumer, which has acknowledged it up to seq {}, or was recreated; this reader is at {}",
            feed.name, stands.seq, feed.place.seq
        );
        let advice = "read it by one consumer, or use two feeds; if it was recreated, begin with its rows";
        return Err(Error::new(ErrorKind::Locked, why).advise(advice));
    }
    if stands.seq == feed.place.seq {
        feed.unacknowledged_bytes = 0;
        feed.place.lsn = stands.lsn; // the log at the earlier place may have been rewritten since
    }
    let acknowledged = feed.given.partition_point(|(seq, _)| *seq <= stands.seq);
    feed.given.drain(..acknowledged);
    feed.given_after = feed.given_after.max(stands.seq);
    feed.notes = feeds.notes_after(feed.place.note).cloned().collect();
    feed.values = None;
    Ok(stands)
}

/// Follows from the position of the feed, which stays a place in the log even if the rest is
/// rewritten.
fn go_to(feed: &mut SecondaryFeed, stands: &FeedState) {
    follow_from(feed, stands.lsn, stands.seq);
}

fn follow_from(feed: &mut SecondaryFeed, lsn: Lsn, seq: Seq) {
    feed.follower = Follower::at(&feed.host, &feed.dir, lsn);
    feed.followed_seq = seq;
    feed.files.clear();
    feed.next = None;
}

/// Checks everything again after an inconsistency.
pub(crate) fn begin_again(feed: &mut SecondaryFeed) -> Result<()> {
    let is_passing_over = feed.followed_seq < feed.place.seq;
    let check = check_manifest(feed, true)?;
    let stands = take_state(feed)?;
    if check == ManifestCheck::Elsewhere || is_passing_over || stands.lsn > feed.place.lsn {
        go_to(feed, &stands);
    } else {
        let (lsn, seq) = (feed.place.lsn, feed.place.seq);
        follow_from(feed, lsn, seq);
    }
    Ok(())
}
