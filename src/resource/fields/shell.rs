//! Quoting of data that stands in the shell text of a guard or of [`Step::Run`](crate::resource::contract::step::Step::Run).

/// The text as one word of a POSIX shell, whatever it holds (NUL, which no argument can hold, was refused
/// when the resource was parsed).
pub(in crate::resource) fn word(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_has_no_way_out() {
        for (text, quoted) in [("", "''"), ("a b", "'a b'"), ("it's", r"'it'\''s'"), ("$(x)\n", "'$(x)\n'")] {
            assert_eq!(word(text), quoted);
        }
    }
}
