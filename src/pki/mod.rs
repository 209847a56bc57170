//! Authorities, leaf certificates, kubeconfigs and the repository's signing key.
