//! Text of state files that may hold `{{ }}`. Text without it is literal: braces and percent signs of a
//! shell command mean nothing here.

/// Whether there is anything to evaluate.
pub(super) fn is_template(text: &str) -> bool {
    text.contains("{{")
}

/// The expression, when the text is exactly one `{{ expression }}`: its value then keeps its type.
pub(super) fn whole(text: &str) -> Option<&str> {
    let inner = text.trim().strip_prefix("{{")?.strip_suffix("}}")?;
    let inner = inner.strip_prefix('-').unwrap_or(inner);
    let inner = inner.strip_suffix('-').unwrap_or(inner);
    (!inner.contains("{{") && !inner.contains("}}")).then(|| inner.trim())
}

/// Whether a text can turn out to be `literal` once it is evaluated. Judged by what stands before its first
/// `{{` and after its last `}}`, so it may say yes where the answer is no, and never the reverse.
pub(super) fn could_become(text: &str, literal: &str) -> bool {
    let Some((before, rest)) = text.split_once("{{") else { return text == literal };
    let after = rest.rsplit_once("}}").map_or("", |(_, after)| after);
    literal.len() >= before.len() + after.len() && literal.starts_with(before) && literal.ends_with(after)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_expression_alone_is_told_from_text_with_expressions() {
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
