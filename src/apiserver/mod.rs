//! The Kubernetes API: nodes, certificate requests, server-side apply, named conditions.
