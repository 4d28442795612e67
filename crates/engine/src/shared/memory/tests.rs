use super::*;

const MIB: usize = 1 << 20;

fn memory() -> Arc<SharedMemory> {
    Arc::new(SharedMemory::new(MemoryPlan::of(64 * MIB))) // memtables of 7.8 MiB
}

#[test]
fn a_store_alone_seals_its_own() {
    let memory = memory();
    let only = Tenant::enter(&memory, true);
    assert_eq!(only.note_active(15 * MIB), Seals::Nobody);
    assert_eq!(only.note_active(16 * MIB), Seals::Asker);
    assert!(!only.take_asked());
}

#[test]
fn a_store_over_the_budget_asks_only_the_largest_one_until_that_has_sealed() {
    let memory = memory();
    let [large, small, last] = [(); 3].map(|()| Tenant::enter(&memory, true));
    assert_eq!(large.note_active(9 * MIB), Seals::Nobody);
    assert_eq!(small.note_active(5 * MIB), Seals::Nobody);
    assert_eq!(last.note_active(2 * MIB), Seals::Another);
    assert_eq!(small.note_active(6 * MIB), Seals::Another);
    let asked = [&large, &small, &last].map(|tenant| tenant.take_asked());
    assert_eq!(asked, [true, false, false]);
    large.note_sealed(9 * MIB);
    assert_eq!(large.note_active(0), Seals::Nobody);
    assert_eq!(memory.bytes(), MemtableBytes { active: 8 * MIB, sealed: 9 * MIB, flushed: 0 });
}

#[test]
fn a_store_that_leaves_releases_its_share_and_is_no_longer_counted() {
    let memory = memory();
    let [stays, leaves] = [(); 2].map(|()| Tenant::enter(&memory, true));
    for tenant in [&stays, &leaves] {
        tenant.note_sealed(3 * MIB);
        tenant.note_active(2 * MIB);
        tenant.note_flushed(MIB);
    }
    assert_eq!(memory.tenants(), 2);
    leaves.leave();
    leaves.settle_sealed(3 * MIB);
    leaves.note_active(4 * MIB);
    assert_eq!(memory.bytes(), MemtableBytes { active: 2 * MIB, sealed: 3 * MIB, flushed: MIB });
    drop(leaves);
    assert_eq!(memory.bytes(), MemtableBytes { active: 2 * MIB, sealed: 3 * MIB, flushed: MIB });
    assert_eq!(memory.tenants(), 1);
    drop(stays);
    assert_eq!(memory.bytes(), MemtableBytes { active: 0, sealed: 0, flushed: 0 });
}

#[test]
fn no_writer_waits_for_a_store_without_threads_but_it_is_asked_to_flush() {
    let memory = memory();
    let [manual, other] = [false, true].map(|has_threads| Tenant::enter(&memory, has_threads));
    manual.note_sealed(9 * MIB);
    assert_eq!((manual.bytes().sealed, memory.bytes().sealed), (9 * MIB, 0));
    manual.note_active(14 * MIB);
    assert_eq!(other.note_active(2 * MIB), Seals::Another);
    assert_eq!(other.note_active(3 * MIB), Seals::Another, "what is asked for already is enough");
    assert!(manual.take_asked() && !other.take_asked());
}
