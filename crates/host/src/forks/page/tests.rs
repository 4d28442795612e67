use super::Page;
use crate::forks::tests::in_child;

use std::io::Write;

#[test]
fn a_page_is_cleared_in_a_child_and_nowhere_else() {
    let page = Page::map().expect("the system clears pages in a child");
    let told = in_child(|out| {
        let own = Page::map().map(|own| own.is_cleared());
        drop(out.write_all(&[u8::from(page.is_cleared()), own.map_or(2, u8::from)]));
    });
    assert_eq!((told, page.is_cleared()), (vec![1, 0], false));
}

#[test]
fn threads_look_at_one_page() {
    let page = Page::map().unwrap();
    std::thread::scope(|threads| {
        for _ in 0..4 {
            threads.spawn(|| assert!((0..1000).all(|_| !page.is_cleared())));
        }
    });
}
