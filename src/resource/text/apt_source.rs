//! A package source of apt, in deb822 style (sources.list(5)).

use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::package_source::{Layout, Texts};

pub(in crate::resource) fn layout(name: &str) -> Layout {
    Layout {
        source: format!("/etc/apt/sources.list.d/{name}.sources"),
        key: format!("/etc/apt/keyrings/{name}.asc"),
        ca: Some(format!("/etc/apt/apt.conf.d/90metalform-{name}")),
        all: "/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources",
        disabled: "/etc/apt/sources.list.metalform-disabled /etc/apt/sources.list.d/*.metalform-disabled",
    }
}

pub(in crate::resource) fn texts(layout: &Layout, given: &Given) -> Result<Texts, FieldError> {
    if given.has("signed_index") {
        return Err(given.invalid("signed_index", "it goes with rpm"));
    }
    if !given.has("suite") {
        return Err(given.invalid("suite", "deb needs it"));
    }
    let [uri, suite] = [given.need_word("uri")?, given.need_word("suite")?];
    let components = given.list("components");
    if suite.ends_with('/') != components.is_empty() {
        return Err(given.invalid("components", "they go with a suite, and not with a path that ends with /"));
    }
    if components.iter().any(|component| component.is_empty() || component.contains(char::is_whitespace)) {
        return Err(given.invalid("components", "each must be one word"));
    }
    let components = match components.as_slice() {
        [] => String::new(),
        some => format!("Components: {}\n", some.join(" ")),
    };
    let key = &layout.key;
    let source = format!("Types: deb\nURIs: {uri}\nSuites: {suite}\n{components}Signed-By: {key}\n");
    Ok(Texts { source, ca: ca(given)? })
}

/// The configuration that makes apt trust the authority for this host alone (apt-transport-https(1)).
fn ca(given: &Given) -> Result<Option<String>, FieldError> {
    let Some(ca) = path::field(given, "ca")? else { return Ok(None) };
    let uri = given.need_line("uri")?;
    let Some(rest) = uri.strip_prefix("https://") else {
        return Err(given.invalid("ca", "it goes with a uri of https"));
    };
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = host.split(':').next().unwrap_or(host);
    // apt's configuration has no way to write the colons of an IPv6 address in a name.
    if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-') {
        return Err(given.invalid("ca", "the uri must have a host name or an IPv4 address"));
    }
    if ca.contains(|c: char| c == '"' || c == '\\' || c.is_control()) {
        return Err(given.invalid("ca", "apt cannot read a path with these characters"));
    }
    Ok(Some(format!("Acquire::https::{host}::CaInfo \"{ca}\";\n")))
}
