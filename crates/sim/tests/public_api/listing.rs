//! The public names of a crate, one per line, with their signatures.

use std::collections::BTreeSet;

use proc_macro2::{Delimiter, TokenStream, TokenTree};
use quote::ToTokens;
use syn::{Attribute, Fields, ImplItem, Item, TraitItem, Visibility};

use crate::source::{Module, Place, Sources, attributes, bindings_of, is_hidden, is_public, name_of};

/// All that users of `root` can name, in the order of their paths.
pub(crate) fn listing(sources: &Sources, root: &str) -> Vec<String> {
    let mut listing = Listing { sources, lines: BTreeSet::new() };
    listing.module(&[root.to_owned()], root);
    for (place, module) in sources.modules_of(root) {
        listing.macros(&place, module);
    }
    let mut lines: Vec<String> = listing.lines.into_iter().collect();
    lines.sort_by_key(|line| line.find(root).map(|at| line[at..].to_owned()));
    lines
}

struct Listing<'s> {
    sources: &'s Sources,
    lines: BTreeSet<String>,
}

impl Listing<'_> {
    fn add(&mut self, line: impl Into<String>) {
        self.lines.insert(line.into());
    }

    /// The names of the module at `place`, which users name `path`.
    fn module(&mut self, place: &[String], path: &str) {
        let Some(module) = self.sources.module(place) else { return };
        self.add(format!("mod {path}"));
        for item in module.items.iter().filter(|item| !is_hidden(attributes(item))) {
            match item {
                Item::Mod(inner) if is_public(&inner.vis) => {
                    let name = inner.ident.to_string();
                    self.module(&[place, std::slice::from_ref(&name)].concat(), &format!("{path}::{name}"));
                }
                Item::Use(used) if is_public(&used.vis) => {
                    for binding in bindings_of(&used.tree) {
                        let path = format!("{path}::{}", binding.name);
                        match self.sources.resolve_binding(place, &binding) {
                            Some(found) => self.thing(&found, &path, &features(&used.attrs)),
                            None => self.add(format!("use {path}{}", features(&used.attrs))),
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
        let (name, parents) = place.split_last().expect("a name");
        let module = self.sources.module(parents).expect("it was found there");
        let defined: Vec<&Item> =
            module.items.iter().filter(|item| name_of(item).as_ref() == Some(name)).collect();
        for item in defined {
            self.item(item, path, features);
            if matches!(item, Item::Struct(_) | Item::Enum(_)) {
                self.blocks(place, path);
            }
        }
    }

    fn item(&mut self, item: &Item, path: &str, features: &str) {
        let said = format!("{features}{}", promises(attributes(item)));
        match item {
            Item::Struct(item) => {
                self.add(format!("struct {path}{}{said}", text(&item.generics)));
                self.fields(path, &item.fields);
            }
            Item::Enum(item) => {
                self.add(format!("enum {path}{}{said}", text(&item.generics)));
                for variant in item.variants.iter().filter(|variant| !is_hidden(&variant.attrs)) {
                    self.add(format!("  {path}::{}", text(&(&variant.ident, &variant.fields).tokens())));
                }
            }
            Item::Trait(item) => {
                let above = text(&item.supertraits);
                self.add(format!("trait {path}{}: {above}{said}", text(&item.generics)));
                for inner in &item.items {
                    self.of_trait(path, inner);
                }
            }
            Item::Fn(item) => self.add(format!("fn {path} {}{said}", text(&item.sig))),
            Item::Const(item) => self.add(format!("const {path}: {}{said}", text(&item.ty))),
            Item::Static(item) => self.add(format!("static {path}: {}{said}", text(&item.ty))),
            Item::Type(item) => {
                self.add(format!("type {path}{} = {}{said}", text(&item.generics), text(&item.ty)));
            }
            _ => {}
        }
    }

    fn fields(&mut self, path: &str, fields: &Fields) {
        for (index, field) in fields.iter().enumerate() {
            if is_public(&field.vis) && !is_hidden(&field.attrs) {
                let name = field.ident.as_ref().map_or(index.to_string(), ToString::to_string);
                self.add(format!("  {path}.{name}: {}", text(&field.ty)));
            }
        }
    }

    fn of_trait(&mut self, path: &str, item: &TraitItem) {
        match item {
            TraitItem::Fn(method) if !is_hidden(&method.attrs) => {
                let given = if method.default.is_some() { " { .. }" } else { "" };
                self.add(format!("  {path}: {}{given}", text(&method.sig)));
            }
            TraitItem::Type(of) if !is_hidden(&of.attrs) => self.add(format!("  {path}: {}", text(of))),
            TraitItem::Const(of) if !is_hidden(&of.attrs) => {
                self.add(format!("  {path}: const {}: {}", of.ident, text(&of.ty)));
            }
            _ => {}
        }
    }

    /// The public items in the `impl` blocks of a type, and the traits that it has.
    fn blocks(&mut self, place: &Place, path: &str) {
        let crates: Vec<String> = self.sources.crates().map(str::to_owned).collect();
        for (at, module) in crates.iter().flat_map(|name| self.sources.modules_of(name)) {
            for item in &module.items {
                let Item::Impl(block) = item else { continue };
                if self.sources.place_of(&at, &block.self_ty).as_ref() != Some(place) {
                    continue;
                }
                if let Some((_, of, _)) = &block.trait_ {
                    self.add(format!("  {path} is {}", text(of)));
                    continue;
                }
                for inner in &block.items {
                    match inner {
                        ImplItem::Fn(method) if is_public(&method.vis) && !is_hidden(&method.attrs) => {
                            let said = promises(&method.attrs);
                            self.add(format!("  {path}::{}{said}", text(&method.sig)));
                        }
                        ImplItem::Const(of) if is_public(&of.vis) && !is_hidden(&of.attrs) => {
                            self.add(format!("  {path}::{}: {}", of.ident, text(&of.ty)));
                        }
                        _ => {}
                    }
                }
            }
        }
    }

    /// What macros of the crate generate: their public methods, and where they are called.
    fn macros(&mut self, place: &[String], module: &Module) {
        for item in &module.items {
            let Item::Macro(item) = item else { continue };
            let path = place.join("::");
            match &item.ident {
                Some(name) => {
                    let mut found = Vec::new();
                    methods(item.mac.tokens.clone(), &mut found);
                    for method in found {
                        self.add(format!("  macro {path}::{name}!: {method}"));
                    }
                }
                None if !item.mac.path.is_ident("thread_local") => {
                    let called = format!("macro {path}: {}!", item.mac.path.to_token_stream());
                    let mut entries = Vec::new();
                    entries_of(without_comments(item.mac.tokens.clone()), &called, &mut entries);
                    entries.into_iter().for_each(|entry| self.add(format!("  {entry}")));
                }
                None => {}
            }
        }
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

/// The signatures of the public methods in the tokens of a macro.
fn methods(tokens: TokenStream, found: &mut Vec<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match &token {
            TokenTree::Group(group) => methods(group.stream(), found),
            TokenTree::Ident(word) if word == "pub" => {
                let mut signature = Vec::new();
                while let Some(next) = tokens.next_if(
                    |next| !matches!(next, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace),
                ) {
                    signature.push(next);
                }
                if matches!(signature.first(), Some(TokenTree::Ident(word)) if word == "fn") {
                    found.push(tidy(&signature.into_iter().collect::<TokenStream>().to_string()));
                }
            }
            _ => {}
        }
    }
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
    of_feature.map(|attribute| format!(" {}", text(attribute))).collect()
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
        (",)", ")"),
        (", }", " }"),
    ] {
        text = text.replace(wide, narrow);
    }
    text
}
