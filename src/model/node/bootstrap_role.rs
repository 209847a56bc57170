//! The role of the bootstrap node is on its Node, and on no other: which machine that is, no label decides.

use super::{NodeProblem, NodeProblems, NodeSpec};
use crate::model::name::HostName;
use crate::model::role::Role;

impl NodeSpec {
    /// Compares the role with which node is the bootstrap node.
    ///
    /// # Errors
    /// When the bootstrap node does not have the role, or another node has it.
    pub fn check_bootstrap_role(&self, bootstrap_node: &HostName) -> Result<(), NodeProblems> {
        let label = Role::Bootstrap.label();
        let problem = match (self.name == *bootstrap_node, self.roles.contains(&Role::Bootstrap)) {
            (true, true) | (false, false) => return Ok(()),
            (true, false) => NodeProblem::NoBootstrapRole { label },
            (false, true) => {
                NodeProblem::AnotherBootstrapRole { label, bootstrap_node: bootstrap_node.to_string() }
            }
        };
        Err(NodeProblems { node: self.name.to_string(), problems: vec![problem] })
    }
}

impl NodeProblems {
    /// The commands that fix the Node in the API, where its labels are all that is wrong; else none.
    pub fn label_commands(&self) -> Vec<String> {
        let node = &self.node;
        let command = |problem: &NodeProblem| match problem {
            NodeProblem::NoBootstrapRole { label } => Some(format!("kubectl label node {node} {label}=")),
            NodeProblem::AnotherBootstrapRole { label, .. } => {
                Some(format!("kubectl label node {node} {label}-"))
            }
            _ => None,
        };
        self.problems.iter().map(command).collect::<Option<Vec<String>>>().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::node::{NodeManifest, NodeMetadata};

    fn spec(name: &str, roles: &[Role]) -> NodeSpec {
        let metadata = NodeMetadata {
            name: Some(name.to_owned()),
            labels: roles.iter().map(|role| (role.label(), String::new())).collect(),
            annotations: [("metalform.dev/ssh-host".to_owned(), "192.0.2.1".to_owned())].into(),
        };
        NodeSpec::parse(&NodeManifest { metadata, ..NodeManifest::default() }).unwrap()
    }

    #[test]
    fn the_bootstrap_node_has_the_role_and_no_other_node_has() {
        let missing = "node bootstrap: label node-role.kubernetes.io/bootstrap is missing: this machine is the \
                       bootstrap node";
        let elsewhere = "node node-1: label node-role.kubernetes.io/bootstrap: the bootstrap node is bootstrap, \
                         this machine";
        let add = "kubectl label node bootstrap node-role.kubernetes.io/bootstrap=";
        let remove = "kubectl label node node-1 node-role.kubernetes.io/bootstrap-";
        for (name, roles, expected) in [
            ("bootstrap", vec![Role::Bootstrap, Role::Master, Role::Etcd], None),
            ("node-1", vec![Role::Master, Role::Etcd], None),
            ("node-1", vec![], None),
            ("bootstrap", vec![Role::Master, Role::Etcd], Some((missing, add))),
            ("bootstrap", vec![], Some((missing, add))),
            ("node-1", vec![Role::Bootstrap, Role::Master], Some((elsewhere, remove))),
        ] {
            let refused = spec(name, &roles).check_bootstrap_role(&"bootstrap".parse().unwrap()).err();
            let seen = refused.map(|problems| (problems.to_string(), problems.label_commands().concat()));
            let expected = expected.map(|(line, command)| (line.to_owned(), command.to_owned()));
            assert_eq!(seen, expected, "{name} {roles:?}");
        }
        let other = NodeProblems { node: "node-1".to_owned(), problems: vec![NodeProblem::NoName] };
        assert_eq!(other.label_commands(), Vec::<String>::new());
    }
}
