//! Kubeconfig files (kubernetes.io/docs/reference/config-api/kubeconfig.v1).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Serialize;
use serde_json::Value;

/// One cluster, one user, and the context that joins them.
#[derive(Clone, PartialEq, Eq)]
pub struct KubeconfigFile {
    /// Name of the cluster within the file.
    pub cluster: String,
    /// `https://127.0.0.1:7443`.
    pub server: String,
    /// The CA of the server's certificate.
    pub anchor: TrustAnchor,
    /// Name of the user within the file; the API server identifies it by its credentials.
    pub user: String,
    pub credentials: Credentials,
}

/// A CA certificate.
#[derive(Clone, PartialEq, Eq)]
pub enum TrustAnchor {
    /// Inside the file, PEM.
    Embedded(String),
    /// In another file, by its absolute path.
    File(String),
}

/// How a client authenticates.
#[derive(Clone, PartialEq, Eq)]
pub enum Credentials {
    /// A client certificate and its key inside the file.
    Embedded {
        /// PEM.
        certificate: String,
        /// PEM. A secret.
        key: String,
    },
    /// A client certificate and its key in other files.
    Files {
        /// Absolute path.
        certificate: String,
        /// Absolute path.
        key: String,
    },
    /// A bearer token: a bootstrap token, a service account's. A secret.
    Token(String),
}

impl KubeconfigFile {
    /// YAML that ends with a newline; deterministic.
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
        // Certificates stay on one line, as kubectl writes them.
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        serde_saphyr::to_string_with_options(&file, options)
            .expect("a kubeconfig serializes because it is made of strings only")
    }

    /// Reads a file in which CA, certificate and key are embedded. `None` for any other.
    pub fn from_embedded_yaml(yaml: &str) -> Option<Self> {
        let file: Value = serde_saphyr::from_str(yaml).ok()?;
        let string = |pointer: &str| file.pointer(pointer)?.as_str().map(str::to_owned);
        let pem = |pointer: &str| String::from_utf8(STANDARD.decode(string(pointer)?).ok()?).ok();
        Some(Self {
            cluster: string("/clusters/0/name")?,
            server: string("/clusters/0/cluster/server")?,
            anchor: TrustAnchor::Embedded(pem("/clusters/0/cluster/certificate-authority-data")?),
            user: string("/users/0/name")?,
            credentials: Credentials::Embedded {
                certificate: pem("/users/0/user/client-certificate-data")?,
                key: pem("/users/0/user/client-key-data")?,
            },
        })
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
        KubeconfigFile {
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
    fn credentials_are_files_or_a_token() {
        let files = text(Credentials::Files { certificate: "/a.crt".into(), key: "/a.key".into() });
        assert!(files.contains("client-certificate: /a.crt\n") && files.contains("client-key: /a.key\n"));
        // Real certificates are long, and must not be folded.
        let long = text(Credentials::Embedded { certificate: "x".repeat(2000), key: String::new() });
        let data = STANDARD.encode("x".repeat(2000));
        assert!(long.contains(&format!("client-certificate-data: {data}\n")), "{long}");
        // A token of digits must stay a string for every YAML reader.
        let token = text(Credentials::Token("123456".into()));
        assert!(token.contains("token: \"123456\"\n"), "{token}");
    }

    #[test]
    fn an_embedded_kubeconfig_is_read_back() {
        let file = KubeconfigFile {
            cluster: "metal".into(),
            server: "https://127.0.0.1:7443".into(),
            anchor: TrustAnchor::Embedded("CA\n".into()),
            user: "kubernetes-admin".into(),
            credentials: Credentials::Embedded { certificate: "CERT\n".into(), key: "KEY\n".into() },
        };
        assert!(KubeconfigFile::from_embedded_yaml(&file.to_yaml()) == Some(file));
        assert!(KubeconfigFile::from_embedded_yaml(&text(Credentials::Token("t".into()))).is_none());
        assert!(KubeconfigFile::from_embedded_yaml("a: [").is_none());
    }
}
