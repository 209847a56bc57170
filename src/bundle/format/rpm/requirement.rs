//! Requirements of packages, with boolean ones (rpm.org, "Boolean Dependencies").

use super::version_range::VersionRange;

/// What a package requires.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Requirement {
    /// A package, a capability or a file, at any version or at one in a range.
    One(String, Option<VersionRange>),
    /// `(a and b)`, `(a with b)`.
    All(Vec<Requirement>),
    /// `(a or b)`.
    Any(Vec<Requirement>),
    /// `(a if b)`, `(a if b else c)`: the first, the condition, the last.
    If(Box<[Requirement; 2]>, Option<Box<Requirement>>),
    /// `(a unless b)`: the first, the condition.
    Unless(Box<[Requirement; 2]>),
}

impl Requirement {
    /// `runc >= 1.2`, `(a >= 1 or b)`. `None` when it is neither.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        // Names have parentheses too: `libc.so.6(GLIBC_2.34)(64bit)`.
        if !text.starts_with('(') {
            return single(text);
        }
        let inner = text.strip_prefix('(')?.strip_suffix(')')?;
        let (terms, operators) = terms(inner)?;
        let mut terms: Vec<Self> = terms.into_iter().map(Self::parse).collect::<Option<_>>()?;
        match operators.as_slice() {
            [] => terms.pop(),
            [first, rest @ ..] if rest.iter().all(|other| other == first) => match *first {
                "and" | "with" => Some(Self::All(terms)),
                "or" => Some(Self::Any(terms)),
                "if" => Some(Self::If(pair(terms)?, None)),
                "unless" => Some(Self::Unless(pair(terms)?)),
                // Packages that the second would exclude are not told apart.
                "without" => Some(terms.swap_remove(0)),
                _ => None,
            },
            ["if", "else"] => {
                let otherwise = Box::new(terms.pop()?);
                Some(Self::If(pair(terms)?, Some(otherwise)))
            }
            _ => None,
        }
    }
}

fn pair(terms: Vec<Requirement>) -> Option<Box<[Requirement; 2]>> {
    Some(Box::new(<[Requirement; 2]>::try_from(terms).ok()?))
}

fn single(text: &str) -> Option<Requirement> {
    let words: Vec<&str> = text.split_whitespace().collect();
    match words[..] {
        [name] => Some(Requirement::One(name.to_owned(), None)),
        [name, operator, evr] => {
            Some(Requirement::One(name.to_owned(), Some(VersionRange::parse(operator, evr)?)))
        }
        _ => None,
    }
}

/// The terms of a boolean requirement and the operators between them.
fn terms(text: &str) -> Option<(Vec<&str>, Vec<&str>)> {
    const OPERATORS: [&str; 7] = ["and", "or", "if", "else", "unless", "with", "without"];
    let (mut terms, mut operators, mut depth, mut start) = (Vec::new(), Vec::new(), 0_u32, 0);
    let mut at = 0;
    for word in text.split_inclusive(char::is_whitespace) {
        let bare = word.trim_end();
        if depth == 0 && OPERATORS.contains(&bare) {
            terms.push(text[start..at].trim());
            operators.push(bare);
            start = at + word.len();
        }
        for c in bare.chars() {
            depth = match c {
                '(' => depth + 1,
                ')' => depth.checked_sub(1)?,
                _ => depth,
            };
        }
        at += word.len();
    }
    terms.push(text[start..].trim());
    (depth == 0).then_some((terms, operators))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Prefix notation.
    fn shown(requirement: &Requirement) -> String {
        let all = |name: &str, terms: &[Requirement]| {
            let terms: Vec<String> = terms.iter().map(shown).collect();
            format!("{name}[{}]", terms.join(", "))
        };
        match requirement {
            Requirement::One(name, None) => name.clone(),
            Requirement::One(name, Some(_)) => format!("{name}?"),
            Requirement::All(terms) => all("all", terms),
            Requirement::Any(terms) => all("any", terms),
            Requirement::If(pair, None) => all("if", pair.as_ref()),
            Requirement::If(pair, Some(other)) => {
                format!("{} else {}", all("if", pair.as_ref()), shown(other))
            }
            Requirement::Unless(pair) => all("unless", pair.as_ref()),
        }
    }

    #[test]
    fn requirements_are_parsed_with_their_terms() {
        for (text, expected) in [
            ("runc", "runc"),
            ("runc >= 1.2", "runc?"),
            ("libc.so.6(GLIBC_2.34)(64bit)", "libc.so.6(GLIBC_2.34)(64bit)"),
            ("(a)", "a"),
            ("(a >= 1 or b or c)", "any[a?, b, c]"),
            ("(a and (b or c(x)))", "all[a, any[b, c(x)]]"),
            ("(a >= 1 with a < 2)", "all[a?, a?]"),
            ("(a if b)", "if[a, b]"),
            ("((a >= 1 or x) if b else c)", "if[any[a?, x], b] else c"),
            ("(a unless b)", "unless[a, b]"),
            ("(a without b)", "a"),
        ] {
            assert_eq!(Requirement::parse(text).as_ref().map(shown).as_deref(), Some(expected), "{text}");
        }
        for bad in ["", "a >= ", "a ~ 1", "(a", "(a or)", "(a or b and c)", "(a) or b)", "(a if b if c)"] {
            assert_eq!(Requirement::parse(bad), None, "{bad}");
        }
    }
}
