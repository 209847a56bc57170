//! Key pairs: whether the private key belongs to the certificate. The private key never leaves `openssl`.

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    // Both at once, by the only command that compares them: it refuses to export a key that is not the certificate's.
    let mut script = "pair() {\n\
         [ -f \"$1\" ] && [ -f \"$2\" ] && openssl pkcs12 -export -inkey \"$1\" -in \"$2\" -passin pass: -passout pass: \\\n\
         -keypbe NONE -certpbe NONE -nomac -out /dev/null </dev/null >/dev/null 2>&1 && echo yes || echo no\n}\n\
         if command -v openssl >/dev/null; then :\n"
        .to_owned();
    for &(key, certificate) in &questions.key_pairs {
        script.push_str(&format!("pair {} {}\n", quote(key), quote(certificate)));
    }
    script.push_str("fi\n");
    vec![("key-pairs", script)]
}

pub(super) fn answer(
    questions: &Questions<'_>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let text = sections.text("key-pairs")?;
    let mut lines = text.lines();
    for &(key, certificate) in &questions.key_pairs {
        let answer = match lines.next() {
            Some(line) => Answer::KeyPair(line == "yes"),
            None => Answer::Failed("the host has no openssl".to_owned()),
        };
        answers.insert(Probe::KeyPair { key: key.to_owned(), certificate: certificate.to_owned() }, answer);
    }
    Ok(())
}
