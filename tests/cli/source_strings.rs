//! The string literals of the sources, without those of comments and test modules.

use std::path::{Path, PathBuf};

use proc_macro2::{TokenStream, TokenTree};

pub fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Every file below a folder with this extension, as paths relative to the package, in order.
pub fn files(folder: &str, extension: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|found| found == extension) {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

pub fn read(path: &Path) -> String {
    std::fs::read_to_string(root().join(path)).unwrap()
}

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
