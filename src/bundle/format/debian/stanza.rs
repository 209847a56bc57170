//! The paragraphs of deb822(5): package indices, control files, `.sources` files.

use std::collections::BTreeMap;

/// Field → value of one paragraph; continuation lines are joined with a space.
pub(super) type Stanza = BTreeMap<String, String>;

/// The paragraphs of a file, without comments.
pub(super) fn parse(text: &str) -> Vec<Stanza> {
    let mut stanzas = Vec::new();
    let mut stanza = Stanza::new();
    let mut last = String::new();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if line.trim().is_empty() {
            if !stanza.is_empty() {
                stanzas.push(std::mem::take(&mut stanza));
            }
        } else if line.starts_with([' ', '\t']) {
            if let Some(value) = stanza.get_mut(&last) {
                value.push(' ');
                value.push_str(line.trim());
            }
        } else if let Some((field, value)) = line.split_once(':') {
            last = field.to_owned();
            stanza.insert(last.clone(), value.trim().to_owned());
        }
    }
    if !stanza.is_empty() {
        stanzas.push(stanza);
    }
    stanzas
}
