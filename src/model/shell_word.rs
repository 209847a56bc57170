//! Data as words of a POSIX shell (section 2.2.2 of its standard).

/// The string as one word: bare where that is safe, else in single quotes. NUL, which no argument can contain, is
/// refused before a string gets here.
pub fn quote(text: &str) -> String {
    let safe = |byte: u8| byte.is_ascii_alphanumeric() || b"_@%+:,./-".contains(&byte);
    if !text.is_empty() && text.bytes().all(safe) {
        text.to_owned()
    } else {
        format!("'{}'", text.replace('\'', r"'\''"))
    }
}

/// Each string as one word, separated by spaces.
pub fn quote_all<'a>(texts: impl IntoIterator<Item = &'a str>) -> String {
    texts.into_iter().map(quote).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;

    #[test]
    fn words_are_quoted_only_when_necessary() {
        for (text, quoted) in [
            ("", "''"),
            ("/etc/hosts", "/etc/hosts"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(reboot)", "'$(reboot)'"),
            ("$(x)\n", "'$(x)\n'"),
            ("~root", "'~root'"),
            ("a=b", "'a=b'"),
            ("ä", "'ä'"),
        ] {
            assert_eq!(quote(text), quoted);
        }
        assert_eq!(quote_all(["a", "b c"]), "a 'b c'");
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config::with_cases(64))]
        #[test]
        fn a_shell_reads_a_quoted_word_unchanged(text in "[^\0]*") {
            let out = Command::new("sh").arg("-c").arg(format!("printf %s {}", quote(&text))).output().unwrap();
            proptest::prop_assert_eq!(String::from_utf8(out.stdout).unwrap(), text);
        }
    }
}
