//! A package source of dnf (dnf.conf(5), "repo options"). With `-y` dnf takes the key that the source names for
//! its index, and imports it for its packages, so nothing else must be done with it.

use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::package_source::{Layout, Texts};

pub(in crate::resource) fn layout(name: &str) -> Layout {
    Layout {
        source: format!("/etc/yum.repos.d/{name}.repo"),
        key: format!("/etc/pki/rpm-gpg/RPM-GPG-KEY-{name}"),
        ca: None,
        all: "/etc/yum.repos.d/*.repo",
        disabled: "/etc/yum.repos.d/*.metalform-disabled",
    }
}

pub(in crate::resource) fn texts(layout: &Layout, given: &Given) -> Result<Texts, FieldError> {
    for field in ["suite", "components"] {
        if given.has(field) {
            return Err(given.invalid(field, "it goes with deb"));
        }
    }
    let uri = given.need_word("uri")?;
    let ca = match path::field(given, "ca")? {
        Some(_) if !uri.starts_with("https://") => {
            return Err(given.invalid("ca", "it goes with a uri of https"));
        }
        Some(ca) if ca.contains(|c: char| c.is_whitespace() || c.is_control()) => {
            return Err(given.invalid("ca", "dnf cannot read a path with these characters"));
        }
        Some(ca) => format!("sslcacert={ca}\n"),
        None => String::new(),
    };
    let id = layout.source.rsplit('/').next().and_then(|file| file.strip_suffix(".repo")).unwrap_or_default();
    let signed_index = u8::from(given.boolean("signed_index", true));
    let key = &layout.key;
    let source = format!(
        "[{id}]\nname={id}\nbaseurl={uri}\nenabled=1\ngpgcheck=1\nrepo_gpgcheck={signed_index}\n\
         gpgkey=file://{key}\n{ca}"
    );
    Ok(Texts { source, ca: None })
}
