use super::*;

#[test]
fn a_growing_hash_is_that_of_all_bytes_at_every_moment() {
    let bytes: Vec<u8> = (0..3000u32).map(|i| ((i * i) >> 3) as u8).collect();
    for step in [1, 7, 240, 241, 1024] {
        let mut growing = GrowingHash::new(99);
        for (at, piece) in bytes.chunks(step).enumerate() {
            growing.push(piece);
            let end = at * step + piece.len();
            assert_eq!(growing.hash64(), hash64(99, &bytes[..end]), "{end} bytes by {step}");
        }
    }
}
