//! The system says what a thread has become.

use super::*;

/// The nice value of the calling thread: the 19th field of its line, counted behind the name.
fn nice() -> i32 {
    let line = std::fs::read_to_string("/proc/thread-self/stat").unwrap();
    let fields = &line[line.rfind(')').unwrap() + 2..];
    fields.split(' ').nth(16).unwrap().parse().unwrap()
}

#[test]
fn only_the_calling_thread_is_lowered() {
    let before = nice();
    let lowered = std::thread::spawn(|| {
        lower(0);
        let same = nice();
        lower(3);
        let less = nice();
        lower(u8::MAX);
        (same, less, nice())
    });
    let (same, less, least) = lowered.join().unwrap();
    assert_eq!((same, less, least), (before, (before + 3).min(19), 19));
    assert_eq!(nice(), before);
}
