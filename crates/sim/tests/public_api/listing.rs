//! The public names of a crate, a line each, with their signatures, and the types in these
//! signatures that users cannot name.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Type, Visibility};

use crate::source::{Module, Place, Sources, attributes, bindings_of, is_hidden, is_public, name_of};

/// What users of a crate can name.
pub(crate) struct Public {
    /// A line each, in the order of their paths.
    pub(crate) lines: Vec<String>,
    /// Lines with a name that users cannot reach, and the name.
    pub(crate) unreachable: BTreeSet<String>,
}

/// All that users of `root` can name.
pub(crate) fn listing(sources: &Sources, root: &str) -> Public {
    let reachable = listed(sources, root, BTreeMap::new()).found;
    let listing = listed(sources, root, reachable);
    let mut lines = listing.lines;
    lines.sort_by_cached_key(|line| (line.find(root).map(|at| line[at..].to_owned()), line.clone()));
    Public { lines, unreachable: listing.unreachable }
}

fn listed<'s>(sources: &'s Sources, root: &str, reachable: BTreeMap<Place, String>) -> Listing<'s> {
    let mut listing = Listing {
        sources,
        reachable,
        found: BTreeMap::new(),
        types: BTreeMap::new(),
        lines: Vec::new(),
        unreachable: BTreeSet::new(),
    };
    listing.module(&[root.to_owned()], root);
    listing.blocks();
    for name in sources.crates() {
        for (place, module) in sources.modules_of(name) {
            listing.foreign(&place, module);
        }
    }
    listing
}

struct Listing<'s> {
    sources: &'s Sources,
    /// What an earlier walk has found, with the shortest path to it.
    reachable: BTreeMap<Place, String>,
    found: BTreeMap<Place, String>,
    /// The paths of the structs and enums among them.
    types: BTreeMap<Place, Vec<String>>,
    lines: Vec<String>,
    unreachable: BTreeSet<String>,
}

impl Listing<'_> {
    fn add(&mut self, line: impl Into<String>) {
        self.lines.push(line.into());
    }

    /// A line of the module `at`: each type in it must be one that users can name.
    fn add_named(&mut self, at: &[String], line: String, signature: TokenStream) {
        if !["(feature = \"testing\")", "#[doc(hidden)]"].iter().any(|said| line.contains(said)) {
            for inner in self.inner_types(at, signature) {
                self.unreachable.insert(format!("{inner} in `{}`", line.trim()));
            }
        }
        self.add(line);
    }

    /// The types and traits in a signature that users cannot name, except those that seal a trait.
    fn inner_types(&self, at: &[String], signature: TokenStream) -> Vec<String> {
        let is_inner = |path: Vec<String>| {
            let name = path.last().filter(|name| name.starts_with(char::is_uppercase) && *name != "Sealed");
            let place = name.and_then(|_| self.sources.resolve(at, &path))?;
            (!self.reachable.contains_key(&place)).then(|| place.join("::"))
        };
        paths_of(signature).into_iter().filter_map(is_inner).collect()
    }

    /// Users can name it by this path, too.
    fn reach(&mut self, place: &Place, path: &str) {
        let known = self.found.entry(place.clone()).or_insert_with(|| path.to_owned());
        if path.len() < known.len() {
            *known = path.to_owned();
        }
    }

    /// Whether users know the trait and what it is for: they are public, or of another crate.
    fn is_known(&self, at: &[String], of: &syn::Path) -> bool {
        self.inner_types(at, of.to_token_stream()).is_empty()
            && self.sources.resolve(at, &names_of(of)).is_none_or(|place| self.reachable.contains_key(&place))
    }

    /// The names of the module at `place`, which users call `path`.
    fn module(&mut self, place: &[String], path: &str) {
        let Some(module) = self.sources.module(place) else { return };
        self.add(format!("mod {path}"));
        for item in &module.items {
            match item {
                Item::Mod(inner) if is_public(&inner.vis) => {
                    let name = inner.ident.to_string();
                    self.module(&[place, std::slice::from_ref(&name)].concat(), &format!("{path}::{name}"));
                }
                Item::Use(used) if is_public(&used.vis) => {
                    for binding in bindings_of(&used.tree) {
                        let path = format!("{path}::{}", binding.name);
                        let said = format!("{}{}", features(&used.attrs), promises(&used.attrs));
                        match self.sources.resolve_binding(place, &binding) {
                            Some(found) => self.thing(&found, &path, &said),
                            None => self.add(format!("use {path}{said}")),
                        }
                    }
                }
                Item::Macro(called) if called.ident.is_none() => {
                    self.add(format!("macro {path}: {}!", text(&called.mac.path)));
                }
                item => {
                    if let (Some(name), true) = (name_of(item), is_public(visibility(item))) {
                        let found = [place, std::slice::from_ref(&name)].concat();
                        self.thing(&found, &format!("{path}::{name}"), "");
                    }
                }
            }
        }
    }

    /// The item defined at `place`, which users name `path`.
    fn thing(&mut self, place: &Place, path: &str, features: &str) {
        if self.sources.module(place).is_some() {
            return self.module(place, path);
        }
        self.reach(place, path);
        let (name, parents) = place.split_last().expect("a name");
        let module = self.sources.module(parents).expect("it was found there");
        let defined: Vec<&Item> =
            module.items.iter().filter(|item| name_of(item).as_ref() == Some(name)).collect();
        for item in defined {
            self.item(parents, item, path, features);
            if matches!(item, Item::Struct(_) | Item::Enum(_)) {
                self.types.entry(place.clone()).or_default().push(path.to_owned());
            }
        }
    }

    fn item(&mut self, at: &[String], item: &Item, path: &str, features: &str) {
        let said = format!("{features}{}", promises(attributes(item)));
        match item {
            Item::Struct(item) => {
                let line = format!("struct {path}{}{said}", bounded(&item.generics));
                self.add_named(at, line, item.generics.to_token_stream());
                self.fields(at, path, &item.fields);
            }
            Item::Enum(item) => {
                let line = format!("enum {path}{}{said}", bounded(&item.generics));
                self.add_named(at, line, item.generics.to_token_stream());
                for variant in item.variants.iter() {
                    let line = format!("  {path}::{}", text(&(&variant.ident, &variant.fields).tokens()));
                    self.add_named(at, line, variant.fields.to_token_stream());
                }
            }
            Item::Trait(item) => {
                let above = text(&item.supertraits);
                let line = format!("trait {path}{}: {above}{said}", bounded(&item.generics));
                self.add_named(at, line, (&item.generics, &item.supertraits).tokens());
                for inner in &item.items {
                    self.of_trait(at, path, inner);
                }
            }
            Item::Fn(item) => {
                let line = format!("fn {path} {}{said}", text(&item.sig));
                self.add_named(at, line, item.sig.to_token_stream());
            }
            Item::Const(item) => self.add(format!("const {path}: {}{said}", text(&item.ty))),
            Item::Static(item) => self.add(format!("static {path}: {}{said}", text(&item.ty))),
            Item::Type(item) => {
                let line = format!("type {path}{} = {}{said}", text(&item.generics), text(&item.ty));
                self.add_named(at, line, item.ty.to_token_stream());
            }
            _ => {}
        }
    }

    fn fields(&mut self, at: &[String], path: &str, fields: &Fields) {
        for (index, field) in fields.iter().enumerate() {
            if is_public(&field.vis) {
                let name = field.ident.as_ref().map_or(index.to_string(), ToString::to_string);
                let line = format!("  {path}.{name}: {}{}", text(&field.ty), promises(&field.attrs));
                self.add_named(at, line, field.ty.to_token_stream());
            }
        }
    }

    fn of_trait(&mut self, at: &[String], path: &str, item: &TraitItem) {
        match item {
            TraitItem::Fn(method) => {
                let given = if method.default.is_some() { " { .. }" } else { "" };
                let said = promises(&method.attrs);
                let line = format!("  {path}: {}{given}{said}", text(&method.sig));
                self.add_named(at, line, method.sig.to_token_stream());
            }
            TraitItem::Type(of) => {
                let line = format!("  {path}: {}{}", text(of), promises(&of.attrs));
                self.add_named(at, line, of.bounds.to_token_stream());
            }
            TraitItem::Const(of) => {
                let said = promises(&of.attrs);
                let line = format!("  {path}: const {}: {}{said}", of.ident, text(&of.ty));
                self.add_named(at, line, of.ty.to_token_stream());
            }
            _ => {}
        }
    }

    /// What `impl` blocks give to types, and which traits these have.
    fn blocks(&mut self) {
        let crates: Vec<String> = self.sources.crates().map(str::to_owned).collect();
        for (at, module) in crates.iter().flat_map(|name| self.sources.modules_of(name)) {
            for item in &module.items {
                let Item::Impl(block) = item else { continue };
                let place = self.sources.place_of(&at, &block.self_ty);
                let paths = place.and_then(|place| self.types.get(&place)).cloned().unwrap_or_default();
                let reference = if matches!(*block.self_ty, Type::Reference(_)) { "&" } else { "" };
                paths.iter().for_each(|path| self.block(&at, &format!("{reference}{path}"), block));
            }
        }
    }

    fn block(&mut self, at: &[String], path: &str, block: &syn::ItemImpl) {
        let of_block = features(&block.attrs);
        match &block.trait_ {
            Some((_, of, _)) if self.is_known(at, of) => {
                self.bounds(path, block, &format!("{} for ", text(of)));
                self.add(format!("  {path} is {}{of_block}", text(of)));
                for inner in &block.items {
                    let ImplItem::Type(inner) = inner else { continue };
                    let line = format!("  {path} is {}: {}", text(of), text(inner));
                    self.add_named(at, line, inner.ty.to_token_stream());
                }
            }
            Some(_) => {}
            None => {
                self.bounds(path, block, "");
                block.items.iter().for_each(|inner| self.of_block(at, path, inner, &of_block));
            }
        }
    }

    /// Which parameters of a type its methods, or a trait, need.
    fn bounds(&mut self, path: &str, block: &syn::ItemImpl, of: &str) {
        let generics = bounded(&block.generics);
        let line = format!("  {path}: impl{generics} {of}{}", text(&block.self_ty));
        if generics.contains(':') && !self.lines.contains(&line) {
            self.add(line);
        }
    }

    fn of_block(&mut self, at: &[String], path: &str, item: &ImplItem, of_block: &str) {
        match item {
            ImplItem::Fn(method) if is_public(&method.vis) => {
                let said = format!("{of_block}{}{}", features(&method.attrs), promises(&method.attrs));
                let line = format!("  {path}::{}{said}", text(&method.sig));
                self.add_named(at, line, method.sig.to_token_stream());
            }
            ImplItem::Macro(called) => self.add(format!("  {path}: {}!", text(&called.mac.path))),
            ImplItem::Const(of) if is_public(&of.vis) => {
                let said = format!("{of_block}{}", promises(&of.attrs));
                let line = format!("  {path}::{}: {}{said}", of.ident, text(&of.ty));
                self.add_named(at, line, of.ty.to_token_stream());
            }
            _ => {}
        }
    }

    /// Public traits that types of other crates have, and traits of other crates that such types
    /// have for a public type: `From<Error> for io::Error`.
    fn foreign(&mut self, at: &[String], module: &Module) {
        for item in &module.items {
            let Item::Impl(block) = item else { continue };
            let Some((_, of, _)) = &block.trait_ else { continue };
            if self.sources.place_of(at, &block.self_ty).is_some() || !self.is_known(at, of) {
                continue;
            }
            let known = paths_of(of.to_token_stream())
                .into_iter()
                .find_map(|path| self.reachable.get(&self.sources.resolve(at, &path)?));
            if let Some(path) = known.cloned() {
                let features = features(&block.attrs);
                let generics = bounded(&block.generics);
                let whose = text(&block.self_ty);
                self.add(format!("  {path}: impl{generics} {} for {whose}{features}", text(of)));
            }
        }
    }
}

/// The paths in a signature: names, with `::` between them.
fn paths_of(tokens: TokenStream) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    let mut goes_on = false;
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let continues = std::mem::take(&mut goes_on);
        match token {
            TokenTree::Group(group) => found.extend(paths_of(group.stream())),
            TokenTree::Ident(name) => {
                match found.last_mut().filter(|_| continues) {
                    Some(path) => path.push(name.to_string()),
                    None => found.push(vec![name.to_string()]),
                }
                let colon = |token: &TokenTree| matches!(token, TokenTree::Punct(mark) if mark.as_char() == ':' && mark.spacing() == proc_macro2::Spacing::Joint);
                goes_on = tokens.next_if(colon).is_some() && tokens.next().is_some();
            }
            _ => {}
        }
    }
    found
}

fn names_of(path: &syn::Path) -> Vec<String> {
    path.segments.iter().map(|segment| segment.ident.to_string()).collect()
}

fn visibility(item: &Item) -> &Visibility {
    match item {
        Item::Const(item) => &item.vis,
        Item::Enum(item) => &item.vis,
        Item::Fn(item) => &item.vis,
        Item::Static(item) => &item.vis,
        Item::Struct(item) => &item.vis,
        Item::Trait(item) => &item.vis,
        Item::Type(item) => &item.vis,
        _ => &Visibility::Inherited,
    }
}

/// The promises of attributes to users: derived traits, that more may be added, that it must be
/// used, that it is not for them.
fn promises(attributes: &[Attribute]) -> String {
    let promised = ["derive", "non_exhaustive", "must_use"];
    let is_kept = |one: &&Attribute| is_hidden(one) || promised.iter().any(|name| one.path().is_ident(name));
    attributes
        .iter()
        .filter(is_kept)
        .map(|attribute| match &attribute.meta {
            _ if is_hidden(attribute) => " #[doc(hidden)]".to_owned(),
            syn::Meta::List(list) => format!(" #[derive({})]", tidy(&list.tokens.to_string())),
            meta => format!(" #[{}]", meta.path().to_token_stream()),
        })
        .collect()
}

/// The features that a name needs.
fn features(attributes: &[Attribute]) -> String {
    let of_feature = attributes.iter().filter(|attribute| attribute.path().is_ident("cfg"));
    of_feature.map(|attribute| format!(" {}", tidy(&attribute.to_token_stream().to_string()))).collect()
}

trait Tokens {
    fn tokens(&self) -> TokenStream;
}

impl<A: ToTokens, B: ToTokens> Tokens for (A, B) {
    fn tokens(&self) -> TokenStream {
        let mut tokens = self.0.to_token_stream();
        self.1.to_tokens(&mut tokens);
        tokens
    }
}

/// Parameters with their bounds.
fn bounded(generics: &syn::Generics) -> String {
    match &generics.where_clause {
        Some(bounds) => format!("{} {}", text(generics), text(bounds)),
        None => text(generics),
    }
}

fn text(of: &impl ToTokens) -> String {
    tidy(&without_comments(of.to_token_stream()).to_string())
}

/// Tokens without attributes, which include comments.
fn without_comments(tokens: TokenStream) -> TokenStream {
    let mut kept = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark)
                if mark.as_char() == '#' && matches!(tokens.peek(), Some(TokenTree::Group(_))) =>
            {
                tokens.next();
            }
            TokenTree::Group(group) => {
                let inner = without_comments(group.stream());
                kept.push(TokenTree::Group(proc_macro2::Group::new(group.delimiter(), inner)));
            }
            token => kept.push(token),
        }
    }
    kept.into_iter().collect()
}

/// Tokens roughly as people write them.
fn tidy(tokens: &str) -> String {
    let mut text = tokens.split_whitespace().collect::<Vec<_>>().join(" ");
    for (wide, narrow) in [
        (" :: ", "::"),
        (":: ", "::"),
        (" ::", "::"),
        (" : ", ": "),
        (" ,", ","),
        ("( ", "("),
        (" )", ")"),
        (" (", "("),
        ("[ ", "["),
        (" ]", "]"),
        (" < ", "<"),
        (" <(", "<("),
        (" >", ">"),
        ("< ", "<"),
        ("& ", "&"),
        ("? ", "?"),
        (" ;", ";"),
        ("! ", "!"),
        (" !", "!"),
        ("# [", "#["),
        (",)", ")"),
        (", }", " }"),
    ] {
        text = text.replace(wide, narrow);
    }
    text
}
