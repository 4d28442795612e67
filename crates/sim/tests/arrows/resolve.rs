//! The target of a path: the module that declares it, through any re-exports.

use crate::file::Crate;

/// A path that leads through more names than this leads in a circle.
const STEPS_MAX: usize = 40;

/// The target of a path of a crate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub(crate) module: usize,
    /// The item, and what was written after it; empty for the module itself.
    pub(crate) names: Vec<String>,
}

impl Crate {
    /// What `path` names in module `from`; none for an item of another crate.
    pub(crate) fn resolve(&self, from: usize, path: &[String]) -> Option<Target> {
        self.first(from, path, STEPS_MAX)
    }

    fn first(&self, from: usize, path: &[String], steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        match path.first()?.as_str() {
            "crate" => self.walk(0, &path[1..], steps),
            "self" => self.walk(from, &path[1..], steps),
            "super" => self.walk(self.modules[from].parent?, &path[1..], steps),
            name if self.knows(from, name, steps) => self.walk(from, path, steps),
            _ => None,
        }
    }

    fn walk(&self, module: usize, path: &[String], steps: usize) -> Option<Target> {
        let steps = steps.checked_sub(1)?;
        let here = &self.modules[module];
        let Some(name) = path.first() else { return Some(Target { module, names: Vec::new() }) };
        if name == "super" {
            return self.walk(here.parent?, &path[1..], steps);
        }
        if here.declared.contains(name) {
            return Some(Target { module, names: path.to_vec() });
        }
        if let Some(&child) = here.children.get(name) {
            return self.walk(child, &path[1..], steps);
        }
        if let Some(written) = here.bindings.get(name) {
            return self.first(module, &[written, &path[1..]].concat(), steps);
        }
        let through = |glob: &Vec<String>| self.first(module, &[glob, path].concat(), steps);
        here.globs.iter().find_map(through)
    }

    fn knows(&self, module: usize, name: &str, steps: usize) -> bool {
        let here = &self.modules[module];
        let local = here.declared.contains(name) || here.children.contains_key(name);
        // `use csv::...` in a module whose parent has a child `csv` names the other crate.
        let bound =
            here.bindings.get(name).is_some_and(|written| written.first().is_some_and(|first| first != name));
        let has = |glob: &Vec<String>| {
            self.first(module, &[glob.as_slice(), &[name.to_owned()]].concat(), steps).is_some()
        };
        local || bound || here.globs.iter().any(has)
    }
}
