//! A package source of apt, in deb822 style (sources.list(5)).

use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::kinds::package_repository::package_source::{SourceLayout, Texts};

pub fn layout(name: &str) -> SourceLayout {
    SourceLayout {
        source: format!("/etc/apt/sources.list.d/{name}.sources"),
        key: format!("/etc/apt/keyrings/{name}.asc"),
        ca: Some(format!("/etc/apt/apt.conf.d/90metalform-{name}")),
        all: "/etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources",
        disabled: "/etc/apt/sources.list.metalform-disabled /etc/apt/sources.list.d/*.metalform-disabled",
    }
}

pub fn texts(layout: &SourceLayout, fields: &FieldValues) -> Result<Texts, FieldError> {
    for field in ["signed_index", "signed_packages"] {
        if fields.has(field) {
            return Err(fields.invalid(field, "requires format rpm"));
        }
    }
    if !fields.has("suite") {
        return Err(fields.invalid("suite", "required with format deb"));
    }
    let [uri, suite] = [fields.need_word("uri")?, fields.need_word("suite")?];
    let components = fields.list("components");
    if suite.ends_with('/') != components.is_empty() {
        return Err(
            fields.invalid("components", "required with a suite, not allowed with a path that ends with /")
        );
    }
    if components.iter().any(|component| component.is_empty() || component.contains(char::is_whitespace)) {
        return Err(fields.invalid("components", "must be a list of single words"));
    }
    let components = match components.as_slice() {
        [] => String::new(),
        some => format!("Components: {}\n", some.join(" ")),
    };
    let key = &layout.key;
    let source = format!("Types: deb\nURIs: {uri}\nSuites: {suite}\n{components}Signed-By: {key}\n");
    Ok(Texts { source, ca: ca(fields)? })
}

/// The configuration that makes apt trust the CA for this host alone, and reach it without the proxy that another file
/// sets for all hosts (apt-transport-https(1), apt.conf(5)).
fn ca(fields: &FieldValues) -> Result<Option<String>, FieldError> {
    let Some(ca) = path::field(fields, "ca")? else { return Ok(None) };
    let uri = fields.need_line("uri")?;
    let Some(rest) = uri.strip_prefix("https://") else {
        return Err(fields.invalid("ca", "requires an https uri"));
    };
    let authority = rest.split('/').next().unwrap_or(rest);
    let host = authority.rsplit('@').next().unwrap_or(authority);
    let host = host.split(':').next().unwrap_or(host);
    // In a name of apt's configuration the colons of an IPv6 address cannot be written.
    if host.is_empty() || !host.chars().all(|c| c.is_ascii_alphanumeric() || c == '.' || c == '-') {
        return Err(fields.invalid("ca", "requires a uri with a host name or an IPv4 address"));
    }
    if ca.contains(|c: char| c == '"' || c == '\\' || c.is_control()) {
        return Err(
            fields.invalid("ca", "must not contain '\"', '\\' or control characters, which apt cannot read")
        );
    }
    Ok(Some(format!("Acquire::https::{host}::CaInfo \"{ca}\";\nAcquire::https::Proxy::{host} \"DIRECT\";\n")))
}
