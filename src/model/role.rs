//! What a node is for.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// Labels that give a Node its roles start with this.
pub const ROLE_LABEL_PREFIX: &str = "node-role.kubernetes.io/";

/// What kubeadm calls a master.
const CONTROL_PLANE: &str = "control-plane";

/// One role; a node has any number of them. Ordered from what serves all to what serves none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Role {
    /// Serves packages, images and certificates, and runs the controllers.
    Bootstrap,
    /// Runs the control plane: label `master`, or `control-plane`, which is what kubeadm writes.
    Master,
    /// Runs an etcd member.
    Etcd,
    /// Where the cluster's own services are placed.
    Infra,
    /// Runs workloads; what is left when no role is set.
    Node,
}

/// A text names no role.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a role; the roles are bootstrap, master (or control-plane), etcd, infra and node")]
pub struct RoleError(pub String);

impl Role {
    /// Every role, in order.
    pub const ALL: [Self; 5] = [Self::Bootstrap, Self::Master, Self::Etcd, Self::Infra, Self::Node];

    /// The name that states, rosters and selectors use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Bootstrap => "bootstrap",
            Self::Master => "master",
            Self::Etcd => "etcd",
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
