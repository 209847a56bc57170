use super::*;

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIFdvrUKgYXnEjtUQ0WqTGVdXE2fVoVzVGyYaPBAMwXv2";

fn decode(yaml: &str) -> Result<ProviderConfig, String> {
    let value = serde_saphyr::from_str(yaml).unwrap();
    ProviderSpec { value }.decode().map_err(|error| error.to_string())
}

#[test]
fn a_block_has_defaults_for_all_but_provider_and_operating_system() {
    let config = decode("{cloudProvider: metalform, operatingSystem: debian}").unwrap();
    let expected = ProviderConfig {
        cloud_provider: CloudProvider::Metalform,
        cloud_provider_spec: CloudProviderSpec::default(),
        operating_system: "debian".parse().unwrap(),
        operating_system_spec: OperatingSystemSpec { dist_upgrade_on_boot: false },
        ssh_public_keys: Vec::new(),
    };
    assert_eq!(config, expected);
    let empty = "{cloudProvider: metalform, cloudProviderSpec: {hostSelector: {}}, operatingSystem: debian, \
                 operatingSystemSpec: {}, sshPublicKeys: []}";
    assert_eq!(decode(empty), Ok(expected.clone()));
    // What is written again is as short as it was.
    let written = serde_json::to_value(&expected).unwrap();
    assert_eq!(written, serde_json::json!({ "cloudProvider": "metalform", "operatingSystem": "debian" }));
}

#[test]
fn every_field_of_a_block_is_decoded() {
    let config = decode(&format!(
        "{{cloudProvider: metalform, cloudProviderSpec: {{hostSelector: {{matchLabels: {{flavor: m1.small}}}}, \
         failureDomain: dbl1}}, operatingSystem: ubuntu, operatingSystemSpec: {{distUpgradeOnBoot: true}}, \
         sshPublicKeys: [{KEY}]}}"
    ))
    .unwrap();
    assert_eq!(config.operating_system.as_str(), "ubuntu");
    assert!(config.operating_system_spec.dist_upgrade_on_boot);
    assert_eq!(config.ssh_public_keys[0].as_str(), KEY);
    let labels = |value: &str| BTreeMap::from([("flavor".to_owned(), value.to_owned())]);
    let requirements = &config.cloud_provider_spec;
    for (flavor, domain, expected) in [
        ("m1.small", Some("dbl1"), true),
        ("m1.small", Some("dbl2"), false),
        ("m1.small", None, false),
        ("m1.micro", Some("dbl1"), false),
    ] {
        assert_eq!(requirements.match_host(&labels(flavor), domain), expected, "{flavor} {domain:?}");
    }
}

/// Each has one error, which names the field by its path.
#[test]
fn an_invalid_block_has_one_error_with_the_path() {
    let cases = [
        "{}",
        "[]",
        "null",
        "{cloudProvider: openstack, operatingSystem: debian}",
        "{cloudProvider: metalform}",
        "{cloudProvider: metalform, operatingSystem: 13}",
        "{cloudProvider: metalform, operatingSystem: Debian 13}",
        "{cloudProvider: metalform, operatingSystem: debian, network: {}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {flavor: m1.small}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {hostSelecter: {}}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {hostSelector: {matchLabel: {a: b}}}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {hostSelector: {a: b}}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {hostSelector: {matchLabels: {a: 1}}}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {hostSelector: {matchExpressions: [{key: a, operator: Equals}]}}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {hostSelector: {matchExpressions: [{key: a, operator: In}]}}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {hostSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}}}",
        "{cloudProvider: metalform, operatingSystem: debian, cloudProviderSpec: {failureDomain: [a]}}",
        "{cloudProvider: metalform, operatingSystem: debian, operatingSystemSpec: {distUpgradeOnBoot: 'yes'}}",
        "{cloudProvider: metalform, operatingSystem: debian, operatingSystemSpec: {disableAutoUpdate: true}}",
        "{cloudProvider: metalform, operatingSystem: debian, sshPublicKeys: ssh-ed25519}",
        "{cloudProvider: metalform, operatingSystem: debian, sshPublicKeys: [a b]}",
    ];
    let errors: Vec<String> = cases.iter().map(|yaml| decode(yaml).unwrap_err()).collect();
    insta::assert_snapshot!(errors.join("\n"), @r#"
    providerSpec.value: missing field `cloudProvider`
    providerSpec.value: expected an object
    providerSpec.value: expected an object
    providerSpec.value.cloudProvider: unknown variant `openstack`, expected `metalform`
    providerSpec.value: missing field `operatingSystem`
    providerSpec.value.operatingSystem: invalid type: integer `13`, expected a string
    providerSpec.value.operatingSystem: "Debian 13" is not a distribution, such as debian or rocky
    providerSpec.value.network: unknown field `network`, expected one of `cloudProvider`, `cloudProviderSpec`, `operatingSystem`, `operatingSystemSpec`, `sshPublicKeys`
    providerSpec.value.cloudProviderSpec.flavor: unknown field `flavor`, expected `hostSelector` or `failureDomain`
    providerSpec.value.cloudProviderSpec.hostSelecter: unknown field `hostSelecter`, expected `hostSelector` or `failureDomain`
    providerSpec.value.cloudProviderSpec.hostSelector.matchLabel: unknown field `matchLabel`, expected `matchLabels` or `matchExpressions`
    providerSpec.value.cloudProviderSpec.hostSelector.a: unknown field `a`, expected `matchLabels` or `matchExpressions`
    providerSpec.value.cloudProviderSpec.hostSelector.matchLabels.a: invalid type: integer `1`, expected a string
    providerSpec.value.cloudProviderSpec.hostSelector.matchExpressions[0].operator: unknown variant `Equals`, expected one of `In`, `NotIn`, `Exists`, `DoesNotExist`
    providerSpec.value.cloudProviderSpec.hostSelector.matchExpressions[0]: operator In expects values
    providerSpec.value.cloudProviderSpec.hostSelector.matchExpressions[0]: operator Exists expects no values
    providerSpec.value.cloudProviderSpec.failureDomain: invalid type: sequence, expected a string
    providerSpec.value.operatingSystemSpec.distUpgradeOnBoot: invalid type: string "yes", expected a boolean
    providerSpec.value.operatingSystemSpec.disableAutoUpdate: unknown field `disableAutoUpdate`, expected `distUpgradeOnBoot`
    providerSpec.value.sshPublicKeys: invalid type: string "ssh-ed25519", expected a sequence
    providerSpec.value.sshPublicKeys[0]: "a b" is not a public key in OpenSSH format, such as "ssh-ed25519 AAAA... comment"
    "#);
}
