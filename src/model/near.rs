//! Suggestions for misspelt words.

use std::fmt;

/// The known word that is most similar to an unknown one, if any. Displayed at the end of a message.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Near(Option<String>);

impl Near {
    /// A word is similar when at most a third of its characters, and at least one, differ.
    pub fn to<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Self {
        let allowed = (word.chars().count() / 3).max(1);
        let nearest = known
            .into_iter()
            .map(|candidate| (strsim::damerau_levenshtein(word, candidate), candidate))
            .filter(|(distance, _)| *distance <= allowed)
            .min();
        Self(nearest.map(|(_, candidate)| candidate.to_owned()))
    }
}

impl fmt::Display for Near {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Some(word) => write!(f, "; did you mean {word:?}?"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_similar_word_is_suggested() {
        let suggest = |word| Near::to(word, ["version", "hold", "ensure"]).to_string();
        assert_eq!(suggest("verison"), "; did you mean \"version\"?");
        assert_eq!(suggest("holds"), "; did you mean \"hold\"?");
        assert_eq!(suggest("content"), "");
        assert_eq!(suggest("vresion"), "; did you mean \"version\"?");
    }
}
