//! Names of systemd units (systemd.unit(5)).

use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;

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

pub fn has_suffix(name: &str) -> bool {
    SUFFIXES.iter().any(|suffix| name.len() > suffix.len() && name.ends_with(suffix))
}

/// Whether it is the whole name of a template (`a@.service`), from which systemd makes the instances (`a@b.service`).
pub fn is_template(name: &str) -> bool {
    name.split_once('@')
        .and_then(|(_, rest)| rest.rsplit_once('.'))
        .is_some_and(|(instance, _)| instance.is_empty())
}

/// The whole name; a name without a suffix is that of a service.
pub fn named(fields: &FieldValues, name: &str) -> Result<String, FieldError> {
    whole(name).ok_or_else(|| {
        fields.invalid_name(name, "use ASCII letters, digits, ':', '-', '_', '.', '\\' and '@'")
    })
}

fn whole(name: &str) -> Option<String> {
    let allowed = |c: char| c.is_ascii_alphanumeric() || ":-_.\\@".contains(c);
    if name.is_empty() || name.len() > 240 || name.starts_with('.') || !name.chars().all(allowed) {
        return None;
    }
    Some(if has_suffix(name) { name.to_owned() } else { format!("{name}.service") })
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
            assert_eq!(super::whole(name).as_deref(), Some(whole));
        }
        for name in ["", "a b", "a/b", "../a", ".service", "a\n", "ü"] {
            assert_eq!(whole(name), None, "{name:?}");
        }
    }

    #[test]
    fn a_template_has_nothing_between_at_sign_and_suffix() {
        for (name, expected) in [
            ("a@.service", true),
            ("a.b@.timer", true),
            ("a@b.service", false),
            ("a@.b.service", false),
            ("a.service", false),
        ] {
            assert_eq!(is_template(name), expected, "{name}");
        }
    }
}
