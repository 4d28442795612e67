//! What differs in meaning between two rules.

use super::data::TableRules;
use crate::codec::ValueCodec;

impl TableRules {
    /// What differs in meaning between the rules of a table and the rules that it is opened with,
    /// in words; `None` when it may be opened. How it is stored (blocks, compression, filters) is
    /// no difference, and the value codec `bytes` fits any other. Rules that say nothing about time
    /// accept those of the table.
    pub fn diff(&self, asked: &TableRules) -> Option<String> {
        let mut differences = Vec::new();
        let mut compare = |what: &str, has: String, wants: String| {
            if has != wants {
                differences.push(format!("{what} {has}, not {wants}"));
            }
        };
        compare("it is", self.kind.name().to_owned(), asked.kind.name().to_owned());
        compare("its keys are", self.key.name(), asked.key.name());
        compare("its order is", self.order.clone(), asked.order.clone());
        compare("it folds by", self.fold.canonical().to_string(), asked.fold.canonical().to_string());
        compare("it deletes", self.delete.in_words(), asked.delete.in_words());
        compare("it short-circuits", self.short_circuit.in_words(), asked.short_circuit.in_words());
        compare("its heads are", self.head.to_string(), asked.head.to_string());
        if asked.keep.keeps_past() {
            compare("it keeps", self.keep.to_string(), asked.keep.to_string());
        }
        if asked.expire.has_stamps() {
            compare("its values last", self.expire.to_string(), asked.expire.to_string());
        }
        if asked.archives_log {
            let says = |archives_log: bool| if archives_log { "forever" } else { "as long as it is needed" };
            compare("it archives its log", says(self.archives_log).to_owned(), says(true).to_owned());
        }
        for index in &asked.indexes {
            let has = self.indexes.iter().find(|has| has.name == index.name);
            let has = has.map_or("none".to_owned(), |has| has.terms.to_string());
            compare(&format!("its index `{}` is", index.name), has, index.terms.to_string());
        }
        if self.fold.is_opaque() && self.value != ValueCodec::Bytes && asked.value != ValueCodec::Bytes {
            compare("its values are", self.value.to_string(), asked.value.to_string());
        }
        (!differences.is_empty()).then(|| differences.join("; "))
    }
}
