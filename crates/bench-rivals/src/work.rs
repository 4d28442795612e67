//! One run of a workload on one store, in a process of its own: the child. Its command line and its
//! JSON are a contract with the program for the stores written in Go (`go/`); the README of this
//! crate describes it.

mod job;
mod files;
mod space;
mod commits;
mod load;
mod reads;
mod pace;
mod beside;
mod child;
mod hugedb;
mod osmos;
mod small;
mod commit;
mod ydb;
mod objects;
mod heads;
mod more_than_ram;
mod leveled;
mod indexed;
mod elliptics;

use std::path::PathBuf;

use anyhow::Result;
use serde_json::Value;

pub(crate) use job::{Job, Workload};

/// Does a job on a store in an empty directory, and returns the figures.
pub(crate) fn run(rival: &str, job: &Job, dir: PathBuf) -> Result<Value> {
    let mut child = child::Child::new(rival, job, dir)?;
    match job.workload {
        Workload::Hugedb => hugedb::run(&mut child)?,
        Workload::Osmos => osmos::run(&mut child)?,
        Workload::AppendOne => small::append_one(&mut child)?,
        Workload::Drain => small::drain(&mut child)?,
        Workload::Open => hugedb::open(&mut child)?,
        Workload::Commit => commit::run(&mut child)?,
        Workload::Ydb => ydb::run(&mut child)?,
        Workload::YdbRmw => ydb::run_read_modify_write(&mut child)?,
        Workload::MoreThanRam => more_than_ram::run(&mut child)?,
        Workload::Leveled => leveled::run(&mut child)?,
        Workload::Elliptics => elliptics::run(&mut child)?,
        Workload::Indexed => indexed::run(&mut child)?,
    }
    child.end()
}
