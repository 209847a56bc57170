//! Names of systemd units (systemd.unit(5)).

use crate::resource::fields::given::FieldError;

const SUFFIXES: [&str; 11] = [
    ".service",
    ".socket",
    ".timer",
    ".target",
    ".mount",
    ".path",
    ".slice",
    ".swap",
    ".automount",
    ".device",
    ".scope",
];

pub(in crate::resource) fn has_suffix(name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| name.len() > suffix.len() && name.ends_with(suffix))
}

/// The whole name: `.service` is what a name without a suffix means.
pub(in crate::resource) fn named(kind: &'static str, name: &str) -> Result<String, FieldError> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    if name.is_empty() || name.len() > 240 || name.starts_with('.') || !name.chars().all(allowed) {
        let reason = "use ASCII letters, digits, ':', '-', '_', '.', '\\' and '@'";
        return Err(FieldError::Name { kind, name: name.to_owned(), reason });
    }
    Ok(if has_suffix(name) { name.to_owned() } else { format!("{name}.service") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_may_leave_its_suffix_out() {
        for (name, whole) in [
            ("kubelet", "kubelet.service"),
            ("kubelet.service", "kubelet.service"),
            ("a@b.timer", "a@b.timer"),
            ("v1.2", "v1.2.service"),
            ("-.mount", "-.mount"),
        ] {
            assert_eq!(named("service", name).as_deref(), Ok(whole));
        }
        for name in ["", "a b", "a/b", "../a", ".service", "a\n", "ü"] {
            assert!(named("service", name).is_err(), "{name:?}");
        }
    }
}
