//! The string literals of the sources, without those of comments and test modules.

use proc_macro2::{TokenStream, TokenTree};

/// The string literals of a Rust file, each with its line.
pub fn literals(source: &str) -> Vec<(usize, String)> {
    let shipped = source.split("#[cfg(test)]").next().unwrap();
    let mut found = Vec::new();
    collect(shipped.parse().unwrap(), &mut found);
    found
}

fn collect(tokens: TokenStream, found: &mut Vec<(usize, String)>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(hash) if hash.as_char() == '#' => {
                if let Some(TokenTree::Punct(_)) = tokens.peek() {
                    tokens.next();
                }
                // Doc comments are attributes.
                let is_doc = matches!(tokens.peek(), Some(TokenTree::Group(group)) if group.stream().to_string().starts_with("doc"));
                if is_doc {
                    tokens.next();
                }
            }
            TokenTree::Group(group) => collect(group.stream(), found),
            TokenTree::Literal(literal) => {
                if let Ok(string) = syn::parse_str::<syn::LitStr>(&literal.to_string()) {
                    found.push((literal.span().start().line, string.value()));
                }
            }
            TokenTree::Ident(_) | TokenTree::Punct(_) => {}
        }
    }
}

#[test]
fn literals_are_found_in_macros_and_not_in_comments_or_tests() {
    let source = "//! \"a\"\n/// \"b\"\nfn f() {\n    // \"c\"\n    format!(\"d{}\", r#\"e\"#)\n}\n#[error(\"f\\\n   g\")]\nstruct S;\n#[cfg(test)]\nmod tests { const X: &str = \"h\"; }\n";
    let found: Vec<String> = literals(source).into_iter().map(|(_, string)| string).collect();
    assert_eq!(found, ["d{}", "e", "fg"]);
}
