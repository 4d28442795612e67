//! Accounts: transfers as transactions, unique numbers, the balance of an account at a past time,
//! and a report that is read page by page.
//!
//! ```text
//! cargo run -p folddb --example accounts
//! ```

use folddb::{AsOf, Cursor, Durability, Error, Keep, Options, Result, Resume, Rules, Store, Table};

type Accounts = Table<String, i64>;
type Transfers = Table<u64, String>;

pub(crate) fn main() -> Result<()> {
    let dir = std::env::temp_dir().join(format!("folddb-accounts-{}", std::process::id()));
    let store = Store::create(&dir, Options::default())?;
    // The table keeps its past, so every state of every account can be read.
    let accounts =
        store.table("accounts", Rules::sorted::<String, i64>().fold("sum:i64").keep(Keep::Forever))?;
    let transfers = store.table("transfers", Rules::sorted::<u64, String>())?;
    let numbers = store.table("numbers", Rules::sorted::<String, u64>().fold("sum:u64"))?;

    for (name, amount) in [("ann", 100), ("bob", 20), ("cid", 0)] {
        accounts.fold(name, &amount)?;
    }
    let before = store.last_seq();
    let tables = (&accounts, &transfers, &numbers);
    assert_eq!(transfer(&store, tables, ("ann", "bob", 30))?, 1);
    assert_eq!(transfer(&store, tables, ("bob", "cid", 50))?, 2);
    let refused = transfer(&store, tables, ("bob", "ann", 1));
    println!("{}", refused.map_or_else(|error| error.to_string(), |number| format!("transfer {number}")));

    // A deposit is folded, which does not conflict with other folds: no transaction is needed, and
    // none is delayed.
    accounts.fold("cid", &5)?;
    println!("ann had {:?} before all this", accounts.get_at("ann", AsOf::Seq(before))?);

    // A report in pages: the program may end between two of them, and the next run continues from
    // the text.
    let (first, place) = page(&accounts, None)?;
    let (rest, _) = page(&accounts, Some(&place))?;
    println!("{first:?}, then {rest:?}");
    let total: i64 = first.iter().chain(&rest).map(|(_, amount)| amount).sum();
    assert_eq!(total, 125, "what came in is there, wherever it went");
    store.close()?;
    let _ = std::fs::remove_dir_all(&dir); // the example cleans up
    Ok(())
}

/// Moves an amount, if the account has it, and returns the number of the transfer. If another
/// transfer has changed what was read, `transact` runs the closure again.
fn transfer(
    store: &Store,
    (accounts, transfers, numbers): (&Accounts, &Transfers, &Table<String, u64>),
    (from, to, amount): (&str, &str, i64),
) -> Result<u64> {
    store.transact(Durability::Sync, |transaction| {
        let has = transaction.get(accounts, from)?.unwrap_or(0);
        if has < amount {
            return Err(Error::invalid(format!("{from} has {has}, which is less than {amount}")));
        }
        transaction.fold(accounts, from, &-amount).fold(accounts, to, &amount);
        let number = transaction.fold_and_get(numbers, "transfers", &1)?.unwrap_or(0);
        transaction.put(transfers, &number, &format!("{from} to {to}: {amount}"));
        Ok(number)
    })
}

/// Two accounts, from a place on, and the place after them as text.
fn page(accounts: &Accounts, place: Option<&str>) -> Result<(Vec<(String, i64)>, String)> {
    let scan = match place {
        None => accounts.scan(),
        Some(text) => accounts.resume(&text.parse::<Cursor>()?, Resume::Relaxed)?,
    };
    let mut rows = scan.into_iter();
    let page = rows.by_ref().take(2).collect::<Result<_>>()?;
    let place = rows.cursor().map_or_else(String::new, |cursor| cursor.to_string());
    Ok((page, place))
}
