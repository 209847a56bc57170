//! One plain resource of each kind. `#` in a text is a number, so that no two are about the same thing; `@` is a
//! directory of the test.

use metalform::resource::Resource;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::fields::given::FieldError;
use serde_json::{Map, Value};

use crate::play::Host;

/// A resource as a state file has it.
pub struct Plain {
    pub kind: &'static str,
    pub name: String,
    pub fields: Map<String, Value>,
}

impl Plain {
    /// Without what is only for one that should be present.
    pub fn parse(&self, ensure: Ensure) -> Result<Resource, FieldError> {
        Resource::parse(self.kind, &self.name, self.fields.clone(), ensure, false)
    }
}

pub struct Base {
    pub kind: &'static str,
    pub name: &'static str,
    /// JSON.
    pub fields: &'static str,
    /// Fields that are shell text by their meaning.
    pub shell: &'static [&'static str],
    /// Its steps need what the test's commands do not play.
    pub may_fail: bool,
}

impl Base {
    const fn new(kind: &'static str, name: &'static str, fields: &'static str) -> Self {
        Self { kind, name, fields, shell: &[], may_fail: false }
    }

    const fn that_may_fail(self) -> Self {
        Self { may_fail: true, ..self }
    }

    pub fn resource(&self, host: &Host, number: usize) -> Plain {
        let (number, files) = (number.to_string(), host.files());
        let fill = |text: &str| {
            text.replace('#', &number)
                .replace('@', files.to_str().unwrap())
                .replace("SHA256", SHA256)
                .replace("A KEY", KEY)
        };
        Plain {
            kind: self.kind,
            name: fill(self.name),
            fields: serde_json::from_str(&fill(self.fields)).unwrap(),
        }
    }
}

const KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAABAgMEBQYHCAkKCwwNDg8QERITFBUWFxgZGhscHR4f";
const SHA256: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

pub const BASES: &[Base] = &[
    // What is downloaded is not there.
    Base::new("archive", "@/a#", r#"{"url": "http://192.0.2.1/a.tar", "sha256": "SHA256"}"#).that_may_fail(),
    Base::new("binary", "@/b#", r#"{"url": "http://192.0.2.1/b", "sha256": "SHA256"}"#).that_may_fail(),
    Base::new("authorized_key", "Key #", r#"{"user": "u#", "key": "A KEY"}"#).that_may_fail(),
    Base::new(
        "certificate",
        "@/c#.crt",
        r#"{"key": "@/c#.key", "authority": "x", "common_name": "x", "usages": ["server"]}"#,
    )
    .that_may_fail(),
    Base {
        shell: &["run", "unless", "only_if"],
        ..Base::new("command", "Say #", r#"{"run": ":", "creates": "@/never#"}"#)
    },
    Base::new("directory", "@/d#", "{}"),
    Base::new("file", "@/f#", r#"{"content": "x"}"#),
    // The test's commands make no account and mount nothing, so what follows from that is missed.
    Base::new("group", "g#", "{}").that_may_fail(),
    Base::new("host_entry", "10.2.3.#", r#"{"names": ["h#"]}"#),
    Base::new("image", "registry.example/i#:1", "{}"),
    Base::new("kmod", "m#", "{}"),
    Base::new(
        "kubeconfig",
        "@/k#",
        r#"{"server": "https://127.0.0.1:7443", "ca": "@/ca", "certificate": "@/k#.crt", "key": "@/k#.key", "authority": "kubernetes", "common_name": "x"}"#,
    )
    .that_may_fail(),
    Base::new("line", "Line #", r#"{"path": "@/lines#", "text": "x", "create": true}"#),
    Base::new("mount", "@/m#", r#"{"device": "tmpfs", "type": "tmpfs"}"#).that_may_fail(),
    Base::new("package", "p#", "{}"),
    Base::new(
        "package_repository",
        "r#",
        r#"{"uri": "http://192.0.2.1/", "suite": "s", "components": ["main"], "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----"}"#,
    ),
    Base::new("reboot", "Reboot #", r#"{"when_file": "@/never"}"#).that_may_fail(),
    Base::new("route", "10.1.#.0/24", r#"{"device": "eth0"}"#),
    Base::new("service", "s#", "{}"),
    Base::new("static_pod", "p#", r#"{"content": "x"}"#),
    Base::new("swap", "off", "{}").that_may_fail(),
    Base::new("symlink", "@/l#", r#"{"target": "x"}"#),
    // A parameter that is not there cannot be set.
    Base::new("sysctl", "net.v#", r#"{"value": "1"}"#).that_may_fail(),
    Base::new("template", "@/t#", r#"{"content": "x"}"#),
    Base::new("unit", "u#.service", r#"{"content": "[Service]\nExecStart=/bin/true\n"}"#),
    Base::new("user", "u#", "{}").that_may_fail(),
    Base::new("wait", "Wait #", r#"{"file": "@", "deadline": 1}"#).that_may_fail(),
];

/// Those of kinds that there are.
pub fn bases() -> impl Iterator<Item = &'static Base> {
    BASES.iter().filter(|base| metalform::resource::fields(base.kind).is_some())
}
