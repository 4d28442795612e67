//! Bars for long work, drawn on the error output when that is a terminal, else not at all.

use std::io::IsTerminal;

use folddb::maintenance::ByteProgress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// A bar that counts bytes up to `bytes_total`; without a total it only counts.
pub(crate) fn bytes_bar(bytes_total: Option<u64>, doing: &str) -> ProgressBar {
    let template = match bytes_total {
        Some(_) => "{msg} {wide_bar} {bytes}/{total_bytes} {eta}",
        None => "{msg} {spinner} {bytes} {elapsed}",
    };
    let bar = ProgressBar::with_draw_target(bytes_total, target());
    with_template(bar, template, doing)
}

/// Shows how far a job is on its bar.
pub(crate) fn show_bytes(bar: &ProgressBar, at: ByteProgress) {
    bar.set_length(at.bytes_total);
    bar.set_position(at.bytes_done);
}

/// A bar over parts of a whole, in thousandths.
pub(crate) fn share_bar(doing: &str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(1000), target());
    with_template(bar, "{msg} {wide_bar} {percent}% {eta}", doing)
}

fn with_template(bar: ProgressBar, template: &str, doing: &str) -> ProgressBar {
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(doing.to_owned())
}

fn target() -> ProgressDrawTarget {
    if std::io::stderr().is_terminal() { ProgressDrawTarget::stderr() } else { ProgressDrawTarget::hidden() }
}
