//! The roles of nodes.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use super::api_contract::{MIRROR, ROLE_LABEL_PREFIX};

/// kubeadm's name for a master.
const CONTROL_PLANE: &str = "control-plane";

/// A node has any number of roles. Ordered by how many other nodes depend on a node with the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Role {
    /// Serves packages, images and certificates, and runs the controllers.
    Bootstrap,
    /// Runs the control plane. The label is `master`, or `control-plane` as with kubeadm.
    Master,
    /// Runs an etcd member.
    Etcd,
    /// Serves copies of the packages and images of the bootstrap node. The label is `metalform.dev/mirror`.
    Mirror,
    /// Runs the cluster's own services.
    Infra,
    /// Runs workloads; the role of a node without any other.
    Node,
}

/// A string is not a role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a role; the roles are bootstrap, master (or control-plane), etcd, mirror, infra and node"
)]
pub struct RoleError(pub String);

impl Role {
    /// In order.
    pub const ALL: [Self; 6] =
        [Self::Bootstrap, Self::Master, Self::Etcd, Self::Mirror, Self::Infra, Self::Node];

    /// The label of a Node that assigns it.
    pub fn label(self) -> String {
        match self {
            Self::Mirror => MIRROR.to_owned(),
            other => format!("{ROLE_LABEL_PREFIX}{other}"),
        }
    }

    /// The name in states, rosters and selectors.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bootstrap => "bootstrap",
            Self::Master => "master",
            Self::Etcd => "etcd",
            Self::Mirror => "mirror",
            Self::Infra => "infra",
            Self::Node => "node",
        }
    }
}

impl FromStr for Role {
    type Err = RoleError;

    fn from_str(text: &str) -> Result<Self, RoleError> {
        if text == CONTROL_PLANE {
            return Ok(Self::Master);
        }
        Self::ALL.into_iter().find(|role| role.as_str() == text).ok_or_else(|| RoleError(text.to_owned()))
    }
}

impl JsonSchema for Role {
    fn schema_name() -> Cow<'static, str> {
        "Role".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let names = Self::ALL.iter().map(|role| role.as_str()).chain([CONTROL_PLANE]);
        json_schema!({ "enum": names.collect::<Vec<_>>() })
    }
}

impl TryFrom<String> for Role {
    type Error = RoleError;

    fn try_from(text: String) -> Result<Self, RoleError> {
        text.parse()
    }
}

impl From<Role> for String {
    fn from(role: Role) -> Self {
        role.as_str().to_owned()
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
