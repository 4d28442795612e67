//! What the macros of the crates write: a call of a `macro_rules!` macro is replaced by the items
//! that it makes, as the compiler does it.

use std::collections::BTreeMap;

use proc_macro2::{Delimiter, Group, Literal, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::ext::IdentExt;
use syn::parse::discouraged::Speculative;
use syn::parse::{ParseStream, Parser};
use syn::{Item, ItemMacro};

/// A macro: for each form of a call, what is written.
pub(crate) struct Macro(Vec<(Vec<Part>, Vec<Part>)>);

/// A part of a form, or of what is written.
enum Part {
    Token(TokenTree),
    Group(Delimiter, Vec<Part>),
    /// `$name`, in a form with what it stands for: `$name:ty`.
    Variable(String, String),
    /// `$(..),+`.
    Repeated {
        parts: Vec<Part>,
        separator: Vec<TokenTree>,
        is_optional: bool,
    },
}

type Bindings = BTreeMap<String, Bound>;

/// What a variable stands for: once, or in each repetition.
#[derive(Clone)]
enum Bound {
    Once(TokenStream),
    Repeated(Vec<Bound>),
}

impl Macro {
    /// Reads the definition of a macro.
    pub(crate) fn read(definition: &ItemMacro) -> Macro {
        let mut rules = Vec::new();
        let mut tokens = definition.mac.tokens.clone().into_iter();
        while let (Some(TokenTree::Group(form)), Some(_), Some(_), Some(TokenTree::Group(body))) =
            (tokens.next(), tokens.next(), tokens.next(), tokens.next())
        {
            rules.push((parts_of(form.stream(), true), parts_of(body.stream(), false)));
            tokens.next(); // a semicolon
        }
        Macro(rules)
    }

    /// The items that a call writes, which need the same features as the call.
    pub(crate) fn expand(&self, call: &ItemMacro) -> Vec<Item> {
        let written = self.0.iter().find_map(|(form, body)| {
            let whole = |input: ParseStream<'_>| bind_all(form, input);
            let bindings = whole.parse2(call.mac.tokens.clone()).ok()?;
            let mut written = TokenStream::new();
            write_all(body, &bindings, &mut written);
            Some(written)
        });
        let name = call.mac.path.to_token_stream();
        let written = written.unwrap_or_else(|| panic!("no form of `{name}!` fits a call"));
        let file: syn::File =
            syn::parse2(written).unwrap_or_else(|error| panic!("`{name}!` writes no items: {error}"));
        let attributes = &call.attrs;
        let with_features = |item: Item| syn::parse2(quote!(#(#attributes)* #item)).expect("an item");
        file.items.into_iter().map(with_features).collect()
    }
}

/// The parts of a form, or of what is written.
fn parts_of(tokens: TokenStream, is_form: bool) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        let is_dollar = is_mark(&token, '$');
        parts.push(match (token, is_dollar.then(|| tokens.next()).flatten()) {
            (_, Some(TokenTree::Ident(name))) => {
                let kind = tokens.next_if(|next| is_form && is_mark(next, ':')).and_then(|_| tokens.next());
                Part::Variable(name.to_string(), kind.map(|kind| kind.to_string()).unwrap_or_default())
            }
            (_, Some(TokenTree::Group(group))) => {
                let is_end = |next: &TokenTree| ['*', '+', '?'].iter().any(|mark| is_mark(next, *mark));
                let separator = std::iter::from_fn(|| tokens.next_if(|next| !is_end(next))).collect();
                let is_optional = tokens.next().is_some_and(|end| is_mark(&end, '?'));
                Part::Repeated { parts: parts_of(group.stream(), is_form), separator, is_optional }
            }
            (TokenTree::Group(group), _) => Part::Group(group.delimiter(), parts_of(group.stream(), is_form)),
            (token, _) => Part::Token(token),
        });
    }
    parts
}

fn is_mark(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(mark) if mark.as_char() == wanted)
}

/// Fits the whole of `input` to a form.
fn bind_all(form: &[Part], input: ParseStream<'_>) -> syn::Result<Bindings> {
    let mut bindings = Bindings::new();
    bind(form, input, &mut bindings)?;
    if input.is_empty() { Ok(bindings) } else { Err(input.error("more than the form has")) }
}

fn bind(form: &[Part], input: ParseStream<'_>, bindings: &mut Bindings) -> syn::Result<()> {
    for part in form {
        match part {
            Part::Token(token) => take(token, input)?,
            Part::Group(delimiter, inner) => match input.parse::<TokenTree>()? {
                TokenTree::Group(group) if group.delimiter() == *delimiter => {
                    let whole = |input: ParseStream<'_>| bind_all(inner, input);
                    bindings.extend(whole.parse2(group.stream())?);
                }
                other => return Err(syn::Error::new(other.span(), "another bracket")),
            },
            Part::Variable(name, kind) => {
                bindings.insert(name.clone(), Bound::Once(fragment(kind, input)?));
            }
            Part::Repeated { parts, separator, is_optional } => {
                let rounds = bind_repeated(parts, separator, *is_optional, input);
                for name in variables_of(parts) {
                    let of_rounds = rounds.iter().map(|round| round[name].clone()).collect();
                    bindings.insert(name.to_owned(), Bound::Repeated(of_rounds));
                }
            }
        }
    }
    Ok(())
}

fn bind_repeated(
    parts: &[Part],
    separator: &[TokenTree],
    is_optional: bool,
    input: ParseStream<'_>,
) -> Vec<Bindings> {
    let mut rounds = Vec::new();
    let rounds_max = if is_optional { 1 } else { usize::MAX };
    while !input.is_empty() && rounds.len() < rounds_max {
        let attempt = input.fork();
        let mut round = Bindings::new();
        let between = if rounds.is_empty() { &[] } else { separator };
        let fits = between.iter().try_for_each(|token| take(token, &attempt));
        if fits.and_then(|()| bind(parts, &attempt, &mut round)).is_err() {
            break;
        }
        input.advance_to(&attempt);
        rounds.push(round);
    }
    rounds
}

fn take(wanted: &TokenTree, input: ParseStream<'_>) -> syn::Result<()> {
    let found: TokenTree = input.parse()?;
    if found.to_string() == wanted.to_string() { Ok(()) } else { Err(input.error("another token")) }
}

fn fragment(kind: &str, input: ParseStream<'_>) -> syn::Result<TokenStream> {
    Ok(match kind {
        "ident" => syn::Ident::parse_any(input)?.to_token_stream(),
        "ty" => input.parse::<syn::Type>()?.to_token_stream(),
        "tt" => input.parse::<TokenTree>()?.to_token_stream(),
        "expr" => input.parse::<syn::Expr>()?.to_token_stream(),
        "path" => input.parse::<syn::Path>()?.to_token_stream(),
        "literal" => input.parse::<Literal>()?.to_token_stream(),
        "lifetime" => input.parse::<syn::Lifetime>()?.to_token_stream(),
        "meta" => input.parse::<syn::Meta>()?.to_token_stream(),
        other => panic!("the fragment `{other}` is to be added to {}", file!()),
    })
}

fn variables_of(parts: &[Part]) -> Vec<&str> {
    let of_part = |part| match part {
        &Part::Token(_) => Vec::new(),
        Part::Variable(name, _) => vec![name.as_str()],
        Part::Group(_, parts) | Part::Repeated { parts, .. } => variables_of(parts),
    };
    parts.iter().flat_map(of_part).collect()
}

fn write_all(body: &[Part], bindings: &Bindings, written: &mut TokenStream) {
    for part in body {
        match part {
            Part::Token(token) => token.to_tokens(written),
            Part::Variable(name, _) if name == "crate" => written.extend(quote!(crate)),
            Part::Variable(name, _) => match &bindings[name] {
                Bound::Once(tokens) => tokens.to_tokens(written),
                Bound::Repeated(_) => panic!("`${name}` is repeated where it is read"),
            },
            Part::Group(delimiter, parts) => {
                let mut inner = TokenStream::new();
                write_all(parts, bindings, &mut inner);
                Group::new(*delimiter, inner).to_tokens(written);
            }
            Part::Repeated { parts, separator, .. } => {
                for (index, round) in rounds_of(parts, bindings).iter().enumerate() {
                    let between = if index == 0 { &[] } else { separator.as_slice() };
                    written.extend(between.iter().cloned());
                    write_all(parts, round, written);
                }
            }
        }
    }
}

/// The bindings of each round of a repetition: as often as its variables are repeated.
fn rounds_of(parts: &[Part], bindings: &Bindings) -> Vec<Bindings> {
    let repeated: Vec<(&str, &Vec<Bound>)> = variables_of(parts)
        .into_iter()
        .filter_map(|name| match bindings.get(name)? {
            Bound::Repeated(rounds) => Some((name, rounds)),
            Bound::Once(_) => None,
        })
        .collect();
    let count = repeated.iter().map(|(_, rounds)| rounds.len()).min().expect("something is repeated");
    let round = |index: usize| {
        let mut of_round = bindings.clone();
        of_round.extend(repeated.iter().map(|(name, rounds)| ((*name).to_owned(), rounds[index].clone())));
        of_round
    };
    (0..count).map(round).collect()
}
