use super::*;

#[test]
fn a_seed_is_a_program() {
    assert_eq!(Program::random(5, 40), Program::random(5, 40));
    assert_ne!(Program::random(5, 40), Program::random(6, 40));
    let is_strewn = |action: &&Action| {
        matches!(
            action,
            Action::AddIndex(..)
                | Action::DropIndex(_)
                | Action::Transact(_)
                | Action::Load(_)
                | Action::Cursor(_)
                | Action::Other(_)
                | Action::CompactRange(..)
                | Action::SyncLater(_)
        )
    };
    let program = Program::random(5, 40);
    let strewn = program.actions.iter().filter(is_strewn).count();
    let rest = program.actions.len() - strewn; // a load first drops what is in its way
    assert!((40 + usize::from(TABLES)..60).contains(&rest), "{rest}");
}

#[test]
fn shrinking_keeps_only_what_it_takes_to_fail() {
    // Fails where a snapshot comes anywhere before a flush and some batch deletes key 3.
    let fails = |program: &Program| {
        let snapshot = program.actions.iter().position(|action| *action == Action::Snapshot);
        let flush = program.actions.iter().rposition(|action| *action == Action::Flush);
        let deletes = program.actions.iter().any(|action| match action {
            Action::Commit(ops, _) => ops.iter().any(|op| op.what == What::Delete && op.key == 3),
            _ => false,
        });
        deletes && snapshot.zip(flush).is_some_and(|(snapshot, flush)| snapshot < flush)
    };
    let program = (0..).map(|seed| Program::random(seed, 300)).find(fails).unwrap();
    let least = shrink(&program, &mut |candidate| fails(candidate));
    assert!(fails(&least));
    assert_eq!(least.actions.len(), 3, "{least}");
    let ops: usize = least
        .actions
        .iter()
        .map(|action| if let Action::Commit(ops, _) = action { ops.len() } else { 0 })
        .sum();
    assert_eq!(ops, 1, "{least}");
}
