//! A package source of dnf (dnf.conf(5), "repo options"). With `-y` dnf trusts the key of the source for its index,
//! and imports it for its packages.

use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::kinds::package_repository::package_source::{SourceLayout, Texts};

pub fn layout(name: &str) -> SourceLayout {
    SourceLayout {
        source: format!("/etc/yum.repos.d/{name}.repo"),
        key: format!("/etc/pki/rpm-gpg/RPM-GPG-KEY-{name}"),
        ca: None,
        all: "/etc/yum.repos.d/*.repo",
        disabled: "/etc/yum.repos.d/*.metalform-disabled",
    }
}

pub fn texts(layout: &SourceLayout, fields: &FieldValues) -> Result<Texts, FieldError> {
    for field in ["suite", "components"] {
        if fields.has(field) {
            return Err(fields.invalid(field, "requires format deb"));
        }
    }
    let uri = fields.need_word("uri")?;
    let ca = match path::field(fields, "ca")? {
        Some(_) if !uri.starts_with("https://") => {
            return Err(fields.invalid("ca", "requires an https uri"));
        }
        Some(ca) if ca.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            return Err(fields.invalid("ca", "must not contain white space, which dnf cannot read"));
        }
        // Empty: not the proxy that dnf.conf sets for all sources.
        Some(ca) => format!("sslcacert={ca}\nproxy=\n"),
        None => String::new(),
    };
    let id = layout.source.rsplit('/').next().and_then(|file| file.strip_suffix(".repo")).unwrap_or_default();
    let [index, packages] = ["signed_index", "signed_packages"].map(|field| fields.boolean(field, true));
    if !index && !packages {
        return Err(fields.invalid("signed_packages", "required without signed_index"));
    }
    let [signed_index, signed_packages] = [index, packages].map(u8::from);
    let key = &layout.key;
    let source = format!(
        "[{id}]\nname={id}\nbaseurl={uri}\nenabled=1\ngpgcheck={signed_packages}\nrepo_gpgcheck={signed_index}\n\
         gpgkey=file://{key}\n{ca}"
    );
    Ok(Texts { source, ca: None })
}
