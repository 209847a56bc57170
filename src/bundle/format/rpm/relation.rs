//! Relations between packages: from the form of deb-control(5), in which the component list has them, to RPM's.

use rpm::Dependency;

/// Packages that depend on each other under other names in Debian than in the Red Hat family: Debian's name, then the
/// other.
const RENAMED: [(&str, &str); 2] = [("conntrack", "conntrack-tools"), ("iproute2", "iproute")];

/// A relation that is not written as in deb-control(5).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{relation:?} is not a relation, such as \"runc (>= 1.2)\"")]
pub struct RelationError {
    relation: String,
}

/// `runc (>= 1.2)` → `runc >= 1.2`, and `mta | exim` → `(mta or exim)`.
///
/// # Errors
/// [`RelationError`].
pub(super) fn required(relation: &str) -> Result<Dependency, RelationError> {
    let alternatives: Vec<Dependency> = relation.split('|').map(one).collect::<Result<_, _>>()?;
    match <[Dependency; 1]>::try_from(alternatives) {
        Ok([single]) => Ok(single),
        Err(several) => {
            let texts: Vec<String> = several.iter().map(ToString::to_string).collect();
            Ok(Dependency::any(format!("({})", texts.join(" or "))))
        }
    }
}

/// One relation without alternatives, with its version as written.
///
/// # Errors
/// [`RelationError`].
pub(super) fn one(relation: &str) -> Result<Dependency, RelationError> {
    let refused = || RelationError { relation: relation.trim().to_owned() };
    let (name, constraint) = match relation.split_once('(') {
        None => (relation.trim(), None),
        Some((name, rest)) => (name.trim(), Some(rest.trim().strip_suffix(')').ok_or_else(refused)?.trim())),
    };
    if name.is_empty() || name.contains(|c: char| c.is_whitespace() || c == ')') {
        return Err(refused());
    }
    let name = RENAMED.iter().find(|(debian, _)| *debian == name).map_or(name, |(_, other)| other);
    let Some(constraint) = constraint else { return Ok(Dependency::any(name)) };
    let end = constraint.find(|c: char| !"<>=".contains(c)).ok_or_else(refused)?;
    let (operator, version) = (&constraint[..end], constraint[end..].trim());
    Ok(match operator {
        "<<" => Dependency::less(name, version),
        "<=" => Dependency::less_eq(name, version),
        "=" => Dependency::eq(name, version),
        ">=" => Dependency::greater_eq(name, version),
        ">>" => Dependency::greater(name, version),
        _ => return Err(refused()),
    })
}

/// A name without a version is provided at the package's own, so that it can be replaced below it only.
///
/// # Errors
/// [`RelationError`].
pub(super) fn provided(relation: &str, evr: &str) -> Result<Dependency, RelationError> {
    let found = one(relation)?;
    Ok(if found.version.is_empty() { Dependency::eq(found.name, evr) } else { found })
}

/// `Replaces` without a version replaces every lower one: a package that obsoletes what it provides itself would
/// remove itself.
///
/// # Errors
/// [`RelationError`].
pub(super) fn replaced(relation: &str, evr: &str) -> Result<Dependency, RelationError> {
    let found = one(relation)?;
    Ok(if found.version.is_empty() { Dependency::less(found.name, evr) } else { found })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relations_of_debian_become_those_of_rpm() {
        for (debian, rpm) in [
            ("runc", "runc"),
            ("conntrack", "conntrack-tools"),
            ("iproute2 (>= 5.0)", "iproute >= 5.0"),
            (" runc (>= 1.2) ", "runc >= 1.2"),
            ("runc (<< 1:2-3)", "runc < 1:2-3"),
            ("runc (= 1)", "runc = 1"),
            ("runc (>> 1)", "runc > 1"),
            ("runc (<= 1)", "runc <= 1"),
            ("mta (>= 2) | exim", "(mta >= 2 or exim)"),
        ] {
            assert_eq!(required(debian).unwrap().to_string(), rpm);
        }
        for bad in ["", "a b", "a (1)", "a (>= 1", "a (=> 1)", "a | ", "a)"] {
            assert!(required(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_is_provided_has_a_version_and_only_lower_ones_are_replaced() {
        let texts = |relation: &str| {
            let both = [provided(relation, "2.3.7-1"), replaced(relation, "2.3.7-1")];
            both.map(|found| found.unwrap().to_string())
        };
        assert_eq!(texts("containerd.io"), ["containerd.io = 2.3.7-1", "containerd.io < 2.3.7-1"]);
        assert_eq!(texts("containerd.io (<< 3)"), ["containerd.io < 3"; 2]);
    }
}
