//! The names in a template and their positions. minijinja reports the names that a template reads, but not where, and
//! resolves filters, tests and includes only when it renders: this scans the tags as far as that needs.

/// A name in a template.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention<'a> {
    /// Of its first byte in the text.
    pub offset: usize,
    /// As written: `facts.os.family`, `b64encode`, `a/b.j2`.
    pub name: &'a str,
    /// What it refers to.
    pub kind: MentionKind,
}

/// What a name refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MentionKind {
    /// A value, by its path, or a keyword, which has the same form.
    Value,
    /// A filter: `| name`.
    Filter,
    /// A test: `is name`.
    Test,
    /// Another template, by a literal path, that must exist.
    Template,
}

/// The names in the tags of a template, in order.
pub fn in_template(text: &str) -> Vec<Mention<'_>> {
    let mut mentions = Vec::new();
    let mut from = 0;
    while let Some(begin) = text[from..].find('{').map(|at| from + at) {
        let rest = &text[begin..];
        from = match rest.as_bytes().get(1) {
            Some(b'#') => begin + rest.find("#}").map_or(rest.len(), |end| end + 2),
            Some(b'{') => code(text, begin + 2, "}}", &mut mentions),
            Some(b'%') => {
                let end = code(text, begin + 2, "%}", &mut mentions);
                if first_word(&text[begin + 2..end]) == "raw" { after_raw(text, end) } else { end }
            }
            _ => begin + 1,
        };
    }
    mentions
}

/// The names in a bare expression, in order.
pub fn in_expression(text: &str) -> Vec<Mention<'_>> {
    let mut mentions = Vec::new();
    code(text, 0, "\0", &mut mentions);
    mentions
}

fn first_word(tag: &str) -> &str {
    let tag = tag.trim_start_matches(['-', '+']).trim_start();
    &tag[..tag.find(|c: char| !is_word(c)).unwrap_or(tag.len())]
}

/// The end of a `raw` block, which is literal.
fn after_raw(text: &str, from: usize) -> usize {
    let mut at = from;
    while let Some(begin) = text[at..].find("{%").map(|found| at + found + 2) {
        if first_word(&text[begin..]) == "endraw" {
            return begin;
        }
        at = begin;
    }
    text.len()
}

/// Scans code up to its closing delimiter, and returns the offset after it.
fn code<'a>(text: &'a str, from: usize, close: &str, mentions: &mut Vec<Mention<'a>>) -> usize {
    let mut at = from;
    // The tokens before, on which the kind of a name depends.
    let mut last = "";
    let mut first = "";
    let optional = text[from..].split(close).next().is_some_and(|tag| tag.contains("ignore missing"));
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if rest.starts_with(close) {
            return at + close.len();
        }
        let length = match c {
            '"' | '\'' => string(rest, c),
            c if is_word(c) => {
                // The dot of a number is not part of a path.
                if c.is_ascii_digit() { word(rest) } else { path(rest) }
            }
            c => c.len_utf8(),
        };
        let token = &rest[..length];
        let kind = match (c, last) {
            (c, _) if c.is_whitespace() => {
                at += length;
                continue;
            }
            ('"' | '\'', "include" | "extends" | "import" | "from") if last == first && !optional => {
                Some(MentionKind::Template)
            }
            (c, _) if !is_word(c) || c.is_ascii_digit() => None,
            (_, ".") => None,
            (_, "|") => Some(MentionKind::Filter),
            (_, "filter") if first == "filter" => Some(MentionKind::Filter),
            (_, "is") if token != "not" => Some(MentionKind::Test),
            _ => Some(MentionKind::Value),
        };
        match kind {
            Some(MentionKind::Template) => {
                let name = token.trim_matches(c);
                mentions.push(Mention { offset: at, name, kind: MentionKind::Template });
            }
            Some(kind) => mentions.push(Mention { offset: at, name: token, kind }),
            None => {}
        }
        // `is not` is one operator.
        if (last, token) != ("is", "not") {
            last = token;
        }
        if first.is_empty() && is_word(c) {
            first = token;
        }
        at += length;
    }
    at
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(text: &str) -> usize {
    text.find(|c| !is_word(c)).unwrap_or(text.len())
}

/// The length of `a.b.c`.
fn path(text: &str) -> usize {
    let mut length = word(text);
    while let Some(next) = text[length..].strip_prefix('.') {
        let more = word(next);
        if more == 0 {
            break;
        }
        length += 1 + more;
    }
    length
}

/// The length of a string with its quotes.
fn string(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str, kind: MentionKind) -> Vec<(usize, &str)> {
        let mentions = in_template(text);
        mentions.iter().filter(|one| one.kind == kind).map(|one| (one.offset, one.name)).collect()
    }

    #[test]
    fn names_are_found_with_their_offset() {
        let text =
            "a {{ facts.os.id | to_json }}{# {{ x }} #}{% raw %}{{ y }}{% endraw %}{{ 'z.z' ~ w[1.5].v }}";
        assert_eq!(names(text, MentionKind::Value), [(5, "facts.os.id"), (45, "raw"), (81, "w")]);
        assert_eq!(names(text, MentionKind::Filter), [(19, "to_json")]);
        let text = "{% if a is not defined and b is even %}{% filter upper %}";
        assert_eq!(names(text, MentionKind::Test), [(15, "defined"), (32, "even")]);
        assert_eq!(names(text, MentionKind::Filter), [(49, "upper")]);
    }

    #[test]
    fn required_templates_are_literal_paths() {
        let text = "{% include 'a.j2' %}{%- extends \"b.j2\" %}{% include c %}{% include 'd.j2' ignore missing %}\
                    {{ include ~ 'e' }}{% from \"f.j2\" import g %}";
        let found: Vec<_> = names(text, MentionKind::Template).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, ["a.j2", "b.j2", "f.j2"]);
    }

    #[test]
    fn an_unclosed_tag_ends_with_the_text() {
        for text in ["{{", "{% raw %}{{ x", "{# a", "{{ 'a", "{{ ä.", "{", "{%- raw", "{{ a\\"] {
            in_template(text);
            in_expression(text);
        }
    }
}
