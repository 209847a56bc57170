use std::path::Path;
use std::process::Command;

use pgp::ser::Serialize;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

const NOW: Timestamp = Timestamp::constant(1_760_000_000, 0);

/// Everything that canonicalisation can get wrong: trailing blanks, dashes, CRLF, an empty line.
const RELEASE: &str =
    "Origin: metalform\r\nSuite: stable  \n- dashed\n-----BEGIN\n\nSHA256:\n abc 1 main/Packages\t\n";

fn key() -> RepositoryKey {
    seeded(3)
}

fn seeded(seed: u64) -> RepositoryKey {
    RepositoryKey::create("metalform repository", NOW, &mut StdRng::seed_from_u64(seed)).unwrap()
}

/// Runs a verifier where the machine has it; `None` where it has not.
fn run(command: &mut Command) -> Option<(bool, String)> {
    let output = command.output().ok()?;
    Some((output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned()))
}

fn gpgv(folder: &Path, signed: &str) -> Option<(bool, String)> {
    let (ring, file) = (folder.join("key.gpg"), folder.join("InRelease"));
    std::fs::write(&ring, key().0.to_public_key().to_bytes().unwrap()).unwrap();
    std::fs::write(&file, signed).unwrap();
    run(Command::new("gpgv").arg("--keyring").arg(&ring).arg(&file))
}

/// As APT hands it to sqv: text and signature apart, without the line end that belongs to the armor.
fn sqv(folder: &Path, signed: &str) -> Option<(bool, String)> {
    let (armor, data, signature) = (folder.join("key.asc"), folder.join("data"), folder.join("data.sig"));
    let (_, body) = signed.split_once("\n\n").unwrap();
    let (text, rest) = body.split_once("\n-----BEGIN PGP SIGNATURE").unwrap();
    let text: Vec<&str> = text.lines().map(|line| line.strip_prefix("- ").unwrap_or(line)).collect();
    std::fs::write(&armor, key().public_armor().unwrap()).unwrap();
    std::fs::write(&data, text.join("\n")).unwrap();
    std::fs::write(&signature, format!("-----BEGIN PGP SIGNATURE{rest}")).unwrap();
    run(Command::new("sqv").arg("--keyring").arg(&armor).arg(&signature).arg(&data))
}

#[test]
fn debians_verifiers_accept_an_in_release_and_refuse_a_changed_one() {
    let folder = tempfile::tempdir().unwrap();
    let signed = key().clear_sign(RELEASE, NOW).unwrap();
    let changed = signed.replace("stable", "stabler");
    for verify in [gpgv, sqv] {
        let Some((accepted, output)) = verify(folder.path(), &signed) else { continue };
        assert!(accepted, "{output}");
        let (accepted, _) = verify(folder.path(), &changed).unwrap();
        assert!(!accepted);
    }
}

#[test]
fn the_library_itself_accepts_what_it_signed() {
    let signed = key().clear_sign(RELEASE, NOW).unwrap();
    assert!(
        signed.starts_with("-----BEGIN PGP SIGNED MESSAGE-----\nHash: SHA512\n\nOrigin: metalform\n"),
        "{signed}"
    );
    assert!(signed.contains("Suite: stable\n- - dashed\n- -----BEGIN\n\nSHA256:\n abc 1 main/Packages\n-----BEGIN PGP SIGNATURE-----"), "{signed}");
    let (message, _) = CleartextSignedMessage::from_string(&signed).unwrap();
    message.verify(&key().0.to_public_key()).unwrap();
}

#[test]
fn a_signature_is_verified_by_key_and_text() {
    let signed = key().clear_sign(RELEASE, NOW).unwrap();
    assert_eq!(key().verify(&signed, RELEASE), Ok(()));
    let refused = |key: RepositoryKey, signed: &str, text: &str| {
        assert!(matches!(key.verify(signed, text), Err(OpenPgpError::NotSigned { .. })), "{signed} {text}");
    };
    // Another key of the same owner; a changed text; the signature of an older index; no signature at all.
    refused(seeded(4), &signed, RELEASE);
    refused(key(), &signed.replace("stable", "stabler"), &RELEASE.replace("stable", "stabler"));
    refused(key(), &signed, &RELEASE.replace("abc", "abd"));
    refused(key(), RELEASE, RELEASE);
}

#[test]
fn a_detached_signature_is_verified_by_key_and_bytes() {
    const INDEX: &str = "<repomd>\r\n <revision>1</revision>  \n</repomd>\n";
    let signature = key().sign_detached(INDEX, NOW).unwrap();
    assert!(signature.starts_with("-----BEGIN PGP SIGNATURE-----"), "{signature}");
    assert_eq!(key().verify_detached(&signature, INDEX), Ok(()));
    let refused = |key: RepositoryKey, signature: &str, text: &str| {
        assert!(
            matches!(key.verify_detached(signature, text), Err(OpenPgpError::NotSigned { .. })),
            "{text}"
        );
    };
    // Unlike a clear signature, it covers white space at the ends of lines.
    refused(key(), &signature, &INDEX.replace("  \n", "\n"));
    refused(key(), &signature, &INDEX.replace("\r\n", "\n"));
    refused(seeded(4), &signature, INDEX);
    refused(key(), INDEX, INDEX);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("key.gpg"), key().0.to_public_key().to_bytes().unwrap()).unwrap();
    std::fs::write(at("repomd.xml.asc"), &signature).unwrap();
    for (text, accepted) in [(INDEX, true), ("<repomd/>", false)] {
        std::fs::write(at("repomd.xml"), text).unwrap();
        let mut gpgv = Command::new("gpgv");
        gpgv.arg("--keyring").arg(at("key.gpg")).arg(at("repomd.xml.asc")).arg(at("repomd.xml"));
        let Some((found, output)) = run(&mut gpgv) else { continue };
        assert_eq!(found, accepted, "{output}");
    }
}

#[test]
fn a_key_survives_its_armor_and_the_public_half_contains_no_secret() {
    let armor = key().to_armor().unwrap();
    let again = RepositoryKey::from_armor(&armor).unwrap();
    assert_eq!(again.fingerprint(), key().fingerprint());
    assert_eq!(again.fingerprint().len(), 40);
    let public = again.public_armor().unwrap();
    assert!(public.starts_with("-----BEGIN PGP PUBLIC KEY BLOCK-----"));
    assert!(RepositoryKey::from_armor(&public).is_err());
    assert!(RepositoryKey::from_armor("nothing").is_err());
}

#[test]
fn a_clock_that_openpgp_cannot_express_is_an_error() {
    let error = key().clear_sign("a", Timestamp::UNIX_EPOCH).err();
    assert_eq!(error, Some(OpenPgpError::Clock { now: Timestamp::UNIX_EPOCH }));
}
