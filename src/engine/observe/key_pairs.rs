//! Key pairs: whether the private key and the certificate have the same public key. The private key never leaves
//! `openssl`.

use super::questions::Questions;
use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

pub(super) fn ask(questions: &Questions<'_>) -> Vec<Section> {
    let mut script = "pair() {\n\
         [ -f \"$1\" ] && [ -f \"$2\" ] || { echo no; return; }\n\
         k=$(openssl pkey -in \"$1\" -pubout 2>/dev/null) && [ -n \"$k\" ] &&\n\
         [ \"$k\" = \"$(openssl x509 -in \"$2\" -noout -pubkey 2>/dev/null)\" ] && echo yes || echo no\n}\n\
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
