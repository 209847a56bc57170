//! `package_repository`: a signed APT repository, and on demand the only one.

use super::change::{Change, Difference, Verdict};
use super::contents::{Contents, removal, removal_probe};
use super::context::Context;
use super::ensure::Ensure;
use super::field::{FieldSort, FieldSpec};
use super::given::{FieldError, Given};
use super::path;
use super::probe::{Observed, Probe};
use super::refusal::Refusal;
use super::step::Step;

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "uri",
        sort: FieldSort::Text,
        required: true,
        about: "Where it is: http, https or file.",
    },
    FieldSpec {
        name: "suite",
        sort: FieldSort::Text,
        required: true,
        about: "A suite, or a path that ends with /.",
    },
    FieldSpec {
        name: "components",
        sort: FieldSort::TextList,
        required: false,
        about: "Needed unless the suite is a path.",
    },
    FieldSpec {
        name: "key",
        sort: FieldSort::Text,
        required: true,
        about: "The armored OpenPGP public key that must have signed it.",
    },
    FieldSpec {
        name: "ca",
        sort: FieldSort::Text,
        required: false,
        about: "Path on the host of the authority that https is checked against; the system's by default.",
    },
    FieldSpec {
        name: "exclusive",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether every other package source of the host is disabled, false by default.",
    },
];

/// A repository. When it should be absent, the sources that it disabled come back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PackageRepository {
    name: String,
    exclusive: bool,
    /// `None` when it should be absent.
    wanted: Option<Wanted>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Wanted {
    sources: Contents,
    key: Contents,
    /// `None` when the system's authorities are used; then no file of ours may say otherwise.
    ca: Option<Contents>,
}

impl PackageRepository {
    pub(super) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        // apt skips a source whose file name holds anything else (sources.list(5)).
        let allowed = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if !name.starts_with(|c: char| c.is_ascii_alphanumeric()) || !name.chars().all(allowed) {
            let reason = "use letters, digits, '_', '-' and '.'";
            return Err(FieldError::Name { kind: "package_repository", name: name.to_owned(), reason });
        }
        let wanted = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Wanted {
                sources: Contents::public(sources_path(name), sources(name, given)?),
                key: Contents::public(key_path(name), key(given)?),
                ca: ca(given)?.map(|text| Contents::public(ca_path(name), text)),
            }),
        };
        Ok(Self { name: name.to_owned(), exclusive: given.boolean("exclusive", false), wanted })
    }

    pub(super) fn probes(&self) -> Vec<Probe> {
        let ca = removal_probe(&ca_path(&self.name));
        let mut probes = match &self.wanted {
            Some(Wanted { sources, key, ca: wanted_ca }) => {
                vec![key.probe(), wanted_ca.as_ref().map_or(ca, Contents::probe), sources.probe()]
            }
            None => vec![removal_probe(&sources_path(&self.name)), ca, removal_probe(&key_path(&self.name))],
        };
        if self.exclusive {
            probes.push(self.others_probe());
        }
        probes
    }

    pub(super) fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let others = self.exclusive && observed.holds(self.others_probe())?;
        let mut change = Change::default();
        let Some(wanted) = &self.wanted else {
            for path in [sources_path(&self.name), ca_path(&self.name), key_path(&self.name)] {
                change.append(removal(&path, observed, context.pending)?);
            }
            if others {
                change.field("other sources", Some("disabled"), Some("enabled"));
                change.steps.push(Step::Run { script: enable_others() });
            }
            return Ok(change.or("is absent"));
        };
        let mut key = wanted.key.compare(observed, context.pending)?;
        if !key.steps.is_empty() {
            // Armor says nothing to a reader.
            key.differences = vec![Difference::Hidden { what: format!("signing key ({})", wanted.key.path) }];
        }
        change.append(key);
        change.append(match &wanted.ca {
            Some(ca) => ca.compare(observed, context.pending)?,
            None => removal(&ca_path(&self.name), observed, context.pending)?,
        });
        if others {
            change.field("other sources", Some("enabled"), Some("disabled"));
            change.steps.push(Step::Run { script: self.disable_others() });
        }
        change.append(wanted.sources.compare(observed, context.pending)?);
        Ok(change.or(if self.exclusive { "is the only package source" } else { "is a package source" }))
    }

    /// Whether there are other sources to disable, or disabled ones to bring back.
    fn others_probe(&self) -> Probe {
        let script = match self.wanted {
            Some(_) => self.each_other("exit 0") + "exit 1",
            None => each_disabled("exit 0") + "exit 1",
        };
        Probe::Guard { script }
    }

    fn disable_others(&self) -> String {
        self.each_other("mv -f -- \"$f\" \"$f.metalform-disabled\" || exit") + "true"
    }

    /// Does something with each other file `$f` that names a source: one of comments alone may stay.
    fn each_other(&self, action: &str) -> String {
        format!(
            "for f in /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources; do \
             if [ \"$f\" != {own} ] && grep -qs '^[[:space:]]*[^#[:space:]]' \"$f\"; then {action}; fi; done; ",
            own = sources_path(&self.name),
        )
    }
}

fn enable_others() -> String {
    each_disabled("mv -f -- \"$f\" \"${f%.metalform-disabled}\" || exit") + "true"
}

fn each_disabled(action: &str) -> String {
    format!(
        "for f in /etc/apt/sources.list.metalform-disabled /etc/apt/sources.list.d/*.metalform-disabled; do \
         if [ -e \"$f\" ]; then {action}; fi; done; "
    )
}

fn sources_path(name: &str) -> String {
    format!("/etc/apt/sources.list.d/{name}.sources")
}

fn key_path(name: &str) -> String {
    format!("/etc/apt/keyrings/{name}.asc")
}

fn ca_path(name: &str) -> String {
    format!("/etc/apt/apt.conf.d/90metalform-{name}")
}

/// Deb822 style (sources.list(5)).
fn sources(name: &str, given: &Given) -> Result<String, FieldError> {
    let word = |field: &'static str, text: &str| match text.contains(char::is_whitespace) {
        true => Err(given.invalid(field, "it must be one word")),
        false => Ok(()),
    };
    let [uri, suite] = [given.need_line("uri")?, given.need_line("suite")?];
    word("uri", &uri)?;
    word("suite", &suite)?;
    let components = given.list("components");
    if suite.ends_with('/') != components.is_empty() {
        return Err(given.invalid("components", "they go with a suite, and not with a path that ends with /"));
    }
    if components.iter().any(String::is_empty) {
        return Err(given.invalid("components", "each must be one word"));
    }
    components.iter().try_for_each(|component| word("components", component))?;
    let components = match components.as_slice() {
        [] => String::new(),
        some => format!("Components: {}\n", some.join(" ")),
    };
    let key = key_path(name);
    Ok(format!("Types: deb\nURIs: {uri}\nSuites: {suite}\n{components}Signed-By: {key}\n"))
}

fn key(given: &Given) -> Result<String, FieldError> {
    let key = given.need("key")?;
    if !key.trim_start().starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----") {
        return Err(given.invalid("key", "it must be an armored OpenPGP public key"));
    }
    Ok(key)
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
