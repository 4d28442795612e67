use std::time::Duration;

use super::give_back;
use super::glibc::processor_time;

/// What is resident of this process, in KiB.
fn resident_kib() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("this is Linux");
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).expect("it says so");
    line.split_whitespace().nth(1).and_then(|kib| kib.parse().ok()).expect("a number")
}

#[test]
fn free_pages_among_used_memory_are_given_back() {
    // Pieces that a heap holds, every other one of which is freed: holes, and none at the end.
    let mut pieces: Vec<Option<Vec<u8>>> = (0..2048).map(|_| Some(vec![1; 48 << 10])).collect();
    pieces.iter_mut().step_by(2).for_each(|piece| drop(piece.take()));
    let before = resident_kib();
    give_back();
    let after = resident_kib();
    // Other tests of this process take memory meanwhile.
    assert!(after + (24 << 10) < before, "{before} KiB before, {after} after; 48 MiB are free");
    assert!(pieces.iter().flatten().all(|piece| piece.iter().all(|&byte| byte == 1)));
}

#[test]
fn work_takes_processor_time() {
    let before = processor_time();
    let mut sum = 0_u64;
    while processor_time().saturating_sub(before) < Duration::from_millis(2) {
        sum = std::hint::black_box(sum + 1);
    }
    let (worked, slept_from) = (sum, processor_time());
    std::thread::sleep(Duration::from_millis(50));
    let asleep = processor_time().saturating_sub(slept_from);
    assert!(worked > 0 && asleep < Duration::from_millis(25), "asleep for 50 ms: {asleep:?}");
}
