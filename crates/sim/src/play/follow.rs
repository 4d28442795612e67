//! A player's consumer of a change feed. Its state outlives the processes of the store, as that of
//! a consumer elsewhere does: after a crash it continues from its last acknowledgment.
//!
//! Another one reads the same feed next to the store, from the last acknowledgment on. It lives on
//! while the store is closed, dropped and opened again, up to a crash: it sees each batch once,
//! also across changes by the writer. If the feed was dropped and created again under its name, it
//! gets an error, and follows no feed other than its own.

use folddb::{ErrorKind, FeedOptions, Store};

use crate::compare::{Outcome, same};
use crate::play::parts::Consumer;
use crate::play::player::{Player, name_of, said};
use crate::program::{Follow, FollowSecondary};
use crate::replica::Told;

const NAME: &str = "follower";

/// The default budget of feeds.
const BYTES_MAX: u64 = 1 << 30;

/// Never are more events pending.
const EVENTS_MAX: usize = 1_000_000;

impl Player {
    /// Takes the events of the feed, as far as the action says; at its end, the consumer has the
    /// contents of the store.
    pub(super) fn follow(&mut self, follow: &Follow) -> Outcome {
        let most = follow.events.map_or(EVENTS_MAX, usize::from);
        if follow.renews && self.consumer.feed.is_some() {
            self.drop_feed()?;
        }
        if !self.open_feed()? {
            return Ok(());
        }
        let may_be_lost = self.feed_may_be_lost();
        self.consumer.has_raced = true;
        for _ in 0..most {
            let consumer = &mut self.consumer;
            let Some(feed) = &mut consumer.feed else { return Ok(()) };
            match feed.poll() {
                Ok(Some(event)) => consumer.replica.take(event, &consumer.shapes)?,
                Ok(None) => {
                    self.tell_time();
                    let (replica, told) = (&self.consumer.replica, self.told());
                    replica.compare(&self.known.model, &told)?;
                    break;
                }
                Err(error) if error.kind() == ErrorKind::FeedLost && may_be_lost => {
                    if let Err(error) = feed.begin_again() {
                        return self.refused("begin a feed again", error);
                    }
                }
                Err(error) => {
                    consumer.feed = None; // the next one continues at the place of this one
                    return self.refused("read the feed", error);
                }
            }
        }
        if follow.acknowledges { self.acknowledge() } else { Ok(()) }
    }

    /// The scope of the feed.
    fn told(&self) -> Told {
        let shape = self.settings.feed;
        Told { table: shape.table.map(name_of), prefix: shape.prefix.to_vec() }
    }

    /// Whether there may be a feed that reports the table of a slot.
    pub(super) fn feed_tells_of(&self, slot: u8) -> bool {
        self.consumer.has_met_feed && self.settings.feed.table.is_none_or(|only| only == slot)
    }

    /// The disk was full once, or the budget is no more than a program may write.
    fn feed_may_be_lost(&self) -> bool {
        self.consumer.may_be_lost || self.settings.feed.bytes_max.is_some_and(|bytes| bytes < u64::MAX)
    }

    /// The feed that was opened has the budget that was asked for.
    fn check_budget(&self) -> Outcome {
        let feeds = self.store()?.feeds();
        let found = feeds.iter().find(|feed| feed.name == NAME).map(|feed| feed.bytes_max);
        same("the budget of the feed", &found, &Some(self.settings.feed.bytes_max.unwrap_or(BYTES_MAX)))
    }

    /// Drops the feed, which is made again when it is opened next. Its reader next to the store is
    /// not asked until it is there again: then that must get an error.
    fn drop_feed(&mut self) -> Outcome {
        self.consumer.feed = None;
        self.consumer.has_acknowledged = false;
        if let Err(error) = self.store()?.drop_feed(NAME) {
            self.consumer.may_be_dropped = true;
            return self.refused("drop the feed", error);
        }
        self.consumer.kept.clear();
        let secondary = self.consumer.secondary.take();
        if self.open_feed()? {
            self.consumer.secondary = secondary;
        }
        Ok(())
    }

    /// False where the feed cannot be opened now.
    fn open_feed(&mut self) -> Result<bool, String> {
        if self.consumer.feed.is_some() {
            return Ok(true);
        }
        self.consumer.has_met_feed = true;
        let Told { table, prefix } = self.told();
        let options = FeedOptions::default()
            .table(table.as_deref())
            .prefix(&prefix)
            .bytes_max(self.settings.feed.bytes_max);
        match self.store()?.feed(NAME, options) {
            Ok(feed) => {
                self.check_budget()?;
                let place = feed.position();
                let kept = self.consumer.kept.iter().rev().find(|(kept, _)| *kept <= place);
                self.consumer.replica = kept.map(|(_, replica)| replica.clone()).unwrap_or_default();
                self.consumer.feed = Some(feed);
                Ok(true)
            }
            Err(error) => self.refused("open the feed", error).map(|()| false),
        }
    }

    fn acknowledge(&mut self) -> Outcome {
        let may_be_lost = self.feed_may_be_lost();
        let Consumer { feed: Some(feed), replica, kept, has_acknowledged, .. } = &mut self.consumer else {
            return Ok(());
        };
        if !replica.is_complete {
            return Ok(());
        }
        let place = feed.position();
        kept.push((place, replica.clone()));
        match feed.acknowledge(place) {
            Ok(()) => {
                kept.drain(..kept.len() - 1);
                *has_acknowledged = true;
                Ok(())
            }
            Err(error) if error.kind() == ErrorKind::FeedLost && may_be_lost => Ok(()),
            Err(error) => self.refused("acknowledge", error),
        }
    }

    // ---- in a secondary -------------------------------------------------------------------------

    /// Takes the events of the feed next to the store, as far as the action says. Where all writes
    /// have reached the kernel, the consumer has the contents of the store then.
    pub(super) fn follow_secondary(&mut self, follow: &FollowSecondary) -> Outcome {
        if follow.synced {
            let synced = self.store()?.sync();
            let is_synced = synced.is_ok();
            self.makes_durable("sync", synced)?;
            if !is_synced {
                return Ok(());
            }
        }
        let Some(disk) = self.disk.clone() else { return self.read_secondary(follow) };
        if disk.is_dead() || disk.has_lost() {
            self.consumer.secondary = None;
            return Ok(()); // its contents are not known
        }
        disk.aside(|| self.read_secondary(follow))
    }

    fn read_secondary(&mut self, follow: &FollowSecondary) -> Outcome {
        if !self.open_secondary()? {
            return Ok(());
        }
        let may_be_lost = self.feed_may_be_lost();
        for _ in 0..follow.events.map_or(EVENTS_MAX, usize::from) {
            let Consumer { secondary: Some((feed, replica)), shapes, .. } = &mut self.consumer else { break };
            match feed.poll() {
                Ok(Some(event)) => {
                    replica.take(event, shapes).map_err(|why| format!("in a secondary: {why}"))?
                }
                Ok(None) if !follow.synced => break,
                Ok(None) => {
                    self.tell_time();
                    let told = self.told();
                    let Some((_, replica)) = &self.consumer.secondary else { break };
                    let compared = replica.compare(&self.known.model, &told);
                    return compared.map_err(|why| format!("in a secondary: {why}"));
                }
                Err(error) => {
                    self.consumer.secondary = None;
                    let is_excused = match error.kind() {
                        ErrorKind::FeedLost => may_be_lost,
                        // The one in the store may have passed more events than this one has seen.
                        ErrorKind::Locked => self.consumer.has_raced,
                        _ => false,
                    };
                    return if is_excused {
                        Ok(())
                    } else {
                        Err(said("read the feed in a secondary")(error))
                    };
                }
            }
        }
        Ok(())
    }

    /// False where a secondary cannot read the feed: its rows are not acknowledged yet, or it is
    /// lost.
    fn open_secondary(&mut self) -> Result<bool, String> {
        if self.consumer.secondary.is_some() {
            return Ok(true);
        }
        let Told { table, prefix } = self.told();
        let told = FeedOptions::default().table(table.as_deref()).prefix(&prefix);
        match Store::secondary_feed(&self.dir, NAME, told, None, &self.options()) {
            Ok(feed) => {
                let place = feed.position();
                let kept = self.consumer.kept.iter().rev().find(|(kept, _)| *kept <= place);
                self.consumer.secondary = kept.map(|(_, replica)| (feed, replica.clone()));
                self.consumer.has_raced = false;
                Ok(self.consumer.secondary.is_some())
            }
            // It is not there, or has not given its rows; once those are acknowledged, this is
            // wrong.
            Err(error)
                if error.kind() == ErrorKind::InvalidInput
                    && (!self.consumer.has_acknowledged
                        || self.consumer.may_be_dropped
                        || self.feed_may_be_lost()) =>
            {
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::FeedLost && self.feed_may_be_lost() => Ok(false),
            Err(error) => Err(said("open the feed in a secondary")(error)),
        }
    }
}
