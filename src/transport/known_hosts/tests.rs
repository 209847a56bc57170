use super::*;

const HOST: &str = "node-1";
const ED25519: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIO0ubXmGlV+Z11bVrL3Po0Yurj5GXN8MM08ZsMJ1E5A9";
const OTHER_ED25519: &str =
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFYKH7Ht8psbw8GwQn2feX5JU1NOYwqRy7jlq6cb4uTM";
const P256: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBLRt/BSLmtkW3XvfD23cR2RNwnJRVDX7y20xlIXZi4Kf/nTLq+PjmAB5qfJM5NRU9hD1dhfeKjTfla5yMrxDz1M=";
const P384: &str = "ecdsa-sha2-nistp384 AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBH0DQqbXCDXOuwK4a36i1XzN94S3Y31WYYOFwXTwmTN4i+WJkxKOz2ERkW9rg3VI6v08Vqy6lEQ+J2be9rFRB8QOcx4HqjQkSH6EAklU3LnQxJgx4eaKmOMgU2lr39nZ+g==";
const P521: &str = "ecdsa-sha2-nistp521 AAAAE2VjZHNhLXNoYTItbmlzdHA1MjEAAAAIbmlzdHA1MjEAAACFBAHp+6Nf3AgRkoUMVjAWKu6JuwyTucnk/FXSJTYSPFqYfAmlmxbbJMaY3zrNsQwz/tik2DgrpOPs65UoFTw5uV9TfQCDD1aMIhWcnMJQjaxkvfGbKu07Sz0JpUyKHZzLsGANMFADgpn/NtPPVZB0pbNHN4NkcdukngqDnXrPgfM0vwBfVw==";
const RSA: &str = "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDB2p6BEl4dbenWKd6EvKpOEXXHriJubVad66QeeLTjZWffIMYBpGbK/AQjjFKVh3kq+XesqPf3mxWkXnEFxB3iFEO+RB+E+ib4rMLPIbyn/Rf6uZnhfj3LN8RWGnixL8qPv8sktC/x0H0DuOmh1cTRp1B/KpQ1jKwF2Vjx4Vpt9ZO/0gJR8P2+1sK9ItW65VAfnvalXPdjFewjC1dY3wOq/N7FDqi7NLgS9sNeUdoW1eRninGYvlc2B/YH2F8tZCCqbghFVsw2WQFb7HF+kBbw2Lab5fWZZpGOExImcLmUUoQNMqfOAg3TWWWSbuYgkyI0bcNiusR1tiy3XEWq07kf";
const DSA: &str = "ssh-dss AAAAB3NzaC1kc3MAAACBANFIIX/OrGrb0+3wKsYqkootqLH129mImWC0XwnxcwiF2C11mchu8JN9RPAMTOkp1mPUuIKv4H3AE22GPy10xwLKzdTeloSxAbv4hisWcgf3jCk7FNNSI8Rs4qt0+kU19BlhgPhpplCXKYQMW3V3a40oPUHeQ0oU66fEaYsfaOb9AAAAFQCd8go8WU66QvbDUu0hrgXpS8yfdQAAAIBv/tkmG1ITDsW+w00F+rizvl5YKMgUQwaMkC6vxrwzKw3RyKqIYDn0ydNY6Fs80hElg/4N2jkC6pSBCn15YY6DZ6dkviRZOjrEZuuOscs0utbvwJM2SLVSutUIzDJjiyzK+TfYYsv++z/RqQGmp6wytFtVaaMBt52NqN/kTJvw+QAAAIBI7Ttc1gy9XF7RDFi3xW12efNJ1nEqTUExUgr5aYXoT8zD26EAERyLsy1fw9ZKwBJ8KzxlTNdikow7SE/TBRQG3e3U+Klt5vI0ZoQYh/xdJ9Ukq7Z3eLWbrNLeINKfRrc42HXcVOvtFE7I0h0efiMWnOIhEUouYkByZzhwMLTyow==";
// Of a hardware token.
const SECURITY_KEY: &str = "sk-ssh-ed25519@openssh.com AAAAGnNrLXNzaC1lZDI1NTE5QG9wZW5zc2guY29tAAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4fAAAABHNzaDo=";

fn key(text: &str) -> PublicKey {
    PublicKey::from_openssh(text).unwrap()
}

fn pinned(text: &str) -> HostKeyPolicy {
    HostKeyPolicy::Pinned(text.to_owned())
}

#[derive(Debug, PartialEq, Eq)]
enum Is {
    Accepted,
    Remembered,
    Unknown,
    Mismatch,
}

#[test]
fn the_verdict_depends_on_policy_and_known_lines() {
    use HostKeyPolicy::{AcceptNew, Known};
    let line = |names: &str, key: &str| format!("{names} {key}\n");
    let ours = line(HOST, ED25519);
    let revoked = format!("@revoked * {ED25519}\n");
    let cases = [
        // Pinned: nothing but the pinned key, whatever is in the file.
        (pinned(ED25519), String::new(), ED25519, Is::Accepted),
        (pinned(&format!("{ED25519} admin@site")), String::new(), ED25519, Is::Accepted),
        (pinned(ED25519), String::new(), OTHER_ED25519, Is::Mismatch),
        (pinned(ED25519), line(HOST, OTHER_ED25519), OTHER_ED25519, Is::Mismatch),
        (pinned(ED25519), line(HOST, OTHER_ED25519), ED25519, Is::Accepted),
        (pinned("nonsense"), ours.clone(), ED25519, Is::Mismatch),
        (pinned(ED25519), revoked.clone(), ED25519, Is::Mismatch),
        // Known: what the file contains.
        (Known, ours.clone(), ED25519, Is::Accepted),
        (Known, String::new(), ED25519, Is::Unknown),
        (Known, line("node-2", ED25519), ED25519, Is::Unknown),
        (Known, ours.clone(), OTHER_ED25519, Is::Mismatch),
        (Known, line(HOST, RSA) + &ours, ED25519, Is::Accepted),
        (Known, line(HOST, RSA), ED25519, Is::Mismatch),
        (Known, revoked.clone() + &ours, ED25519, Is::Mismatch),
        (Known, revoked.clone() + &line(HOST, RSA), RSA, Is::Accepted),
        (Known, format!("@cert-authority {HOST} {ED25519}\n"), ED25519, Is::Unknown),
        // Accept new: only a host without any line is new.
        (AcceptNew, String::new(), ED25519, Is::Remembered),
        (AcceptNew, ours.clone(), ED25519, Is::Accepted),
        (AcceptNew, ours.clone(), OTHER_ED25519, Is::Mismatch),
        (AcceptNew, line(HOST, RSA), ED25519, Is::Mismatch),
        (AcceptNew, revoked, ED25519, Is::Mismatch),
        // The form of lines.
        (Known, format!("{HOST}\t {ED25519} a comment # here\r\n"), ED25519, Is::Accepted),
        (Known, format!("# {ours}"), ED25519, Is::Unknown),
        (Known, format!("not a line\n\n{HOST} ssh-future AAAA\n{ours}"), ED25519, Is::Accepted),
        // Every type of key.
        (Known, line(HOST, P256), P256, Is::Accepted),
        (Known, line(HOST, P384), P384, Is::Accepted),
        (Known, line(HOST, P521), P521, Is::Accepted),
        (Known, line(HOST, RSA), RSA, Is::Accepted),
        (Known, line(HOST, DSA), DSA, Is::Accepted),
        (Known, line(HOST, SECURITY_KEY), SECURITY_KEY, Is::Accepted),
        (Known, line(HOST, SECURITY_KEY), ED25519, Is::Mismatch),
    ];
    for (policy, file, shown, expected) in cases {
        let found = match verdict(&policy, &KnownHosts::parse("known_hosts", &file), HOST, 22, &key(shown)) {
            KeyVerdict::Accept => Is::Accepted,
            KeyVerdict::Remember => Is::Remembered,
            KeyVerdict::Unknown => Is::Unknown,
            KeyVerdict::Mismatch { .. } => Is::Mismatch,
        };
        assert_eq!(found, expected, "{policy:?}\n{file}{shown}");
    }
}

#[test]
fn a_mismatch_has_the_expected_key_and_its_source() {
    let fingerprint = "ssh-ed25519 SHA256:l8L34c6uyhPYbH3KUdhXQRONkEjP2M1SODsQqVylS7I";
    let expected = |policy: &HostKeyPolicy, file: &str| match verdict(
        policy,
        &KnownHosts::parse("known_hosts", file),
        HOST,
        22,
        &key(OTHER_ED25519),
    ) {
        KeyVerdict::Mismatch { expected } => expected,
        other => format!("{other:?}"),
    };
    assert_eq!(expected(&pinned(ED25519), ""), format!("{fingerprint} (pinned)"));
    let file = format!("# ours\n{HOST} {ED25519}\n");
    assert_eq!(expected(&HostKeyPolicy::Known, &file), format!("{fingerprint} (known_hosts:2)"));
    let file = format!("\n\n@revoked {HOST} {OTHER_ED25519}\n");
    assert_eq!(
        expected(&HostKeyPolicy::AcceptNew, &file),
        "another key (this one is revoked in known_hosts:3)"
    );
}

#[test]
fn algorithms_of_known_keys_are_first_and_sha_1_is_never_used() {
    let first = |policy: &HostKeyPolicy, file: &str| -> Vec<String> {
        let all = algorithms(policy, &KnownHosts::parse("known_hosts", file), HOST, 22);
        assert_eq!(all.len(), 6);
        all.iter().take(2).map(ToString::to_string).collect()
    };
    let file = format!("{HOST} {P384}\n");
    assert_eq!(first(&HostKeyPolicy::Known, ""), ["ssh-ed25519", "ecdsa-sha2-nistp256"]);
    assert_eq!(first(&HostKeyPolicy::Known, &file), ["ecdsa-sha2-nistp384", "ssh-ed25519"]);
    assert_eq!(first(&pinned(RSA), &file), ["rsa-sha2-512", "rsa-sha2-256"]);
}

#[test]
fn a_key_that_the_operator_verified_replaces_another_one_and_no_other_key_is_accepted() {
    let fingerprint = key(ED25519).fingerprint(HashAlg::Sha256).to_string();
    let policy = HostKeyPolicy::Fingerprint(fingerprint.clone());
    let verdict_on = |file: &str, key: &PublicKey| {
        verdict(&policy, &KnownHosts::parse("known_hosts", file), HOST, 22, key)
    };
    let (same, other) = (format!("{HOST} {ED25519}\n"), format!("{HOST} {OTHER_ED25519}\n"));
    assert_eq!(verdict_on("", &key(ED25519)), KeyVerdict::Remember);
    assert_eq!(verdict_on(&same, &key(ED25519)), KeyVerdict::Accept);
    assert_eq!(verdict_on(&other, &key(ED25519)), KeyVerdict::Remember);
    let refused = KeyVerdict::Mismatch { expected: fingerprint };
    assert_eq!(verdict_on(&other, &key(OTHER_ED25519)), refused);
    let revoked = format!("@revoked {HOST} {ED25519}\n");
    assert!(matches!(verdict_on(&revoked, &key(ED25519)), KeyVerdict::Mismatch { .. }));
}
