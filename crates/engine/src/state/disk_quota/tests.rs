use folddb_base::ErrorKind;

use super::*;

const MIB: u64 = 1 << 20;

fn quota(dir: &Path, max_bytes: u64) -> Result<Option<Arc<DiskQuota>>> {
    let small = Options::default().memory_bytes(4 << 20).segment_bytes(MIB).part_bytes(64 << 10);
    DiskQuota::open(dir, &small.disk_bytes_max(Some(max_bytes)))
}

fn write(host: &Host, path: &Path, bytes: u64) -> io::Result<()> {
    host.files.create(path)?.append(&vec![7; bytes as usize])
}

#[test]
fn files_count_from_the_beginning_and_until_they_go() {
    let temp = tempfile::tempdir().unwrap();
    let path = |name: &str| temp.path().join(name);
    std::fs::write(path("before"), [1; 100]).unwrap();
    let quota = quota(temp.path(), 20 * MIB).unwrap().unwrap();
    let host = quota.host(&Host::real(), SpaceUser::Flush);
    assert_eq!(quota.used_bytes(), 100);
    write(&host, &path("a"), 1000).unwrap();
    host.files.create_append(&path("log"), MIB, AppendMode::Written).unwrap();
    assert_eq!(quota.used_bytes(), 1100 + MIB);
    host.files.rename(&path("a"), &path("before")).unwrap();
    assert_eq!(quota.used_bytes(), 1000 + MIB, "what is replaced goes");
    std::fs::create_dir(path("elsewhere")).unwrap();
    write(&host, &path("elsewhere/b"), 5000).unwrap();
    host.files.remove(&path("log")).unwrap();
    assert_eq!(quota.used_bytes(), 1000, "files of others do not count");
    assert!(host.files.create_append(&path("before"), MIB, AppendMode::Written).is_err());
    host.files.remove(&path("before")).unwrap();
    assert_eq!(quota.used_bytes(), 0);
}

#[test]
fn each_leaves_free_what_others_need_and_all_together_never_pass_the_bound() {
    let temp = tempfile::tempdir().unwrap();
    let max_bytes = 20 * MIB;
    let quota = quota(temp.path(), max_bytes).unwrap().unwrap();
    quota.set_open();
    assert!(quota.takes_writes());
    let mut filled = Vec::new();
    for who in [SpaceUser::Merge, SpaceUser::Log, SpaceUser::Flush] {
        let host = quota.host(&Host::real(), who);
        for n in 0.. {
            let path = temp.path().join(format!("{who:?}{n}"));
            match write(&host, &path, 100_000) {
                Ok(()) => assert!(n < 1000, "{who:?} is never refused"),
                Err(error) => {
                    assert_eq!(Error::io("write", &path, error).kind(), ErrorKind::NoSpace);
                    break;
                }
            }
        }
        filled.push(quota.used_bytes());
        assert!(!quota.takes_writes());
    }
    assert!(filled.is_sorted_by(|less, more| less + MIB / 2 < *more), "{filled:?}");
    assert!(quota.used_bytes() <= max_bytes);
}

#[test]
fn values_leave_free_what_other_writes_do() {
    let temp = tempfile::tempdir().unwrap();
    let quota = quota(temp.path(), 20 * MIB).unwrap().unwrap();
    quota.set_open();
    let host = quota.host(&Host::real(), SpaceUser::Values);
    let made = |n: u32| {
        host.files.create_append(&temp.path().join(format!("{n}.values")), MIB, AppendMode::Written).is_ok()
    };
    let taken = (0..).take_while(|&n| made(n)).count() as u64 * MIB;
    assert_eq!(quota.used_bytes(), taken, "what was refused does not count");
    assert!(quota.takes_writes() && taken + MIB > 20 * MIB - quota.writes_keep());
}

#[test]
fn a_store_that_is_being_opened_may_use_all_of_it() {
    let temp = tempfile::tempdir().unwrap();
    let quota = quota(temp.path(), 20 * MIB).unwrap().unwrap();
    let host = quota.host(&Host::real(), SpaceUser::Merge);
    write(&host, &temp.path().join("a"), 20 * MIB).unwrap();
    assert!(write(&host, &temp.path().join("b"), 1).is_err());
}

#[test]
fn a_budget_without_room_for_data_is_refused() {
    let temp = tempfile::tempdir().unwrap();
    let refused = quota(temp.path(), 2 * MIB).map(drop).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::InvalidInput);
}
