//! The files of a crate: their modules in the order of their `mod` lines, with the names that each
//! of them uses and declares.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use syn::{Attribute, File, ImplItem, Item, ItemMod, Type, UseTree, Visibility};

/// A module, and its place among the children of its parent.
pub(crate) struct Module {
    /// The names of its parents and its own.
    pub(crate) path: Vec<String>,
    pub(crate) parent: Option<usize>,
    /// The number of its `mod` line in its parent.
    pub(crate) place: usize,
    pub(crate) children: HashMap<String, usize>,
    /// Names that a `use` imports, with the path that was written.
    pub(crate) bindings: HashMap<String, Vec<String>>,
    /// Paths from which a `use` imports all names.
    pub(crate) globs: Vec<Vec<String>>,
    pub(crate) declared: HashSet<String>,
    /// Its items, without its children, its tests and its re-exports.
    pub(crate) items: Vec<Item>,
}

/// The modules of a crate; the first is its root.
pub(crate) struct Crate {
    pub(crate) modules: Vec<Module>,
}

impl Crate {
    pub(crate) fn read(root: &Path) -> Crate {
        let mut house = Crate { modules: Vec::new() };
        let folder = root.parent().expect("a root stands in a folder").to_path_buf();
        house.add(root, &folder, Vec::new(), None, 0);
        house
    }

    /// Reads the module of `file`, whose children are in `folder`.
    fn add(
        &mut self,
        file: &Path,
        folder: &Path,
        path: Vec<String>,
        parent: Option<usize>,
        place: usize,
    ) -> usize {
        let text =
            std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let parsed: File =
            syn::parse_file(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let index = self.modules.len();
        self.modules.push(Module {
            path,
            parent,
            place,
            children: HashMap::new(),
            bindings: HashMap::new(),
            globs: Vec::new(),
            declared: HashSet::new(),
            items: Vec::new(),
        });
        self.take(index, parsed.items, folder);
        index
    }

    fn take(&mut self, index: usize, items: Vec<Item>, folder: &Path) {
        for item in items {
            if is_for_tests(attributes(&item)) {
                continue;
            }
            match item {
                Item::Mod(module) if module.content.is_none() => self.add_child(index, &module, folder),
                // A module inside a file is part of the file.
                Item::Mod(ItemMod { ident, content: Some((_, inner)), .. }) => {
                    self.modules[index].declared.insert(ident.to_string());
                    self.take(index, inner, folder);
                }
                Item::Use(item) => {
                    self.bind(index, &mut Vec::new(), &item.tree);
                    if matches!(item.vis, Visibility::Inherited) {
                        self.modules[index].items.push(Item::Use(item));
                    }
                }
                item => {
                    self.modules[index].declared.extend(name_of(&item));
                    self.modules[index].items.push(item);
                }
            }
        }
    }

    fn add_child(&mut self, index: usize, module: &ItemMod, folder: &Path) {
        let name = module.ident.to_string();
        let folder: PathBuf = folder.join(&name);
        let beside = folder.with_extension("rs");
        let file = if beside.exists() { beside } else { folder.join("mod.rs") };
        let path = [self.modules[index].path.clone(), vec![name.clone()]].concat();
        let place = self.modules[index].children.len();
        let child = self.add(&file, &folder, path, Some(index), place);
        self.modules[index].children.insert(name, child);
    }

    fn bind(&mut self, index: usize, prefix: &mut Vec<String>, tree: &UseTree) {
        let module = &mut self.modules[index];
        let whole = |prefix: &[String], name: &syn::Ident| [prefix, &[name.to_string()]].concat();
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.bind(index, prefix, &path.tree);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.bind(index, prefix, tree)),
            UseTree::Glob(_) => module.globs.push(prefix.clone()),
            UseTree::Name(name) if name.ident == "self" => {
                module.bindings.insert(prefix.last().expect("a path").clone(), prefix.clone());
            }
            UseTree::Name(name) => {
                module.bindings.insert(name.ident.to_string(), whole(prefix, &name.ident));
            }
            UseTree::Rename(rename) => {
                module.bindings.insert(rename.rename.to_string(), whole(prefix, &rename.ident));
            }
        }
    }

    /// The name of a module in the list of exceptions.
    pub(crate) fn name(&self, index: usize) -> String {
        match self.modules[index].path.as_slice() {
            [] => "(root)".to_owned(),
            path => path.join("::"),
        }
    }
}

/// True for code that is compiled for tests only, or for a build under the scheduler.
fn is_for_tests(attributes: &[Attribute]) -> bool {
    let is_of_tests = |word: &str| matches!(word, "test" | "folddb_schedules");
    let says = |attribute: &Attribute| {
        let syn::Meta::List(list) = &attribute.meta else { return false };
        let text = list.tokens.to_string();
        list.path.is_ident("cfg")
            && !text.contains("not")
            && text.split(|one: char| !one.is_alphanumeric() && one != '_').any(is_of_tests)
    };
    attributes.iter().any(says)
}

fn attributes(item: &Item) -> &[Attribute] {
    match item {
        Item::Const(item) => &item.attrs,
        Item::Enum(item) => &item.attrs,
        Item::Fn(item) => &item.attrs,
        Item::Impl(item) => &item.attrs,
        Item::Mod(item) => &item.attrs,
        Item::Static(item) => &item.attrs,
        Item::Struct(item) => &item.attrs,
        Item::Trait(item) => &item.attrs,
        Item::Type(item) => &item.attrs,
        Item::Use(item) => &item.attrs,
        _ => &[],
    }
}

fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The type of an `impl` block that implements no trait, as it is written, and its methods.
pub(crate) fn methods_of(item: &Item) -> Option<(Vec<String>, Vec<String>)> {
    let Item::Impl(item) = item else { return None };
    let Type::Path(of) = &*item.self_ty else { return None };
    if item.trait_.is_some() {
        return None;
    }
    let segments = of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
    let name = |item: &ImplItem| match item {
        ImplItem::Fn(method) => Some(method.sig.ident.to_string()),
        _ => None,
    };
    Some((segments, item.items.iter().filter_map(name).collect()))
}
