//! Key pairs: the public key of the private key beside that of the certificate. The private key never
//! leaves `openssl`.

use std::collections::BTreeSet;

use super::{Answers, ObserveError, Section};
use crate::engine::frame::Sections;
use crate::model::shell_word::quote;
use crate::resource::contract::probe::{Answer, Probe};

fn pairs(probes: &BTreeSet<Probe>) -> Vec<(&str, &str)> {
    probes
        .iter()
        .filter_map(|probe| match probe {
            Probe::KeyPair { key, certificate } => Some((key.as_str(), certificate.as_str())),
            _ => None,
        })
        .collect()
}

pub(super) fn ask(probes: &BTreeSet<Probe>) -> Vec<Section> {
    let pairs = pairs(probes);
    if pairs.is_empty() {
        return Vec::new();
    }
    let mut script = "pair() {\n\
         [ -f \"$1\" ] && [ -f \"$2\" ] || { echo no; return; }\n\
         k=$(openssl pkey -in \"$1\" -pubout 2>/dev/null) && [ -n \"$k\" ] &&\n\
         [ \"$k\" = \"$(openssl x509 -in \"$2\" -noout -pubkey 2>/dev/null)\" ] && echo yes || echo no\n}\n\
         if command -v openssl >/dev/null; then :\n"
        .to_owned();
    for (key, certificate) in pairs {
        script.push_str(&format!("pair {} {}\n", quote(key), quote(certificate)));
    }
    script.push_str("fi\n");
    vec![("key-pairs", script)]
}

pub(super) fn answer(
    probes: &BTreeSet<Probe>,
    sections: &Sections,
    answers: &mut Answers,
) -> Result<(), ObserveError> {
    let pairs = pairs(probes);
    if pairs.is_empty() {
        return Ok(());
    }
    let text = sections.text("key-pairs")?;
    let mut lines = text.lines();
    for (key, certificate) in pairs {
        let answer = match lines.next() {
            Some(line) => Answer::KeyPair(line == "yes"),
            None => Answer::Failed("the host has no openssl".to_owned()),
        };
        answers.insert(Probe::KeyPair { key: key.to_owned(), certificate: certificate.to_owned() }, answer);
    }
    Ok(())
}
