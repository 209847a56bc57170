use std::net::{IpAddr, Ipv4Addr};

use jiff::SignedDuration;
use rand::SeedableRng;
use rand::rngs::StdRng;
use x509_parser::extensions::GeneralName;

use super::*;
use crate::pki::leaf::Usage;

const NOW: Timestamp = Timestamp::constant(1_800_000_000, 0);

fn rng() -> StdRng {
    StdRng::seed_from_u64(7)
}

fn authority() -> Authority {
    seeded(7)
}

fn seeded(seed: u64) -> Authority {
    Authority::create("metalform-kubernetes", NOW, &mut StdRng::seed_from_u64(seed)).unwrap()
}

fn leaf() -> Leaf {
    Leaf {
        common_name: "kube-apiserver".into(),
        organization: Some("system:masters".into()),
        names: vec!["kubernetes.default.svc".into(), "10.96.0.1".into()],
        usages: vec![Usage::Server, Usage::Client],
        lifetime: days(365),
    }
}

/// A request for much more than the leaf grants.
fn greedy_request() -> String {
    let mut parameters = CertificateParams::new(["evil.example".to_owned()]).unwrap();
    parameters.distinguished_name = DistinguishedName::new();
    parameters.distinguished_name.push(DnType::CommonName, "admin");
    parameters.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    parameters.serialize_request(&KeyPair::generate().unwrap()).unwrap().pem().unwrap()
}

#[test]
fn a_leaf_contains_what_was_decided_and_nothing_of_the_request() {
    let authority = authority();
    let request = ParsedCsr::from_pem(greedy_request().as_bytes()).unwrap();
    let pem =
        pem::parse(authority.issue(&leaf(), &request, NOW, Serial::random(&mut rng())).unwrap()).unwrap();
    let (_, certificate) = x509_parser::parse_x509_certificate(pem.contents()).unwrap();

    assert_eq!(certificate.subject().to_string(), "O=system:masters, CN=kube-apiserver");
    assert_eq!(certificate.issuer().to_string(), "CN=metalform-kubernetes");
    let names = &certificate.subject_alternative_name().unwrap().unwrap().value.general_names;
    let service = IpAddr::from(Ipv4Addr::new(10, 96, 0, 1));
    let IpAddr::V4(service) = service else { unreachable!() };
    assert_eq!(
        *names,
        [GeneralName::DNSName("kubernetes.default.svc"), GeneralName::IPAddress(&service.octets())]
    );
    let usage = certificate.extended_key_usage().unwrap().unwrap().value;
    assert!(usage.server_auth && usage.client_auth && !usage.any);
    assert!(!certificate.is_ca());
    assert_eq!(certificate.public_key().raw, request.public_key());
    assert_eq!(
        validity(&certificate).unwrap(),
        Validity {
            not_before: NOW - SignedDuration::from_mins(5),
            not_after: NOW + SignedDuration::from_hours(365 * 24),
        }
    );

    let ca = pem::parse(authority.certificate()).unwrap();
    let (_, ca) = x509_parser::parse_x509_certificate(ca.contents()).unwrap();
    certificate.verify_signature(Some(ca.public_key())).unwrap();
}

#[test]
fn a_ca_survives_its_pem() {
    let made = authority();
    let loaded = Authority::from_pem(made.certificate(), made.key()).unwrap();
    assert_eq!(loaded.validity(), Validity::starting(NOW, days(3650)));
    let pair = loaded.issue_pair(&leaf(), NOW, &mut rng()).unwrap();
    assert!(KeyPair::from_pem(&pair.key).is_ok());
    assert!(matches!(
        Authority::from_pem(&pair.certificate, &pair.key).err(),
        Some(AuthorityError::NotAnAuthority { .. })
    ));
}

#[test]
fn the_key_of_another_ca_is_refused() {
    let error = Authority::from_pem(authority().certificate(), seeded(8).key()).err();
    assert_eq!(error, Some(AuthorityError::Mismatch));
    let error = Authority::from_pem(authority().certificate(), "no key").err();
    assert!(matches!(error, Some(AuthorityError::Key { .. })));
    let error = Authority::from_pem("no certificate", authority().key()).err();
    assert!(matches!(error, Some(AuthorityError::Certificate { .. })));
}

#[test]
fn a_leaf_never_outlives_its_ca() {
    let authority = authority();
    let late = authority.validity().not_after - SignedDuration::from_hours(24);
    let pem = pem::parse(authority.issue_pair(&leaf(), late, &mut rng()).unwrap().certificate).unwrap();
    let (_, certificate) = x509_parser::parse_x509_certificate(pem.contents()).unwrap();
    assert_eq!(validity(&certificate).unwrap().not_after, authority.validity().not_after);

    let too_late = late + SignedDuration::from_hours(25);
    assert!(matches!(
        authority.issue_pair(&leaf(), too_late, &mut rng()).err(),
        Some(AuthorityError::NotValidNow { .. })
    ));
}

#[test]
fn an_invalid_alternative_name_is_refused() {
    let leaf = Leaf { names: vec!["not a name".into()], ..leaf() };
    assert_eq!(
        authority().issue_pair(&leaf, NOW, &mut rng()).err(),
        Some(AuthorityError::Leaf(LeafError::Name { name: "not a name".into() }))
    );
}
