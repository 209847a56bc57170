//! Kubeconfig files (kubernetes.io/docs/reference/config-api/kubeconfig.v1).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;

/// One cluster, one user, and the context that joins them.
#[derive(Clone, PartialEq, Eq)]
pub struct Kubeconfig {
    /// What the cluster is called in the file.
    pub cluster: String,
    /// `https://127.0.0.1:7443`.
    pub server: String,
    /// The authority that the server's certificate is from.
    pub anchor: TrustAnchor,
    /// What the user is called in the file; who it is, the credentials say.
    pub user: String,
    /// How the user proves who it is.
    pub credentials: Credentials,
}

/// An authority's certificate.
#[derive(Clone, PartialEq, Eq)]
pub enum TrustAnchor {
    /// Inside the file, PEM.
    Embedded(String),
    /// In a file of its own, by its absolute path.
    File(String),
}

/// How a client proves who it is.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A client certificate and its key inside the file.
    Embedded {
        /// PEM.
        certificate: String,
        /// PEM. A secret.
        key: String,
    },
    /// A client certificate and its key in files of their own.
    Files {
        /// Absolute path.
        certificate: String,
        /// Absolute path.
        key: String,
    },
    /// A bearer token: a bootstrap token, a service account's. A secret.
    Token(String),
}

impl Kubeconfig {
    /// The file's text: YAML that ends with a newline, the same for the same values.
    pub fn to_yaml(&self) -> String {
        let context = format!("{}@{}", self.user, self.cluster);
        let file = File {
            api_version: "v1",
            kind: "Config",
            clusters: [NamedCluster {
                name: &self.cluster,
                cluster: Cluster::new(&self.anchor, &self.server),
            }],
            users: [NamedUser { name: &self.user, user: User::from(&self.credentials) }],
            contexts: [NamedContext {
                name: &context,
                context: Context { cluster: &self.cluster, user: &self.user },
            }],
            current_context: &context,
        };
        // Certificates stay on one line, as kubectl writes them and people search for them.
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        serde_saphyr::to_string_with_options(&file, options)
            .expect("a kubeconfig serializes because it is made of strings only")
    }
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct File<'a> {
    #[serde(rename = "apiVersion")]
    api_version: &'static str,
    kind: &'static str,
    clusters: [NamedCluster<'a>; 1],
    users: [NamedUser<'a>; 1],
    contexts: [NamedContext<'a>; 1],
    current_context: &'a str,
}

#[derive(Serialize)]
struct NamedCluster<'a> {
    name: &'a str,
    cluster: Cluster<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    certificate_authority: Option<&'a str>,
    server: &'a str,
}

impl<'a> Cluster<'a> {
    fn new(anchor: &'a TrustAnchor, server: &'a str) -> Self {
        let (certificate_authority_data, certificate_authority) = match anchor {
            TrustAnchor::Embedded(pem) => (Some(STANDARD.encode(pem)), None),
            TrustAnchor::File(path) => (None, Some(path.as_str())),
        };
        Self { certificate_authority_data, certificate_authority, server }
    }
}

#[derive(Serialize)]
struct NamedUser<'a> {
    name: &'a str,
    user: User<'a>,
}

#[derive(Default, Serialize)]
#[serde(rename_all = "kebab-case")]
struct User<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_key_data: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_certificate: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    client_key: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<&'a str>,
}

impl<'a> From<&'a Credentials> for User<'a> {
    fn from(credentials: &'a Credentials) -> Self {
        match credentials {
            Credentials::Embedded { certificate, key } => Self {
                client_certificate_data: Some(STANDARD.encode(certificate)),
                client_key_data: Some(STANDARD.encode(key)),
                ..Self::default()
            },
            Credentials::Files { certificate, key } => {
                Self { client_certificate: Some(certificate), client_key: Some(key), ..Self::default() }
            }
            Credentials::Token(token) => Self { token: Some(token), ..Self::default() },
        }
    }
}

#[derive(Serialize)]
struct NamedContext<'a> {
    name: &'a str,
    context: Context<'a>,
}

#[derive(Serialize)]
struct Context<'a> {
    cluster: &'a str,
    user: &'a str,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(credentials: Credentials) -> String {
        Kubeconfig {
            cluster: "metal".into(),
            server: "https://127.0.0.1:7443".into(),
            anchor: TrustAnchor::Embedded("CA".into()),
            user: "system:node:node-1".into(),
            credentials,
        }
        .to_yaml()
    }

    #[test]
    fn a_kubeconfig_names_one_cluster_one_user_and_their_context() {
        let credentials = Credentials::Embedded { certificate: "CERT".into(), key: "KEY".into() };
        insta::assert_snapshot!(text(credentials), @r"
        apiVersion: v1
        kind: Config
        clusters:
        - name: metal
          cluster:
            certificate-authority-data: Q0E=
            server: https://127.0.0.1:7443
        users:
        - name: system:node:node-1
          user:
            client-certificate-data: Q0VSVA==
            client-key-data: S0VZ
        contexts:
        - name: system:node:node-1@metal
          context:
            cluster: metal
            user: system:node:node-1
        current-context: system:node:node-1@metal
        ");
    }

    #[test]
    fn credentials_may_lie_in_files_or_be_a_token() {
        let files = text(Credentials::Files { certificate: "/a.crt".into(), key: "/a.key".into() });
        assert!(files.contains("client-certificate: /a.crt\n") && files.contains("client-key: /a.key\n"));
        // Real certificates are long; a folded line would be another text.
        let long = text(Credentials::Embedded { certificate: "x".repeat(2000), key: String::new() });
        let data = STANDARD.encode("x".repeat(2000));
        assert!(long.contains(&format!("client-certificate-data: {data}\n")), "{long}");
        // A token of digits must stay a string for every YAML reader.
        let token = text(Credentials::Token("123456".into()));
        assert!(token.contains("token: \"123456\"\n"), "{token}");
    }
}
