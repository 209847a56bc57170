//! `kubeconfig`: a kubeconfig file and the client certificate that it refers to.
//!
//! The file contains the paths of key, certificate and CA, so it has no secret and stays the same when the
//! certificate is renewed; clients reload renewed certificates.

use crate::pki::kubeconfig::{Credentials, KubeconfigFile as Document, TrustAnchor};
use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::fields::url;
use crate::resource::kinds::certificate::Certificate;
use crate::resource::text::contents::{Contents, removal};

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required(
        "server",
        FieldType::String,
        "URL of the API server, such as https://127.0.0.1:7443.",
    ),
    FieldSpec::required(
        "ca",
        FieldType::String,
        "Path on the host of the CA certificate that verifies the API server.",
    ),
    FieldSpec::optional(
        "cluster",
        FieldType::String,
        "Name of the cluster in the file, kubernetes by default.",
    ),
    FieldSpec::required("certificate", FieldType::String, "Path of the client certificate."),
    FieldSpec::required(
        "key",
        FieldType::String,
        "Path of the private key, which is created on the host and never leaves it.",
    ),
    FieldSpec::required(
        "authority",
        FieldType::String,
        "The CA that signs the client certificate: kubernetes, etcd or front-proxy.",
    ),
    FieldSpec::required(
        "common_name",
        FieldType::String,
        "Common name of the client certificate, which Kubernetes reads as the user.",
    ),
    FieldSpec::optional(
        "organizations",
        FieldType::StringList,
        "Organizations of the client certificate, which Kubernetes reads as groups.",
    ),
    FieldSpec::optional(
        "days",
        FieldType::Integer,
        "Days of validity of the client certificate, 365 by default.",
    ),
    FieldSpec::optional(
        "renew_before",
        FieldType::Integer,
        "Days before its expiry at which the certificate is renewed, 90 by default; fewer than `days`.",
    ),
    FieldSpec::optional(
        "mode",
        FieldType::Mode,
        "Permission bits of the file, \"0600\" by default; the certificate has 0644, the key 0600.",
    ),
    FieldSpec::optional("owner", FieldType::String, "Owner of all three files, root by default."),
    FieldSpec::optional("group", FieldType::String, "Group of all three files, root by default."),
];

/// A kubeconfig file and its client certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    path: String,
    /// `None` when it should be absent.
    file: Option<Contents>,
    /// `None` when it should be absent and its path is not set.
    certificate: Option<Certificate>,
}

impl Kubeconfig {
    pub fn parse(name: &str, fields: &FieldValues) -> Result<Self, FieldError> {
        let path = path::named(fields, name)?;
        let certificate = match path::field(fields, "certificate")? {
            Some(certificate) => Some(Certificate::of_client(certificate, fields)?),
            None => None,
        };
        let file = match fields.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Contents {
                path: path.clone(),
                text: document(fields)?.to_yaml(),
                access: fields.access(0o600),
                sensitive: fields.sensitive,
            }),
        };
        Ok(Self { path, file, certificate })
    }

    pub fn probes(&self) -> Vec<Probe> {
        let file = self.file.as_ref().map_or_else(|| Probe::path(&self.path), Contents::probe);
        self.certificate.iter().flat_map(Certificate::probes).chain([file]).collect()
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let mut change = match &self.certificate {
            Some(certificate) => certificate.compare(observed, context)?,
            None => Change::default(),
        };
        Ok(match &self.file {
            Some(file) => {
                change.append(file.compare(observed, context.pending)?);
                change.into_verdict("has this content and a valid certificate")
            }
            None => {
                change.append(removal(&self.path, observed, context.pending)?);
                change.into_verdict("is absent")
            }
        })
    }
}

fn document(fields: &FieldValues) -> Result<Document, FieldError> {
    let server = url::field(fields, "server")?;
    if !server.starts_with("https://") {
        return Err(fields.invalid("server", "must begin with https://"));
    }
    let need_path = |field| {
        path::field(fields, field)?;
        fields.need(field)
    };
    let cluster = if fields.has("cluster") { fields.need_line("cluster")? } else { "kubernetes".to_owned() };
    Ok(Document {
        cluster,
        server,
        anchor: TrustAnchor::File(need_path("ca")?),
        user: fields.need_line("common_name")?,
        credentials: Credentials::Files { certificate: need_path("certificate")?, key: need_path("key")? },
    })
}
