//! `#[derive(Record)]`: a struct whose fields fold on their own is a value of a table of FoldDB.
//!
//! Internal, no promises: use it through crate `folddb`, since the generated code uses names of
//! that crate. The generated code is short: it names the fields, and calls `folddb::codec::record`
//! for everything else.

#![forbid(unsafe_code)]

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::{Data, DeriveInput, Error, Field, Fields, GenericArgument, Ident, PathArguments, Result, Type};

/// The folds that a field may name, and the type in `folddb::folds` for each.
const NAMED: [(&str, &str); 4] = [("sum", "Sum"), ("min", "Min"), ("max", "Max"), ("first", "First")];

/// A struct as a value of a table. It folds field by field.
///
/// ```text
/// #[derive(Record)]
/// struct Route {
///     #[fold(sum)]
///     flights: u64,           // sum:u64
///     delay: Stats,           // its own fold, stats:f64
///     tails: Option<Hll>,     // may be absent
///     carrier: String,        // the later one replaces the earlier
/// }
/// ```
///
/// Each field folds by the fold of its type, or by `#[fold(sum)]`, `min`, `max` or `first`. If its
/// type has no fold, a later value replaces the earlier one. The rules of the table contain the
/// names of the fields: do not rename a field once the table exists.
#[proc_macro_derive(Record, attributes(fold))]
pub fn record(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as DeriveInput);
    expand(&input).unwrap_or_else(Error::into_compile_error).into()
}

/// A field of the struct: its name, its type, and the type that names its fold if that is a
/// different one.
struct RecordField<'a> {
    name: &'a Ident,
    stored_name: String,
    own: &'a Type,
    named: Option<TokenStream>,
}

impl RecordField<'_> {
    /// The type that it is stored as.
    fn stored(&self) -> TokenStream {
        let own = self.own;
        self.named.clone().unwrap_or_else(|| quote!(#own))
    }
}

fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let fields = fields_of(input)?;
    let (name, own) = (&input.ident, quote!(::folddb::codec));
    let (generics, types, bounds) = input.generics.split_for_impl();
    let stored: Vec<TokenStream> = fields.iter().map(RecordField::stored).collect();
    let names = fields.iter().map(|field| &field.stored_name);
    let lens = quote!(&[#(<#stored as #own::Value>::FIELD_LEN),*]);
    let folds = quote!(&[#((#names, <#stored as #own::Value>::field_fold())),*]);
    let puts = fields.iter().map(put_of);
    let takes = fields.iter().map(take_of);
    Ok(quote! {
        impl #generics #own::AsValue<#name #types> for #name #types #bounds {
            fn encode(&self, out: &mut ::std::vec::Vec<u8>) {
                let mut record = #own::record::RecordWriter::new(#lens, out);
                #(#puts)*
            }
        }

        impl #generics #own::Value for #name #types #bounds {
            const ENCODES_SURELY: bool = #(<#stored as #own::Value>::ENCODES_SURELY)&&*;
            const FIELD_LEN: ::std::option::Option<usize> = #own::record::len_of(#lens);

            fn default_fold() -> ::folddb::folds::FoldSpec {
                #own::record::fold_of(#folds)
            }

            fn fit(fold: &dyn ::folddb::Fold) -> #own::Fit {
                #own::record::fit_of(fold, #folds, <Self as #own::Value>::ENCODES_SURELY)
            }

            fn put_nothing(out: &mut ::std::vec::Vec<u8>) {
                #(<#stored as #own::Value>::put_nothing(out);)*
            }

            fn decode(bytes: &[u8]) -> ::std::result::Result<Self, #own::CodecError> {
                let mut record = #own::record::RecordReader::new(#lens, bytes)?;
                let value = Self { #(#takes),* };
                record.finish()?;
                ::std::result::Result::Ok(value)
            }
        }
    })
}

fn put_of(field: &RecordField<'_>) -> TokenStream {
    let (name, own) = (field.name, field.own);
    match &field.named {
        Some(named) => quote!(record.put_as::<#named, #own>(&self.#name);),
        None => quote!(record.put::<#own>(&self.#name);),
    }
}

fn take_of(field: &RecordField<'_>) -> TokenStream {
    let (name, stored_name, own) = (field.name, &field.stored_name, field.own);
    match &field.named {
        Some(named) => quote!(#name: record.take_as::<#named, #own>(#stored_name)?),
        None => quote!(#name: record.take::<#own>(#stored_name)?),
    }
}

fn fields_of(input: &DeriveInput) -> Result<Vec<RecordField<'_>>> {
    let wrong = |what| Err(Error::new_spanned(&input.ident, what));
    let Data::Struct(data) = &input.data else {
        return wrong("a record is a struct: its fields fold on their own");
    };
    let Fields::Named(named) = &data.fields else {
        return wrong("a record has named fields; for fields without names use a tuple: `(Sum<u64>, Stats)`");
    };
    if named.named.is_empty() || named.named.len() > 256 {
        return wrong("a record has 1 to 256 fields");
    }
    named.named.iter().map(field_of).collect()
}

fn field_of(field: &Field) -> Result<RecordField<'_>> {
    let Some(name) = &field.ident else {
        return Err(Error::new_spanned(field, "a field of a record has a name"));
    };
    let mut named = None;
    for attribute in field.attrs.iter().filter(|attribute| attribute.path().is_ident("fold")) {
        let word: Ident = attribute.parse_args()?;
        let found = NAMED.iter().find(|(fold, _)| word == fold);
        let Some((_, wrapper)) = found else {
            let message = "expected `sum`, `min`, `max` or `first`; other folds have types of their own, see \
                           `folddb::folds`";
            return Err(Error::new_spanned(word, message));
        };
        if named.is_some() {
            return Err(Error::new_spanned(word, "a field has one fold"));
        }
        let wrapper = Ident::new(wrapper, word.span());
        named = Some(match inside_option(&field.ty) {
            Some(inner) => quote!(::std::option::Option<::folddb::folds::#wrapper<#inner>>),
            None => {
                let own = &field.ty;
                quote!(::folddb::folds::#wrapper<#own>)
            }
        });
    }
    Ok(RecordField { name, stored_name: name.unraw().to_string(), own: &field.ty, named })
}

/// The `T` of an `Option<T>`, as it is written.
fn inside_option(own: &Type) -> Option<&Type> {
    let Type::Path(path) = own else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == "Option")?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    match arguments.args.first()? {
        GenericArgument::Type(inner) => Some(inner),
        _ => None,
    }
}
