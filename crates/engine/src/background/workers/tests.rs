use super::*;
use crate::options::Options;
use crate::recovery::open;

/// An opening that fails for lack of a thread leaves nothing behind that holds the store.
#[test]
fn a_thread_that_cannot_be_started_leaves_the_store_free() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.folddb");
    open::create(&path, &Options::default()).unwrap();
    for started in 0..4 {
        let background = Arc::new(open::open(&path, Options::default().merge_threads(2)).unwrap());
        let mut left = started;
        let outcome = Workers::start_by(&background, &mut |name, run| match left {
            0 => Err(std::io::ErrorKind::WouldBlock.into()),
            _ => {
                left -= 1;
                thread::Builder::new().name(name.to_owned()).spawn(run)
            }
        });
        let error = outcome.err().unwrap();
        assert!(error.message().starts_with("cannot start the thread folddb-"), "{error}");
        drop(background);
    }
    open::open(&path, Options::default()).unwrap();
}
