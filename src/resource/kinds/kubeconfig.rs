//! `kubeconfig`: how a client reaches an API server, with a client certificate of its own.
//!
//! The file names its key, certificate and authority by their paths, so it holds no secret and stays the
//! same when the certificate is renewed, which clients notice by themselves.

use crate::pki::kubeconfig::{Credentials, KubeconfigFile as Document, TrustAnchor};
use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::fields::url;
use crate::resource::kinds::certificate::Certificate;
use crate::resource::text::contents::{Contents, removal, removal_probe};

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec {
        name: "server",
        sort: FieldSort::Text,
        required: true,
        about: "URL of the API server, as https://127.0.0.1:7443.",
    },
    FieldSpec {
        name: "ca",
        sort: FieldSort::Text,
        required: true,
        about: "Path on the host of the authority that the API server's certificate is checked against.",
    },
    FieldSpec {
        name: "cluster",
        sort: FieldSort::Text,
        required: false,
        about: "What the cluster is called in the file, kubernetes by default.",
    },
    FieldSpec {
        name: "certificate",
        sort: FieldSort::Text,
        required: true,
        about: "Path of the client certificate.",
    },
    FieldSpec {
        name: "key",
        sort: FieldSort::Text,
        required: true,
        about: "Path of the private key, which is made on the host and never leaves it.",
    },
    FieldSpec {
        name: "authority",
        sort: FieldSort::Text,
        required: true,
        about: "Who signs the client certificate: kubernetes, etcd or front-proxy.",
    },
    FieldSpec {
        name: "common_name",
        sort: FieldSort::Text,
        required: true,
        about: "Common name of the client certificate: the user, to Kubernetes.",
    },
    FieldSpec {
        name: "organizations",
        sort: FieldSort::TextList,
        required: false,
        about: "Organizations of the client certificate, which Kubernetes reads as groups.",
    },
    FieldSpec {
        name: "days",
        sort: FieldSort::Integer,
        required: false,
        about: "Days of validity of the client certificate, 365 by default.",
    },
    FieldSpec {
        name: "renew_before",
        sort: FieldSort::Integer,
        required: false,
        about: "Days before its end at which the certificate is renewed, 90 by default; fewer than `days`.",
    },
    FieldSpec {
        name: "mode",
        sort: FieldSort::Mode,
        required: false,
        about: "Permission bits of the file, \"0600\" by default; the certificate has 0644, the key 0600.",
    },
    FieldSpec {
        name: "owner",
        sort: FieldSort::Text,
        required: false,
        about: "User of all three files, root by default.",
    },
    FieldSpec {
        name: "group",
        sort: FieldSort::Text,
        required: false,
        about: "Group of all three files, root by default.",
    },
];

/// A kubeconfig file and the client certificate that it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    path: String,
    /// `None` when it should be absent.
    file: Option<Contents>,
    /// `None` when it should be absent and nothing says where it lies.
    certificate: Option<Certificate>,
}

impl Kubeconfig {
    pub(in crate::resource) fn parse(name: &str, given: &Given) -> Result<Self, FieldError> {
        let path = path::named("kubeconfig", name)?;
        let certificate = match path::field(given, "certificate")? {
            Some(certificate) => Some(Certificate::of_client(certificate, given)?),
            None => None,
        };
        let file = match given.ensure {
            Ensure::Absent => None,
            Ensure::Present => Some(Contents {
                path: path.clone(),
                text: document(given)?.to_yaml(),
                access: given.access(0o600),
                sensitive: given.sensitive,
            }),
        };
        Ok(Self { path, file, certificate })
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        let file = self.file.as_ref().map_or_else(|| removal_probe(&self.path), Contents::probe);
        self.certificate.iter().flat_map(Certificate::probes).chain([file]).collect()
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let mut change = match &self.certificate {
            Some(certificate) => certificate.compare(observed, context)?,
            None => Change::default(),
        };
        Ok(match &self.file {
            Some(file) => {
                change.append(file.compare(observed, context.pending)?);
                change.or("has this content, and its certificate is good")
            }
            None => {
                change.append(removal(&self.path, observed, context.pending)?);
                change.or("is absent")
            }
        })
    }
}

fn document(given: &Given) -> Result<Document, FieldError> {
    let server = url::field(given, "server")?;
    if !server.starts_with("https://") {
        return Err(given.invalid("server", "it must begin with https://"));
    }
    let need_path = |field| {
        path::field(given, field)?;
        given.need(field)
    };
    let cluster = if given.has("cluster") { given.need_line("cluster")? } else { "kubernetes".to_owned() };
    Ok(Document {
        cluster,
        server,
        anchor: TrustAnchor::File(need_path("ca")?),
        user: given.need_line("common_name")?,
        credentials: Credentials::Files { certificate: need_path("certificate")?, key: need_path("key")? },
    })
}
