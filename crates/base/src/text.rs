//! Numbers in sentences.

/// `1 record`, `2 records`.
pub fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}
