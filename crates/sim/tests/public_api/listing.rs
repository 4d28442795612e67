//! The public names of a crate, a line each, with their signatures, and the types in these
//! signatures that users cannot name.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Visibility};

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
    let mut lines: Vec<String> = listing.lines.into_iter().collect();
    lines.sort_by_key(|line| line.find(root).map(|at| line[at..].to_owned()));
    Public { lines, unreachable: listing.unreachable }
}

fn listed<'s>(sources: &'s Sources, root: &str, reachable: BTreeMap<Place, String>) -> Listing<'s> {
    let mut listing = Listing {
        sources,
        reachable,
        found: BTreeMap::new(),
        types: BTreeMap::new(),
        written_by_macros: BTreeSet::from([root.to_owned()]),
        lines: BTreeSet::new(),
        unreachable: BTreeSet::new(),
    };
    listing.module(&[root.to_owned()], root);
    listing.blocks();
    for name in sources.crates() {
        for (place, module) in sources.modules_of(name) {
            listing.macros(&place, module);
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
    /// Crates whose macros write names that users see.
    written_by_macros: BTreeSet<String>,
    lines: BTreeSet<String>,
    unreachable: BTreeSet<String>,
}

impl Listing<'_> {
    fn add(&mut self, line: impl Into<String>) {
        self.lines.insert(line.into());
    }

    /// A line of the module `at`: each type in it must be one that users can name.
    fn add_named(&mut self, at: &[String], line: String, signature: TokenStream) {
        if !line.contains("(feature = \"testing\")") {
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
                Item::Use(used) if is_public(&used.vis) && is_hidden(&used.attrs) => {
                    for binding in bindings_of(&used.tree) {
                        if let Some(found) = self.sources.resolve_binding(place, &binding) {
                            self.reach(&found, &format!("{path}::{}", binding.name));
                        }
                    }
                }
                hidden if is_hidden(attributes(hidden)) => {}
                Item::Mod(inner) if is_public(&inner.vis) => {
                    let name = inner.ident.to_string();
                    self.module(&[place, std::slice::from_ref(&name)].concat(), &format!("{path}::{name}"));
                }
                Item::Use(used) if is_public(&used.vis) => {
                    for binding in bindings_of(&used.tree) {
                        let path = format!("{path}::{}", binding.name);
                        match self.sources.resolve_binding(place, &binding) {
                            Some(found) => self.thing(&found, &path, &features(&used.attrs)),
                            None => {
                                self.written_by_macros.insert(place[0].clone());
                                self.add(format!("use {path}{}", features(&used.attrs)));
                            }
                        }
                    }
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
                let line = format!("struct {path}{}{said}", text(&item.generics));
                self.add_named(at, line, item.generics.to_token_stream());
                self.fields(at, path, &item.fields);
            }
            Item::Enum(item) => {
                let line = format!("enum {path}{}{said}", text(&item.generics));
                self.add_named(at, line, item.generics.to_token_stream());
                for variant in item.variants.iter().filter(|variant| !is_hidden(&variant.attrs)) {
                    let line = format!("  {path}::{}", text(&(&variant.ident, &variant.fields).tokens()));
                    self.add_named(at, line, variant.fields.to_token_stream());
                }
            }
            Item::Trait(item) => {
                let above = text(&item.supertraits);
                let line = format!("trait {path}{}: {above}{said}", text(&item.generics));
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
            if is_public(&field.vis) && !is_hidden(&field.attrs) {
                let name = field.ident.as_ref().map_or(index.to_string(), ToString::to_string);
                let line = format!("  {path}.{name}: {}", text(&field.ty));
                self.add_named(at, line, field.ty.to_token_stream());
            }
        }
    }

    fn of_trait(&mut self, at: &[String], path: &str, item: &TraitItem) {
        match item {
            TraitItem::Fn(method) if !is_hidden(&method.attrs) => {
                let given = if method.default.is_some() { " { .. }" } else { "" };
                let line = format!("  {path}: {}{given}", text(&method.sig));
                self.add_named(at, line, method.sig.to_token_stream());
            }
            TraitItem::Type(of) if !is_hidden(&of.attrs) => {
                self.add_named(at, format!("  {path}: {}", text(of)), of.bounds.to_token_stream());
            }
            TraitItem::Const(of) if !is_hidden(&of.attrs) => {
                let line = format!("  {path}: const {}: {}", of.ident, text(&of.ty));
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
                paths.iter().for_each(|path| self.block(&at, path, block));
            }
        }
    }

    fn block(&mut self, at: &[String], path: &str, block: &syn::ItemImpl) {
        let of_block = features(&block.attrs);
        match &block.trait_ {
            Some((_, of, _)) if self.is_known(at, of) => {
                self.add(format!("  {path} is {}{of_block}", text(of)));
            }
            Some(_) => {}
            None => block.items.iter().for_each(|inner| self.of_block(at, path, inner, &of_block)),
        }
    }

    fn of_block(&mut self, at: &[String], path: &str, item: &ImplItem, of_block: &str) {
        match item {
            ImplItem::Fn(method) if is_public(&method.vis) && !is_hidden(&method.attrs) => {
                let said = format!("{of_block}{}{}", features(&method.attrs), promises(&method.attrs));
                let line = format!("  {path}::{}{said}", text(&method.sig));
                self.add_named(at, line, method.sig.to_token_stream());
            }
            ImplItem::Const(of) if is_public(&of.vis) && !is_hidden(&of.attrs) => {
                let line = format!("  {path}::{}: {}{of_block}", of.ident, text(&of.ty));
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
                let generics = text(&block.generics);
                let whose = text(&block.self_ty);
                self.add(format!("  {path}: impl{generics} {} for {whose}{features}", text(of)));
            }
        }
    }

    /// What macros write: their public methods and the traits they implement, and where they are
    /// called.
    fn macros(&mut self, place: &[String], module: &Module) {
        for item in &module.items {
            let Item::Macro(item) = item else { continue };
            let path = place.join("::");
            match &item.ident {
                Some(name) => {
                    let mut found = Vec::new();
                    methods(item.mac.tokens.clone(), &mut found);
                    for method in found {
                        let line = format!("  macro {path}::{name}!: {}", tidy(&method.to_string()));
                        if self.is_of_users(place, &method) {
                            self.add_named(place, line, method);
                        }
                    }
                }
                None if self.writes_for_users(place, &item.mac.path) => {
                    let called = format!("macro {path}: {}!", item.mac.path.to_token_stream());
                    let mut entries = Vec::new();
                    entries_of(without_comments(item.mac.tokens.clone()), &called, &mut entries);
                    for entry in entries {
                        let without_code = entry.split(" |").next().expect("a first part").trim_end();
                        self.add(format!("  {without_code}"));
                    }
                }
                None => {}
            }
        }
    }

    /// Whether what a macro writes is a public method, or a trait that users know.
    fn is_of_users(&self, at: &[String], written: &TokenStream) -> bool {
        let is_impl =
            matches!(written.clone().into_iter().next(), Some(TokenTree::Ident(word)) if word == "impl");
        if !is_impl {
            return self.written_by_macros.contains(&at[0]);
        }
        let is_ours = |path: &Vec<String>| {
            self.sources.resolve(at, path).is_some_and(|place| self.reachable.contains_key(&place))
        };
        paths_of(written.clone()).iter().any(is_ours) && self.inner_types(at, written.clone()).is_empty()
    }

    /// Whether a macro that is called in a module writes anything that users see.
    fn writes_for_users(&self, at: &[String], called: &syn::Path) -> bool {
        let Some(name) = called.segments.last() else { return false };
        let of_crate = self.sources.modules_of(&at[0]);
        of_crate.iter().any(|(place, module)| {
            module.items.iter().any(|item| {
                let Item::Macro(item) = item else { return false };
                let mut found = Vec::new();
                methods(item.mac.tokens.clone(), &mut found);
                item.ident.as_ref() == Some(&name.ident)
                    && found.iter().any(|written| self.is_of_users(place, written))
            })
        })
    }
}

/// The arguments of a macro call, entry by entry, each after the group that it is in.
fn entries_of(tokens: TokenStream, before: &str, found: &mut Vec<String>) {
    let mut entry: Vec<TokenTree> = Vec::new();
    let text = |entry: &mut Vec<TokenTree>| tidy(&entry.drain(..).collect::<TokenStream>().to_string());
    for token in tokens {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let before = format!("{before} {}", text(&mut entry));
                entries_of(group.stream(), before.trim_end(), found);
            }
            TokenTree::Punct(mark) if matches!(mark.as_char(), ',' | ';') => {
                found.push(format!("{before} {}", text(&mut entry)));
            }
            token => entry.push(token),
        }
    }
    if !entry.is_empty() {
        found.push(format!("{before} {}", text(&mut entry)));
    }
}

/// The signatures of the public methods in the tokens of a macro, and the heads of its blocks
/// `impl .. for ..`.
fn methods(tokens: TokenStream, found: &mut Vec<TokenStream>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Group(group) => methods(group.stream(), found),
            TokenTree::Ident(word) if word == "pub" || word == "impl" => {
                let mut signature = Vec::new();
                while let Some(next) = tokens.next_if(
                    |next| !matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
                ) {
                    signature.push(next);
                }
                let has = |name: &str| {
                    signature.iter().any(|token| matches!(token, TokenTree::Ident(word) if word == name))
                };
                if word == "impl" && has("for") {
                    signature.insert(0, token);
                    found.push(signature.into_iter().collect());
                } else if matches!(signature.first(), Some(TokenTree::Ident(word)) if word == "fn" || word == "struct")
                {
                    found.push(signature.into_iter().collect());
                }
            }
            _ => {}
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
/// used.
fn promises(attributes: &[Attribute]) -> String {
    let promised = ["derive", "non_exhaustive", "must_use"];
    let kept = attributes.iter().filter(|one| promised.iter().any(|name| one.path().is_ident(name)));
    kept.map(|attribute| match &attribute.meta {
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
