//! The sources of the crates, as trees of modules, and the targets of paths in them.

use std::collections::BTreeMap;
use std::path::Path;

use syn::{Attribute, Item, ItemMacro, Type, UseTree, Visibility};

use crate::expand::Macro;

/// A module: a file, or inside one.
#[derive(Default)]
pub(crate) struct Module {
    pub(crate) items: Vec<Item>,
    pub(crate) children: BTreeMap<String, Module>,
}

impl Module {
    /// Whether a `use` takes all names of another module.
    pub(crate) fn has_star(&self) -> bool {
        let bindings = self.items.iter().filter_map(|item| match item {
            Item::Use(item) => Some(bindings_of(&item.tree)),
            _ => None,
        });
        bindings.flatten().any(|binding| binding.name == "*")
    }
}

/// The crates by the names that code uses: `folddb_rules`.
pub(crate) struct Sources(BTreeMap<String, Module>);

/// Where an item is defined: its crate, its modules, and its name.
pub(crate) type Place = Vec<String>;

/// A name that a `use` imports, and the path that is written.
pub(crate) struct Binding {
    pub(crate) name: String,
    path: Vec<String>,
}

impl Sources {
    /// Reads the crate `folddb`, and the crates that its manifest names.
    pub(crate) fn read(crates: &Path) -> Sources {
        let manifest = std::fs::read_to_string(crates.join("folddb/Cargo.toml")).expect("a manifest");
        let name = |line: &str| Some(line.strip_prefix("folddb-")?.split(['.', ' ']).next()?.to_owned());
        let folders = manifest.lines().filter_map(name).chain(["folddb".to_owned()]);
        let read = |folder: String| {
            let source = crates.join(&folder).join("src");
            let mut module = module_of(&source.join("lib.rs"), &source);
            expand(&mut module);
            let name = if folder == "folddb" { folder } else { format!("folddb_{folder}") };
            (name.replace('-', "_"), module)
        };
        Sources(folders.map(read).collect())
    }

    pub(crate) fn module(&self, place: &[String]) -> Option<&Module> {
        let (root, rest) = place.split_first()?;
        rest.iter().try_fold(self.0.get(root)?, |module, name| module.children.get(name))
    }

    /// All modules of a crate, with their places.
    pub(crate) fn modules_of<'s>(&'s self, root: &str) -> Vec<(Place, &'s Module)> {
        let mut found = Vec::new();
        let mut left: Vec<(Place, &Module)> =
            self.0.get(root).map(|module| (vec![root.to_owned()], module)).into_iter().collect();
        while let Some((place, module)) = left.pop() {
            for (name, child) in &module.children {
                left.push(([place.clone(), vec![name.clone()]].concat(), child));
            }
            found.push((place, module));
        }
        found
    }

    pub(crate) fn crates(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Where the target of a path in a module is defined. None for items of other crates.
    pub(crate) fn resolve(&self, from: &[String], path: &[String]) -> Option<Place> {
        self.resolve_within(from, path, 16)
    }

    fn resolve_within(&self, from: &[String], path: &[String], steps_left: usize) -> Option<Place> {
        let steps_left = steps_left.checked_sub(1)?; // an import of itself would go on forever
        let (first, rest) = path.split_first()?;
        let at = match first.as_str() {
            "crate" => vec![from[0].clone()],
            "self" => from.to_vec(),
            "super" => from[..from.len() - 1].to_vec(),
            name if self.0.contains_key(name) => vec![name.to_owned()],
            _ => return self.within(from, path, steps_left),
        };
        if rest.is_empty() { Some(at) } else { self.within(&at, rest, steps_left) }
    }

    /// The same, from the items of a module.
    fn within(&self, at: &[String], path: &[String], steps_left: usize) -> Option<Place> {
        let (first, rest) = path.split_first()?;
        let module = self.module(at)?;
        let here = || [at, std::slice::from_ref(first)].concat();
        if module.children.contains_key(first) {
            return if rest.is_empty() {
                Some(here())
            } else {
                self.resolve_within(&here(), rest, steps_left)
            };
        }
        if rest.is_empty() && module.items.iter().any(|item| name_of(item).as_ref() == Some(first)) {
            return Some(here());
        }
        let bindings = module.items.iter().filter_map(|item| match item {
            Item::Use(item) => Some(bindings_of(&item.tree)),
            _ => None,
        });
        let bound = bindings.flatten().find(|binding| binding.name == *first)?;
        self.resolve_within(at, &[bound.path.as_slice(), rest].concat(), steps_left)
    }

    /// Where the type of an `impl` block is defined: the type itself, or that of a reference.
    pub(crate) fn place_of(&self, at: &[String], of: &Type) -> Option<Place> {
        if let Type::Reference(reference) = of {
            return self.place_of(at, &reference.elem);
        }
        let Type::Path(of) = of else { return None };
        let path: Vec<String> = of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        self.resolve(at, &path)
    }

    pub(crate) fn resolve_binding(&self, at: &[String], binding: &Binding) -> Option<Place> {
        self.resolve(at, &binding.path)
    }
}

fn module_of(file: &Path, folder: &Path) -> Module {
    let text = std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let parsed = syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    take(parsed.items, folder)
}

fn take(items: Vec<Item>, folder: &Path) -> Module {
    let mut module = Module::default();
    for item in items.into_iter().filter(|item| !is_for_tests(attributes(item))) {
        let Item::Mod(inner) = &item else {
            module.items.push(item);
            continue;
        };
        let name = inner.ident.to_string();
        let folder = folder.join(&name);
        let child = match &inner.content {
            Some((_, items)) => take(items.clone(), &folder),
            None => module_of(&folder.with_extension("rs"), &folder),
        };
        module.children.insert(name, child);
        module.items.push(item);
    }
    module
}

/// Replaces the calls of the crate's macros by what they write.
fn expand(root: &mut Module) {
    let mut macros = Vec::new();
    gather_macros(&mut Vec::new(), root, &mut macros);
    expand_within(&mut Vec::new(), root, &macros);
}

/// A macro by its name, and the module in which it is defined.
type Defined = (String, Place, Macro);

fn gather_macros(at: &mut Place, module: &Module, found: &mut Vec<Defined>) {
    for item in &module.items {
        let Item::Macro(item) = item else { continue };
        if let Some(name) = &item.ident {
            found.push((name.to_string(), at.clone(), Macro::read(item)));
        }
    }
    for (name, child) in &module.children {
        at.push(name.clone());
        gather_macros(at, child, found);
        at.pop();
    }
}

fn expand_within(at: &mut Place, module: &mut Module, macros: &[Defined]) {
    let mut left: Vec<Item> = std::mem::take(&mut module.items);
    left.reverse();
    while let Some(item) = left.pop() {
        let called = match &item {
            Item::Macro(call) if call.ident.is_none() => defined(at, call, macros).zip(Some(call)),
            _ => None,
        };
        match called {
            Some((called, call)) => left.extend(called.expand(call).into_iter().rev()),
            None => module.items.push(item),
        }
    }
    for (name, child) in &mut module.children {
        at.push(name.clone());
        expand_within(at, child, macros);
        at.pop();
    }
}

/// The macro that is called in the module `at`: the one that is defined nearest to it.
fn defined<'m>(at: &[String], call: &ItemMacro, macros: &'m [Defined]) -> Option<&'m Macro> {
    let name = call.mac.path.segments.last()?.ident.to_string();
    let shared = |place: &[String]| place.iter().zip(at).take_while(|(one, other)| one == other).count();
    let named = macros.iter().filter(|(of, ..)| *of == name);
    named.max_by_key(|(_, place, _)| shared(place)).map(|(.., found)| found)
}

/// The names that a `use` imports.
pub(crate) fn bindings_of(tree: &UseTree) -> Vec<Binding> {
    let mut found = Vec::new();
    bind(&mut Vec::new(), tree, &mut found);
    found
}

fn bind(prefix: &mut Vec<String>, tree: &UseTree, found: &mut Vec<Binding>) {
    let whole = |prefix: &[String], name: &syn::Ident| [prefix, &[name.to_string()]].concat();
    match tree {
        UseTree::Path(path) => {
            prefix.push(path.ident.to_string());
            bind(prefix, &path.tree, found);
            prefix.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| bind(prefix, tree, found)),
        UseTree::Glob(_) => found.push(Binding { name: "*".to_owned(), path: prefix.clone() }),
        UseTree::Name(name) if name.ident == "self" => {
            let name = prefix.last().expect("a path").clone();
            found.push(Binding { name, path: prefix.clone() });
        }
        UseTree::Name(name) => {
            found.push(Binding { name: name.ident.to_string(), path: whole(prefix, &name.ident) });
        }
        UseTree::Rename(rename) => {
            found.push(Binding { name: rename.rename.to_string(), path: whole(prefix, &rename.ident) });
        }
    }
}

fn says(attributes: &[Attribute], name: &str, what: &str) -> bool {
    attributes.iter().any(|attribute| match &attribute.meta {
        syn::Meta::List(list) => list.path.is_ident(name) && list.tokens.to_string() == what,
        _ => false,
    })
}

fn is_for_tests(attributes: &[Attribute]) -> bool {
    ["test", "all (test , folddb_schedules)"].iter().any(|when| says(attributes, "cfg", when))
}

pub(crate) fn is_hidden(attribute: &Attribute) -> bool {
    says(std::slice::from_ref(attribute), "doc", "hidden")
}

pub(crate) fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Macro(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

pub(crate) fn is_public(visibility: &Visibility) -> bool {
    matches!(visibility, Visibility::Public(_))
}

pub(crate) fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}
