use super::*;

fn fresh() -> (tempfile::TempDir, Store, Books) {
    let dir = tempfile::tempdir_in(crate::memory_dir()).unwrap();
    let store = Store::create(dir.path().join("store"), folddb::Options::default()).unwrap();
    let books = Books::open(&store).unwrap();
    (dir, store, books)
}

fn after(steps: [u64; 2], clear: Clear) -> Cut {
    let (_dir, store, books) = fresh();
    let mut batch = store.batch();
    for (w, last) in (0..).zip(steps) {
        for n in 1..=last {
            books.fill(&mut batch, w, n, clear, &mut Seeded::new(n));
            batch.commit(folddb::Durability::Process).unwrap();
        }
    }
    let snapshot = store.snapshot();
    let cut = books.cut(&snapshot, false).unwrap();
    assert_eq!(cut, books.cut(&snapshot, true).unwrap(), "backward as forward");
    cut
}

#[test]
fn every_number_of_steps_is_recognized() {
    for steps in [[0, 0], [1, 0], [7, 8], [63, 64], [65, 1], [600, 1300]] {
        assert_eq!(after(steps, Clear::ByRange).steps(2), Ok(steps.to_vec()));
        assert_eq!(after(steps, Clear::ByKey).steps(2), Ok(steps.to_vec()));
    }
}

#[test]
fn whatever_is_amiss_is_found() {
    let good = after([70, 9], Clear::ByRange);
    let spoil = |spoil: &dyn Fn(&mut Cut)| {
        let mut bad = good.clone();
        spoil(&mut bad);
        bad.steps(2).unwrap_err()
    };
    assert!(spoil(&|cut| *cut.right.entry(3).or_default() += 1).contains("together"));
    assert!(spoil(&|cut| _ = cut.marks.insert((0, 1), 69)).contains("marks"));
    assert!(spoil(&|cut| _ = cut.sums.remove(&1)).contains("sums"));
    assert!(spoil(&|cut| _ = cut.firsts.insert((0, 1), 65)).contains("firsts"));
    assert!(spoil(&|cut| _ = cut.history.insert((1, 9), 8)).contains("history"));
    assert!(spoil(&|cut| _ = cut.windows.insert((1, 100), 8)).contains("windows"));
    assert!(spoil(&|cut| _ = cut.windows.pop_first()).contains("windows"));
}

#[test]
fn a_padded_value_that_is_not_whole_is_no_step() {
    let mut value = padded(3, 77, 900);
    assert_eq!(number(3, &value, 900), 77);
    assert_eq!(number(2, &value, 900), WRONG, "that of another writer");
    value.pop();
    assert_eq!(number(3, &value, 900), WRONG);
    assert_eq!(number(3, b"short", 900), WRONG);
}
