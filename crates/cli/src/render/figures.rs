//! Figures as people read them: as stored where that is short, else rounded, and never hundreds of
//! digits.

/// Most digits after the point of a figure that is shown as it is stored.
const DECIMALS_MAX: usize = 6;
/// Most characters of such a figure.
const CHARS_MAX: usize = 21;

/// A figure for people: `3.14159` as it is, `11.548387096774194` as `11.548`. What is below one has
/// at least four digits that count, and what is very large or very small has an exponent.
pub(crate) fn rounded(value: f64) -> String {
    let whole = in_full(value);
    let decimals = whole.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let size = value.abs();
    if decimals <= DECIMALS_MAX && whole.len() <= CHARS_MAX || !value.is_finite() {
        whole
    } else if (1e-5..1e15).contains(&size) {
        let digits = if size < 1.0 { (3.0 - size.log10().floor()) as usize } else { 3 };
        without_zeros(&format!("{value:.digits$}")).to_owned()
    } else {
        let text = format!("{value:.6e}");
        let (figure, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{}e{exponent}", without_zeros(figure))
    }
}

/// All digits of a figure, and no more than it takes to tell it from any other: with an exponent
/// where it has more than 21 before the point, or begins with more than six zeros behind it.
pub(crate) fn in_full(value: f64) -> String {
    match value.abs() {
        size if size == 0.0 || (1e-7..1e21).contains(&size) || !value.is_finite() => value.to_string(),
        _ => format!("{value:e}"),
    }
}

/// The digits after the point without the zeros at the end.
fn without_zeros(text: &str) -> &str {
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { text }
}

#[cfg(test)]
#[path = "figures/tests.rs"]
mod tests;
