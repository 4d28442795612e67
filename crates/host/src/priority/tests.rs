//! The system says what a thread has become.

use super::{NICE_MAX, lower};

/// The nice value of the calling thread: the 19th field of its line, of which two end with the
/// name.
fn nice() -> Option<i32> {
    let line = std::fs::read_to_string("/proc/thread-self/stat").ok()?;
    let (_, fields) = line.rsplit_once(") ")?;
    fields.split(' ').nth(16)?.parse().ok()
}

#[test]
fn only_the_calling_thread_is_lowered() {
    let before = nice().expect("the system tells it");
    let lowered = std::thread::spawn(|| {
        lower(0);
        let same = nice();
        lower(3);
        let less = nice();
        lower(u8::MAX);
        [same, less, nice()]
    });
    let less = (before + 3).min(19);
    let expected = [before, less, (less + i32::from(NICE_MAX)).min(19)].map(Some);
    assert_eq!(lowered.join().expect("it ends"), expected);
    assert_eq!(nice(), Some(before));
}
