//! Where a template names things. minijinja says which names a template needs, but not where they stand, and
//! looks filters, tests and included templates up only when it renders: this reads its tags as far as that takes.

/// Something that a template names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mention<'a> {
    /// Of its first byte in the text.
    pub offset: usize,
    /// As written: `facts.os.family`, `b64encode`, `a/b.j2`.
    pub name: &'a str,
    /// What it is the name of.
    pub sort: Named,
}

/// What a name is the name of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Named {
    /// A value, by its path; or a keyword, which has the same form.
    Value,
    /// A filter: `| name`.
    Filter,
    /// A test: `is name`.
    Test,
    /// Another template, by a literal path, that must be there.
    Template,
}

/// Everything that the tags of a template name, in order. What is no template has no mentions that matter.
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

/// The same, of a bare expression.
pub fn in_expression(text: &str) -> Vec<Mention<'_>> {
    let mut mentions = Vec::new();
    code(text, 0, "\0", &mut mentions);
    mentions
}

fn first_word(tag: &str) -> &str {
    let tag = tag.trim_start_matches(['-', '+']).trim_start();
    &tag[..tag.find(|c: char| !is_word(c)).unwrap_or(tag.len())]
}

/// What stands in `raw` is text.
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

/// Reads code up to its closing delimiter, and returns what follows that.
fn code<'a>(text: &'a str, from: usize, close: &str, mentions: &mut Vec<Mention<'a>>) -> usize {
    let mut at = from;
    // The words and signs before, of which the sort of a name depends.
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
                // A number's dot is not that of a path.
                if c.is_ascii_digit() { word(rest) } else { path(rest) }
            }
            c => c.len_utf8(),
        };
        let token = &rest[..length];
        let sort = match (c, last) {
            (c, _) if c.is_whitespace() => {
                at += length;
                continue;
            }
            ('"' | '\'', "include" | "extends" | "import" | "from") if last == first && !optional => {
                Some(Named::Template)
            }
            (c, _) if !is_word(c) || c.is_ascii_digit() => None,
            (_, ".") => None,
            (_, "|") => Some(Named::Filter),
            (_, "filter") if first == "filter" => Some(Named::Filter),
            (_, "is") if token != "not" => Some(Named::Test),
            _ => Some(Named::Value),
        };
        match sort {
            Some(Named::Template) => {
                let name = token.trim_matches(c);
                mentions.push(Mention { offset: at, name, sort: Named::Template });
            }
            Some(sort) => mentions.push(Mention { offset: at, name: token, sort }),
            None => {}
        }
        // `is not` is one word of two.
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

    fn names(text: &str, sort: Named) -> Vec<(usize, &str)> {
        let mentions = in_template(text);
        mentions.iter().filter(|one| one.sort == sort).map(|one| (one.offset, one.name)).collect()
    }

    #[test]
    fn names_are_found_where_they_stand() {
        let text =
            "a {{ facts.os.id | to_json }}{# {{ x }} #}{% raw %}{{ y }}{% endraw %}{{ 'z.z' ~ w[1.5].v }}";
        assert_eq!(names(text, Named::Value), [(5, "facts.os.id"), (45, "raw"), (81, "w")]);
        assert_eq!(names(text, Named::Filter), [(19, "to_json")]);
        let text = "{% if a is not defined and b is even %}{% filter upper %}";
        assert_eq!(names(text, Named::Test), [(15, "defined"), (32, "even")]);
        assert_eq!(names(text, Named::Filter), [(49, "upper")]);
    }

    #[test]
    fn templates_that_must_be_there_are_named_by_literals() {
        let text = "{% include 'a.j2' %}{%- extends \"b.j2\" %}{% include c %}{% include 'd.j2' ignore missing %}\
                    {{ include ~ 'e' }}{% from \"f.j2\" import g %}";
        let found: Vec<_> = names(text, Named::Template).into_iter().map(|(_, name)| name).collect();
        assert_eq!(found, ["a.j2", "b.j2", "f.j2"]);
    }

    #[test]
    fn what_is_not_closed_ends_with_the_text() {
        for text in ["{{", "{% raw %}{{ x", "{# a", "{{ 'a", "{{ ä.", "{", "{%- raw", "{{ a\\"] {
            in_template(text);
            in_expression(text);
        }
    }
}
