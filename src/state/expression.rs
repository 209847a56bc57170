//! Strings of state files with `{{ }}`. A string without it is literal: braces and percent signs of a shell command
//! have no meaning.

/// Whether the string contains an expression.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// The expression, where the string is exactly one `{{ expression }}`: its value keeps its type.
pub(super) fn whole(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner);
    (!inner.contains("{{") && !inner.contains("}}")).then(|| inner.trim())
}

/// Whether a string may evaluate to `literal`. Only the parts before the first `{{` and after the last `}}` are compared,
/// so it may be a false positive, but never a false negative.
pub(super) fn could_become(text: &str, literal: &str) -> bool {
    let Some((before, rest)) = text.split_once("{{") else { return text == literal };
    let after = rest.rsplit_once("}}").map_or("", |(_, after)| after);
    literal.len() >= before.len() + after.len() && literal.starts_with(before) && literal.ends_with(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_expression_is_distinguished_from_a_string_with_expressions() {
        for (text, expected) in [
            ("{{ cluster.name }}", Some("cluster.name")),
            (" {{- a | join(',') -}} ", Some("a | join(',')")),
            ("{{ a }}{{ b }}", None),
            ("{{ a }}.b", None),
            ("a", None),
        ] {
            assert_eq!(whole(text), expected, "{text}");
        }
    }

    #[test]
    fn a_name_with_an_expression_could_become_what_has_its_ends() {
        for (text, literal, expected) in [
            ("/pki/{{ item }}.crt", "/pki/peer.crt", true),
            ("/pki/{{ item }}.crt", "/pki/peer.key", false),
            ("{{ a }}-{{ b }}", "x-y", true),
            ("ab{{ a }}bc", "abc", false),
            ("plain", "plain", true),
            ("plain", "other", false),
        ] {
            assert_eq!(could_become(text, literal), expected, "{text} {literal}");
        }
    }
}
