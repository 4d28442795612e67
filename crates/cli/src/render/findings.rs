//! What a check of a store has found, as JSON.

use folddb::maintenance::{Finding, Loss, VerifyReport};
use serde_json::{Value, json};

/// A report as JSON.
pub(crate) fn report_json(report: &VerifyReport) -> Value {
    let checked = &report.checked;
    json!({
        "clean": report.is_clean(),
        "deep": report.deep,
        "checked": {
            "edits": checked.edits,
            "tables": checked.tables,
            "runs": checked.runs,
            "parts": checked.parts,
            "parts_unread": checked.parts_unread,
            "records": checked.records,
            "segments": checked.segments,
            "batches": checked.batches,
            "batches_cut": checked.batches_cut,
            "bytes": checked.bytes,
        },
        "findings": report.findings.iter().map(finding_json).collect::<Value>(),
    })
}

/// A finding as JSON.
pub(crate) fn finding_json(finding: &Finding) -> Value {
    json!({
        "severity": match finding.severity {
            folddb::maintenance::Severity::Damage => "damage",
            folddb::maintenance::Severity::Unfit => "unfit",
            folddb::maintenance::Severity::Note => "note",
        },
        "file": finding.file,
        "offset": finding.offset,
        "what": finding.what,
        "losses": finding.losses.iter().map(loss_json).collect::<Value>(),
        "feeds": finding.feeds,
        "archives": finding.archives,
    })
}

/// A loss as JSON; keys as hexadecimal digits, and in words.
pub(crate) fn loss_json(loss: &Loss) -> Value {
    let hex = |key: &Option<Vec<u8>>| key.as_deref().map(folddb::datum::hex);
    json!({
        "table": loss.table,
        "keys": loss.keys,
        "after": hex(&loss.after),
        "through": hex(&loss.through),
        "records": loss.records,
    })
}
