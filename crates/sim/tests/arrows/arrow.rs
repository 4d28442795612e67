//! The arrows between files, and those of them that run up.

use std::collections::{BTreeSet, HashMap};

use proc_macro2::{TokenStream, TokenTree};
use syn::parse::Parser;
use syn::punctuated::Punctuated;
use syn::visit::{self, Visit};
use syn::{Expr, ExprMethodCall, ItemImpl, ItemUse, Macro, Path, Token, UseTree};

use crate::file::{Crate, methods_of};
use crate::resolve::Target;

/// Methods of collections and iterators, and of types of other crates: their type is known only
/// where the receiver has the name of the type.
const OF_ANYBODY: [&str; 54] = [
    "all",
    "any",
    "append",
    "as_bytes",
    "clear",
    "clone",
    "collect",
    "compare",
    "contains",
    "contains_key",
    "count",
    "drain",
    "extend",
    "filter",
    "find",
    "first",
    "flush",
    "fold",
    "get",
    "get_mut",
    "indexes",
    "insert",
    "is_empty",
    "iter",
    "join",
    "keys",
    "last",
    "len",
    "load",
    "lock",
    "map",
    "max",
    "min",
    "next",
    "position",
    "push",
    "read",
    "recv",
    "remove",
    "replace",
    "rev",
    "scan",
    "send",
    "set",
    "skip",
    "sort",
    "split",
    "store",
    "sum",
    "swap",
    "take",
    "values",
    "wait",
    "write",
];

/// A type, by the module that declares it and its name.
type Of = (usize, String);

/// The arrows of a crate that do not run down, by the names of the modules.
pub(crate) fn upward(house: &Crate) -> BTreeSet<(String, String)> {
    let strewn = strewn_methods(house);
    let mut arrows = BTreeSet::new();
    for (from, module) in house.modules.iter().enumerate() {
        let mut eye = Eye { house, from, strewn: &strewn, inside: None, seen: BTreeSet::new() };
        module.items.iter().for_each(|item| eye.visit_item(item));
        arrows.extend(eye.seen.into_iter().map(|to| (from, to)));
    }
    let is_wrong = |&(from, to): &(usize, usize)| !runs_down(house, from, to, &arrows);
    let wrong: BTreeSet<(usize, usize)> = arrows.iter().copied().filter(is_wrong).collect();
    wrong.into_iter().map(|(from, to)| (house.name(from), house.name(to))).collect()
}

/// Whether `from` may use `to`: the module of `to` is below that of `from` among the children of
/// their common parent. A parent may use its child, or a child its parent, but not both.
fn runs_down(house: &Crate, from: usize, to: usize, arrows: &BTreeSet<(usize, usize)>) -> bool {
    let (mine, other) = (&house.modules[from].path, &house.modules[to].path);
    let common = mine.iter().zip(other).take_while(|(mine, other)| mine == other).count();
    let at = |path: &[String]| {
        let step = |module: usize, name: &String| house.modules[module].children[name];
        house.modules[path.iter().take(common + 1).fold(0, step)].place
    };
    match (mine.len() == common, other.len() == common) {
        (false, false) => at(other) < at(mine),
        (true, _) => true,
        (false, true) => !arrows.contains(&(to, from)),
    }
}

/// Methods of types whose `impl` blocks are in several files, by their names, with type and module.
/// A name that several types give to a method is left out, except for calls on `self`.
fn strewn_methods(house: &Crate) -> HashMap<String, Vec<(Of, usize)>> {
    let mut by_name: HashMap<String, Vec<(Of, usize)>> = HashMap::new();
    let mut homes: HashMap<Of, BTreeSet<usize>> = HashMap::new();
    for (index, module) in house.modules.iter().enumerate() {
        for (of, methods) in module.items.iter().filter_map(methods_of) {
            let Some(of) = type_at(house.resolve(index, &of)) else { continue };
            homes.entry(of.clone()).or_default().insert(index);
            methods.into_iter().for_each(|name| by_name.entry(name).or_default().push((of.clone(), index)));
        }
    }
    for found in by_name.values_mut() {
        let only = found.iter().all(|(of, _)| *of == found[0].0);
        found.retain(|(of, _)| homes[of].len() > 1);
        if !only {
            found.push(((usize::MAX, String::new()), usize::MAX));
        }
    }
    by_name
}

fn type_at(target: Option<Target>) -> Option<Of> {
    let target = target?;
    Some((target.module, target.names.first()?.clone()))
}

/// The last name of the receiver of a method.
fn receiver_name(receiver: &Expr) -> Option<String> {
    match receiver {
        Expr::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        Expr::Field(field) => match &field.member {
            syn::Member::Named(name) => Some(name.to_string()),
            syn::Member::Unnamed(_) => None,
        },
        Expr::Reference(inner) => receiver_name(&inner.expr),
        _ => None,
    }
}

/// Looks at the code of one module.
struct Eye<'a> {
    house: &'a Crate,
    from: usize,
    strewn: &'a HashMap<String, Vec<(Of, usize)>>,
    /// The type of the `impl` block that is being read.
    inside: Option<Of>,
    seen: BTreeSet<usize>,
}

impl Eye<'_> {
    fn see(&mut self, to: usize) {
        if to != self.from {
            self.seen.insert(to);
        }
    }

    fn see_path(&mut self, path: &[String]) {
        let Some(target) = self.house.resolve(self.from, path) else { return };
        if target.names.is_empty() {
            return; // naming a module does not use its contents
        }
        self.see(target.module);
        let [name, method, ..] = target.names.as_slice() else { return };
        let of = (target.module, name.clone());
        self.see_method(method, Some(&of));
    }

    /// The method `name` of a type; of any type that has one, where none is known.
    fn see_method(&mut self, name: &str, of: Option<&Of>) {
        let Some(found) = self.strewn.get(name) else { return };
        let home = match of {
            Some(of) => found.iter().find(|(its, _)| its == of),
            None if OF_ANYBODY.contains(&name) => None,
            None if found.iter().any(|(_, module)| *module == usize::MAX) => None,
            None => found.first(),
        };
        if let Some(&(_, module)) = home {
            self.see(module);
        }
    }

    /// The type of that method whose name is that of the receiver: `engine` is an `Engine`.
    fn called_like(&self, receiver: &str, method: &str) -> Option<Of> {
        let plain = receiver.replace('_', "");
        let found = self.strewn.get(method)?.iter().find(|((_, name), _)| name.to_lowercase() == plain)?;
        Some(found.0.clone())
    }

    fn see_use(&mut self, prefix: &mut Vec<String>, tree: &UseTree) {
        match tree {
            UseTree::Path(path) => {
                prefix.push(path.ident.to_string());
                self.see_use(prefix, &path.tree);
                prefix.pop();
            }
            UseTree::Group(group) => group.items.iter().for_each(|tree| self.see_use(prefix, tree)),
            UseTree::Name(name) => self.see_path(&[&prefix[..], &[name.ident.to_string()]].concat()),
            UseTree::Rename(rename) => self.see_path(&[&prefix[..], &[rename.ident.to_string()]].concat()),
            UseTree::Glob(_) => {
                let Some(target) = self.house.resolve(self.from, prefix) else { return };
                self.see(target.module);
            }
        }
    }

    fn see_tokens(&mut self, tokens: TokenStream) {
        let list = Punctuated::<Expr, Token![,]>::parse_terminated;
        match list.parse2(tokens.clone()) {
            Ok(found) => found.iter().for_each(|expr| self.visit_expr(expr)),
            Err(_) => self.see_paths(tokens),
        }
    }

    /// The paths in tokens that are not a list of expressions, as in the rules of a macro.
    fn see_paths(&mut self, tokens: TokenStream) {
        let mut path: Vec<String> = Vec::new();
        let mut colons = 0;
        for token in tokens {
            match token {
                TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
                TokenTree::Ident(name) if colons == 2 && !path.is_empty() => {
                    path.push(name.to_string());
                    colons = 0;
                }
                other => {
                    self.see_path(&std::mem::take(&mut path));
                    colons = 0;
                    match other {
                        TokenTree::Ident(name) => path.push(name.to_string()),
                        TokenTree::Group(group) => self.see_tokens(group.stream()),
                        _ => {}
                    }
                }
            }
        }
        self.see_path(&path);
    }
}

impl<'ast> Visit<'ast> for Eye<'_> {
    fn visit_item_use(&mut self, item: &'ast ItemUse) {
        self.see_use(&mut Vec::new(), &item.tree);
    }

    fn visit_path(&mut self, path: &'ast Path) {
        let names: Vec<String> = path.segments.iter().map(|segment| segment.ident.to_string()).collect();
        match (names.as_slice(), self.inside.clone()) {
            ([first, method, ..], Some(of)) if first == "Self" => self.see_method(method, Some(&of)),
            _ => self.see_path(&names),
        }
        visit::visit_path(self, path);
    }

    fn visit_item_impl(&mut self, item: &'ast ItemImpl) {
        let of = match &*item.self_ty {
            syn::Type::Path(of) => {
                let names: Vec<String> =
                    of.path.segments.iter().map(|segment| segment.ident.to_string()).collect();
                type_at(self.house.resolve(self.from, &names))
            }
            _ => None,
        };
        let outer = std::mem::replace(&mut self.inside, of);
        visit::visit_item_impl(self, item);
        self.inside = outer;
    }

    fn visit_expr_method_call(&mut self, call: &'ast ExprMethodCall) {
        let method = call.method.to_string();
        let of = match receiver_name(&call.receiver).as_deref() {
            Some("self") => self.inside.clone(),
            Some(name) => self.called_like(name, &method),
            None => None,
        };
        self.see_method(&method, of.as_ref());
        visit::visit_expr_method_call(self, call);
    }

    fn visit_macro(&mut self, item: &'ast Macro) {
        self.see_tokens(item.tokens.clone());
        visit::visit_macro(self, item);
    }
}
