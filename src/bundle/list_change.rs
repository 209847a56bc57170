//! Changes of a component list. Pure.

use super::component::{ComponentList, OperatingSystem};
use crate::model::near::Near;

/// Why a list was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListChangeError {
    /// Neither a component nor an operating system.
    #[error("the bundle has no {name}{near}")]
    Unknown {
        /// As given.
        name: String,
        /// What it has.
        near: Near,
    },
}

/// The list with everything that the other one has, for the architectures of both. An operating system of the same release, and a component of the same
/// name, is replaced where it stands; what is new comes last.
#[must_use]
pub fn with(list: &ComponentList, other: &ComponentList) -> ComponentList {
    let mut changed = list.clone();
    let new = other.architectures.iter().filter(|one| !list.architectures.contains(one));
    changed.architectures.extend(new);
    for system in &other.operating_systems {
        match changed.operating_systems.iter_mut().find(|known| name(known) == name(system)) {
            Some(known) => *known = system.clone(),
            None => changed.operating_systems.push(system.clone()),
        }
    }
    for component in &other.components {
        match changed.components.iter_mut().find(|known| known.name == component.name) {
            Some(known) => *known = component.clone(),
            None => changed.components.push(component.clone()),
        }
    }
    changed
}

/// The list without these: names of components, or operating systems such as `debian-12`.
///
/// # Errors
/// The first that it does not have.
pub fn without(list: &ComponentList, names: &[String]) -> Result<ComponentList, ListChangeError> {
    let mut changed = list.clone();
    for given in names {
        let count = (changed.components.len(), changed.operating_systems.len());
        changed.components.retain(|component| component.name != *given);
        changed.operating_systems.retain(|system| name(system) != *given);
        if (changed.components.len(), changed.operating_systems.len()) == count {
            let known: Vec<String> = list
                .components
                .iter()
                .map(|component| component.name.clone())
                .chain(list.operating_systems.iter().map(name))
                .collect();
            let near = Near::to(given, known.iter().map(String::as_str));
            return Err(ListChangeError::Unknown { name: given.clone(), near });
        }
    }
    Ok(changed)
}

fn name(system: &OperatingSystem) -> String {
    format!("{}-{}", system.distribution, system.release)
}

#[cfg(test)]
mod tests {
    use super::super::component_list::{SHIPPED, parse};
    use super::*;
    use crate::model::platform::Architecture;

    fn names(list: &ComponentList) -> String {
        let systems = list.operating_systems.iter().map(name);
        let components = list.components.iter().map(|one| format!("{} {}", one.name, one.version));
        systems.chain(components).collect::<Vec<_>>().join(", ")
    }

    fn list(text: &str) -> ComponentList {
        parse(
            "list",
            &format!(
                "apiVersion: metalform.dev/v1alpha1\nkind: ComponentList\narchitectures: [amd64]\n{text}"
            ),
        )
        .unwrap()
    }

    fn tool(version: &str) -> String {
        format!(
            "components: [{{ name: tool, version: {version}, sources: {{ go: {{ mains: {{ tool: x }} }} }} }}]"
        )
    }

    #[test]
    fn what_is_new_comes_last_and_what_is_known_is_replaced_in_place() {
        let debian =
            "operating_systems: [{ distribution: debian, release: '13', suite: trixie, packages: [] }]\n";
        let older =
            "operating_systems: [{ distribution: debian, release: '12', suite: bookworm, packages: [a] }]\n";
        let (first, newer) =
            (list(&format!("{debian}{}", tool("1.0.0"))), list(&format!("{older}{}", tool("2.0.0"))));
        assert_eq!(names(&with(&first, &newer)), "debian-13, debian-12, tool 2.0.0");
        assert_eq!(with(&first, &first), first);
        let foreign = ComponentList { architectures: vec![Architecture::Arm64], ..first.clone() };
        assert_eq!(with(&first, &foreign).architectures, Architecture::ALL);
        let shipped = parse("list", SHIPPED).unwrap();
        assert_eq!(with(&shipped, &shipped), shipped);
    }

    #[test]
    fn what_is_taken_out_must_be_there() {
        let shipped = parse("list", SHIPPED).unwrap();
        let smaller = without(&shipped, &["debian-12".to_owned(), "etcd".to_owned()]).unwrap();
        let left = names(&smaller);
        assert!(
            left.contains("debian-13") && !left.contains("debian-12") && !left.contains("etcd"),
            "{left}"
        );
        let error = without(&shipped, &["debian-1".to_owned()]).unwrap_err();
        assert!(error.to_string().starts_with("the bundle has no debian-1"), "{error}");
        assert!(without(&shipped, &["etcd".to_owned(), "etcd".to_owned()]).is_err());
    }
}
