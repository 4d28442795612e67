use std::io::{ErrorKind, Write};

use super::{keep_from_swap, let_swap};

/// Kilobytes of this process that the system may not swap out.
fn locked_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmLck:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

#[test]
fn what_is_kept_from_swap_counts_as_locked() {
    #[repr(align(4096))]
    struct Pages([u8; 4 * 4096]);
    let pages = Box::new(Pages([7; 4 * 4096]));
    let before = locked_kib();
    if let Err(error) = keep_from_swap(&*pages) {
        let kinds = [ErrorKind::PermissionDenied, ErrorKind::OutOfMemory, ErrorKind::WouldBlock];
        assert!(kinds.contains(&error.kind()), "{error}");
        assert_eq!(locked_kib(), before);
        // Not by a macro: a test that passes does not show the lines of a macro.
        writeln!(std::io::stderr(), "NOT CHECKED: this process may not lock memory (`ulimit -l`): {error}")
            .unwrap();
        return;
    }
    assert!(locked_kib() >= before + 16);
    let_swap(&*pages);
    assert_eq!(locked_kib(), before);
    assert!(pages.0.iter().all(|&byte| byte == 7));
}
