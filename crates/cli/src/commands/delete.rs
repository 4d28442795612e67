//! `folddb delete STORE TABLE KEY...`, `--range FROM TO` and `--prefix KEY`: deletes keys.

use std::ops::Bound;

use folddb::codec::KeyRange;
use folddb::{BytesTable, Durability, WriteOp};
use serde_json::json;

use crate::args::DeleteArgs;
use crate::failure::Failure;
use crate::keys;
use crate::session::{Begun, Session};

pub(crate) fn run(args: &DeleteArgs, session: &mut Session) -> Result<(), Failure> {
    let store = session.write_keys(&args.store)?;
    let table = store.known_table(&args.table)?.with_durability(args.durability.into());
    let what = What::of(args, &table)?;
    if let Some(begun) = &mut session.transaction {
        begun.delete(&table, &what, args.durability.into());
        return Ok(());
    }
    let seq = match &what {
        What::Key(key) => table.write(WriteOp::Delete, key, &[])?,
        What::Range(from, to) => table.delete_range(from, to)?,
        What::Prefix(range) => {
            let durability = args.durability.into();
            store.batch().delete_prefix(&table, range).commit(durability)?
        }
    };
    session.report(&json!({ "seq": u64::from(seq) }), |_| Ok(()))
}

/// The keys to be deleted.
enum What {
    Key(Vec<u8>),
    Range(Vec<u8>, Vec<u8>),
    Prefix(KeyRange),
}

impl What {
    fn of(args: &DeleteArgs, table: &BytesTable) -> Result<What, Failure> {
        match args.range.as_slice() {
            [from, to] => Ok(What::Range(range_end(table, from, args.hex)?, range_end(table, to, args.hex)?)),
            _ if !args.prefix.is_empty() => {
                Ok(What::Prefix(keys::typed_prefix(table, &args.prefix, args.hex)?))
            }
            _ => Ok(What::Key(keys::key(table, &args.key, args.hex)?)),
        }
    }
}

impl Begun {
    /// Notes a delete.
    fn delete(&mut self, table: &BytesTable, what: &What, durability: Durability) {
        match what {
            What::Key(key) => self.transaction.delete(table, key),
            What::Range(from, to) => self.transaction.delete_range(table, from, to),
            What::Prefix(range) => self.transaction.delete_prefix(table, range),
        };
        self.strengthen(durability);
    }
}

/// The first key that counts as equal to what was typed: a range includes its start and excludes
/// its end.
fn range_end(table: &BytesTable, word: &str, hex: bool) -> Result<Vec<u8>, Failure> {
    match keys::bound(table, &[word.to_owned()], hex)?.from() {
        Bound::Included(key) => Ok(key),
        _ => {
            let name = table.name();
            Err(Failure::Usage(format!(
                "a range of table `{name}`, whose keys are in descending order, needs whole keys"
            )))
        }
    }
}
