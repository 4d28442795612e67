use super::*;

#[test]
fn content_is_the_same_however_it_was_cut_into_pieces() {
    let bytes: Vec<u8> = (0..20_000_u32).map(|n| (n * 7 % 251) as u8).collect();
    let mut whole = Tape::new();
    whole.feed(&bytes);
    for piece in [1, 7, 4095, 4096, 4097] {
        let mut cut = Tape::new();
        bytes.chunks(piece).for_each(|chunk| cut.feed(chunk));
        assert_eq!(cut.content(), whole.content());
    }
    assert_eq!(whole.content().hash, hash(&bytes));
    assert_eq!(whole.content().begin, hash(&bytes[..BEGIN_BYTES]));
    assert_eq!(whole.content().begin_bytes(), BEGIN_BYTES);
}

#[test]
fn a_short_content_is_its_own_beginning() {
    let mut tape = Tape::new();
    assert!(tape.ends_line());
    tape.feed(b"a,1");
    assert!(!tape.ends_line());
    assert_eq!((tape.content().begin, tape.content().begin_bytes()), (hash(b"a,1"), 3));
    tape.feed(b"\n");
    assert!(tape.ends_line());
}
