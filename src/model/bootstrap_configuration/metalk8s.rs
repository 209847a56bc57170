//! The form of a file with an `apiVersion` of MetalK8s. Fields without a meaning here are ignored with a warning;
//! fields unknown to MetalK8s are errors.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_saphyr::{Location, Spanned};

use super::syntax;
use crate::model::document::{Document, Problem};
use crate::model::one_or_many::OneOrMany;

/// The location of a field without a meaning here.
type Ignored = Option<Spanned<IgnoredAny>>;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(transform = or_products)]
pub(super) struct File {
    #[serde(rename = "apiVersion")]
    #[schemars(extend("enum" = crate::model::api_contract::METALK8S_API_VERSIONS))]
    _api_version: String,
    #[serde(rename = "kind")]
    #[schemars(extend("const" = super::KIND))]
    _kind: String,
    networks: Networks,
    ca: Ca,
    // The name of the field up to release 2.4.
    #[serde(alias = "products")]
    #[schemars(with = "OneOrMany")]
    archives: Spanned<OneOrMany>,
    #[serde(default)]
    kubernetes: Kubernetes,
    #[schemars(with = "Option<serde_json::Value>")]
    addons: Ignored,
    #[schemars(with = "Option<serde_json::Value>")]
    debug: Ignored,
    #[schemars(with = "Option<serde_json::Value>")]
    proxies: Ignored,
    #[schemars(with = "Option<serde_json::Value>")]
    salt: Ignored,
}

/// A schema has no aliases: the field may have either name.
fn or_products(schema: &mut Schema) {
    let archives = schema.pointer_mut("/properties/archives").cloned();
    if let Some(properties) = schema.pointer_mut("/properties").and_then(|all| all.as_object_mut()) {
        properties.extend(archives.map(|archives| ("products".to_owned(), archives)));
    }
    if let Some(required) = schema.pointer_mut("/required").and_then(|all| all.as_array_mut()) {
        required.retain(|name| name != "archives");
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Networks {
    #[schemars(with = "Plane")]
    control_plane: Spanned<Plane>,
    #[schemars(with = "Plane")]
    workload_plane: Spanned<Plane>,
    #[schemars(with = "Option<String>")]
    pods: Option<Spanned<String>>,
    #[schemars(with = "Option<String>")]
    services: Option<Spanned<String>>,
    nodeport: Option<NodePort>,
    #[schemars(with = "Option<serde_json::Value>")]
    portmap: Ignored,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct NodePort {
    #[schemars(with = "OneOrMany")]
    cidr: Spanned<OneOrMany>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Ca {
    #[schemars(with = "String")]
    minion: Spanned<String>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Kubernetes {
    api_server: ApiServer,
    controller_manager: syntax::ComponentConfig<syntax::ControllerManager>,
    #[serde(rename = "coreDNS")]
    core_dns: CoreDns,
    kubelet: syntax::ComponentConfig<syntax::Kubelet>,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct ApiServer {
    feature_gates: BTreeMap<String, bool>,
    #[schemars(with = "Option<serde_json::Value>")]
    host: Ignored,
    #[schemars(with = "Option<serde_json::Value>")]
    keepalived: Ignored,
    #[schemars(with = "Option<serde_json::Value>")]
    oidc: Ignored,
}

#[derive(Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct CoreDns {
    // `yes` and `no` are booleans there, and strings to most editors.
    #[schemars(with = "Option<serde_json::Value>")]
    host_forward: Option<bool>,
    #[schemars(with = "Option<serde_json::Value>")]
    replicas: Ignored,
    #[schemars(with = "Option<serde_json::Value>")]
    affinity: Ignored,
}

impl File {
    /// In metalform's own form, with a warning for each ignored field.
    pub(super) fn translate(self, document: &Document<'_>) -> (syntax::File, Vec<Problem>) {
        let Networks { control_plane, workload_plane, pods, services, nodeport, portmap } = self.networks;
        let (control, workload) = (fields(control_plane), fields(workload_plane));
        let ApiServer { feature_gates, host, keepalived, oidc } = self.kubernetes.api_server;
        let CoreDns { host_forward, replicas, affinity } = self.kubernetes.core_dns;

        let ignored = [
            ("addons", at(self.addons)),
            ("debug", at(self.debug)),
            ("proxies", at(self.proxies)),
            ("salt", at(self.salt)),
            ("networks.portmap", at(portmap)),
            ("networks.controlPlane.ingress", at(control.ingress)),
            ("networks.controlPlane.metalLB", at(control.metal_lb)),
            ("networks.controlPlane.mtu", at(control.mtu)),
            ("networks.workloadPlane.ingress", at(workload.ingress)),
            ("networks.workloadPlane.metalLB", at(workload.metal_lb)),
            ("kubernetes.apiServer.host", at(host)),
            ("kubernetes.apiServer.keepalived", at(keepalived)),
            ("kubernetes.apiServer.oidc", at(oidc)),
            ("kubernetes.coreDNS.affinity", at(affinity)),
        ];
        let mut warnings: Vec<Problem> = ignored
            .into_iter()
            .filter_map(|(name, place)| {
                Some(document.problem(place?, format!("{name} has no meaning here and is ignored")))
            })
            .collect();
        warnings.sort_by_key(|warning| (warning.line, warning.column));

        let networks = syntax::Networks {
            control_plane: syntax::ControlPlane { cidr: control.cidr },
            workload_plane: syntax::WorkloadPlane { cidr: workload.cidr, mtu: workload.mtu },
            pods,
            services,
            node_ports: None,
            node_port_cidr: nodeport.map(|nodeport| nodeport.cidr),
        };
        let kubernetes = syntax::Kubernetes {
            api_server: syntax::ApiServer { feature_gates },
            controller_manager: self.kubernetes.controller_manager,
            core_dns: syntax::CoreDns { host_forward, replicas },
            kubelet: self.kubernetes.kubelet,
        };
        let ca = Some(syntax::Ca { node: self.ca.minion });
        (syntax::File::new(networks, ca, self.archives, kubernetes), warnings)
    }
}

fn at<T>(field: Option<Spanned<T>>) -> Option<Location> {
    field.map(|field| field.referenced)
}

/// A bare CIDR, as in v1alpha2, or a mapping.
enum Plane {
    Bare(String),
    Mapping(Box<PlaneFields>),
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct PlaneFields {
    #[schemars(with = "OneOrMany")]
    cidr: Spanned<OneOrMany>,
    #[schemars(with = "Option<u32>")]
    mtu: Option<Spanned<u32>>,
    #[schemars(with = "Option<serde_json::Value>")]
    ingress: Ignored,
    #[serde(rename = "metalLB")]
    #[schemars(with = "Option<serde_json::Value>")]
    metal_lb: Ignored,
}

fn fields(plane: Spanned<Plane>) -> PlaneFields {
    match plane.value {
        Plane::Mapping(fields) => *fields,
        Plane::Bare(cidr) => {
            let cidr = OneOrMany(vec![Spanned::new(cidr, plane.referenced, plane.defined)]);
            let cidr = Spanned::new(cidr, plane.referenced, plane.defined);
            PlaneFields { cidr, mtu: None, ingress: None, metal_lb: None }
        }
    }
}

impl JsonSchema for Plane {
    fn schema_name() -> Cow<'static, str> {
        "Plane".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let mapping = generator.subschema_for::<PlaneFields>();
        schemars::json_schema!({ "anyOf": [{ "type": "string" }, mapping] })
    }
}

impl<'de> Deserialize<'de> for Plane {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct PlaneVisitor;

        impl<'de> Visitor<'de> for PlaneVisitor {
            type Value = Plane;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a CIDR, or a mapping with `cidr`")
            }

            fn visit_str<E: Error>(self, cidr: &str) -> Result<Plane, E> {
                Ok(Plane::Bare(cidr.to_owned()))
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Plane, A::Error> {
                PlaneFields::deserialize(MapAccessDeserializer::new(map))
                    .map(|fields| Plane::Mapping(Box::new(fields)))
            }
        }

        deserializer.deserialize_any(PlaneVisitor)
    }
}
