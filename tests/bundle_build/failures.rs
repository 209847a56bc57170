//! Failures that only a process has: its certificate authorities, its limits.

use std::fs;
use std::sync::Arc;

use metalform::pki::tls_provider::tls_provider;
use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;

use crate::command::run;
use crate::source_server::SourceServer;
use crate::workshop::{SIZE, Workshop, digests};

/// A server with a certificate until this year, which the client trusts.
async fn secure(year: i32) -> (Workshop, String) {
    let mut certificate = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    certificate.not_before = date_time_ymd(2020, 1, 1);
    certificate.not_after = date_time_ymd(year, 1, 1);
    let key = KeyPair::generate().unwrap();
    let certificate = certificate.self_signed(&key).unwrap();
    let tls =
        ServerConfig::builder_with_provider(tls_provider()).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let tls = tls.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
    let server = SourceServer::start(Some(TlsAcceptor::from(Arc::new(tls)))).await;
    (Workshop::with(server), certificate.pem())
}

#[tokio::test]
async fn an_expired_certificate_is_one_clear_error() {
    for (year, expected) in [(2021, Some(4)), (2100, Some(0))] {
        let (workshop, certificate) = secure(year).await;
        let tool = workshop.offer("tool", "1.0.0");
        fs::write(workshop.at("trusted.pem"), certificate).unwrap();
        let mut command = workshop.command("", ("cache", "out"), &[&tool]);
        let list = fs::read_to_string(workshop.at("out.yaml")).unwrap();
        fs::write(workshop.at("out.yaml"), list.replace("http://", "https://")).unwrap();
        command.env("SSL_CERT_FILE", workshop.at("trusted.pem")).env_remove("SSL_CERT_DIR");
        let (code, lines) = run(command).await;
        assert_eq!(code, expected, "{lines}");
        if year == 2021 {
            assert_eq!(
                workshop.anonymous(&lines),
                "tool: from official artefacts\n\
                 error: component tool: https://SERVER/1.0.0/tool: the certificate of 127.0.0.1 expired on 2021-01-01\n\
                 hint: check the date of this machine: date\n"
            );
            assert!(!workshop.at("out").exists());
        }
    }
}

/// A write fails at some size, as on a full disk: the limit of the size of files, without its signal.
fn limited(blocks: usize) -> String {
    format!("trap '' XFSZ; ulimit -f {blocks}; ")
}

#[tokio::test]
async fn a_write_that_fails_leaves_the_old_bundle() {
    // Blocks of 512 bytes. The artefact, the image's layer or the package is the first that is larger.
    let artefact = SIZE / 512;
    for blocks in [0, 1, artefact - 1, artefact] {
        let workshop = Workshop::new().await;
        let (old, new) = (workshop.offer("tool", "1.0.0"), workshop.offer("tool", "2.0.0"));
        assert!(workshop.build(&[&old]).await.contains("bundle written"));
        let before = digests(&workshop.at("out"));
        let (code, lines) = run(workshop.command(&limited(blocks), ("cache", "out"), &[&new])).await;
        assert_eq!(code, Some(1), "{blocks}: {lines}");
        let errors: Vec<&str> = lines.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{blocks}: {lines}");
        assert!(errors[0].contains("File too large"), "{blocks}: {lines}");
        assert_eq!(digests(&workshop.at("out")), before, "{blocks}");
        assert_eq!(workshop.leftovers("cache/bundle", ".draft-"), [""; 0], "{blocks}");

        // With room again, the same command ends.
        let (code, lines) = run(workshop.command("", ("cache", "out"), &[&new])).await;
        assert_eq!((code, workshop.verify("out", &[&new])), (Some(0), Vec::new()), "{blocks}: {lines}");
    }
}

#[tokio::test]
async fn a_write_that_fails_in_the_last_step_leaves_the_old_bundle() {
    let workshop = Workshop::new().await;
    let (old, new) = (workshop.offer("tool", "1.0.0"), workshop.offer("tool", "2.0.0"));
    for (output, version) in [("out", &old), ("other", &new)] {
        let (code, lines) = run(workshop.command("", ("cache", output), &[version])).await;
        assert_eq!(code, Some(0), "{lines}");
    }
    // Every part is in the cache: the first large file is bundle.yaml.
    let before = digests(&workshop.at("out"));
    let (code, lines) = run(workshop.command(&limited(2), ("cache", "out"), &[&new])).await;
    assert_eq!(code, Some(1), "{lines}");
    let expected = "tool: unchanged\nerror: cannot write TMP/out: File too large (os error 27)\n";
    assert_eq!(workshop.anonymous(&lines), expected);
    assert_eq!(digests(&workshop.at("out")), before);
}
