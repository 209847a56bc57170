//! One plain resource of each kind. `#` in a string is replaced by a number, so that no two manage the same thing, and
//! `@` by a directory of the test.

use metalform::resource::Resource;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::contract::kind::Kind;
use metalform::resource::fields::field_error::FieldError;
use serde_json::{Map, Value};

use crate::play::Host;

/// A resource as in a state file.
pub struct Plain {
    pub kind: Kind,
    pub name: String,
    pub fields: Map<String, Value>,
}

impl Plain {
    pub fn parse(&self, ensure: Ensure) -> Result<Resource, FieldError> {
        Resource::parse(self.kind, &self.name, self.fields.clone(), ensure, false)
    }
}

pub struct Base {
    pub kind: Kind,
    pub name: &'static str,
    /// JSON.
    pub fields: &'static str,
    /// Fields that are shell scripts.
    pub shell: &'static [&'static str],
    /// Its steps need more than the commands of the test simulate.
    pub may_fail: bool,
}

impl Base {
    const fn new(kind: Kind, name: &'static str, fields: &'static str) -> Self {
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
    // The download does not exist.
    Base::new(Kind::Archive, "@/a#", r#"{"url": "http://192.0.2.1/a.tar", "sha256": "SHA256"}"#).that_may_fail(),
    Base::new(Kind::Binary, "@/b#", r#"{"url": "http://192.0.2.1/b", "sha256": "SHA256"}"#).that_may_fail(),
    Base::new(Kind::AuthorizedKey, "Key #", r#"{"user": "u#", "key": "A KEY"}"#).that_may_fail(),
    Base::new(
        Kind::Certificate,
        "@/c#.crt",
        r#"{"key": "@/c#.key", "authority": "x", "common_name": "x", "usages": ["server"]}"#,
    )
    .that_may_fail(),
    Base {
        shell: &["run", "unless", "only_if"],
        ..Base::new(Kind::Command, "Say #", r#"{"run": ":", "creates": "@/never#"}"#)
    },
    Base::new(Kind::Directory, "@/d#", "{}"),
    Base::new(Kind::File, "@/f#", r#"{"content": "x"}"#),
    // The commands of the test create no account and mount nothing.
    Base::new(Kind::Group, "g#", "{}").that_may_fail(),
    Base::new(Kind::HostEntry, "10.2.3.#", r#"{"names": ["h#"]}"#),
    Base::new(Kind::Image, "registry.example/i#:1", "{}"),
    Base::new(Kind::Kmod, "m#", "{}"),
    Base::new(
        Kind::Kubeconfig,
        "@/k#",
        r#"{"server": "https://127.0.0.1:7443", "ca": "@/ca", "certificate": "@/k#.crt", "key": "@/k#.key", "authority": "kubernetes", "common_name": "x"}"#,
    )
    .that_may_fail(),
    Base::new(Kind::Line, "Line #", r#"{"path": "@/lines#", "text": "x", "create": true}"#),
    Base::new(Kind::Mount, "@/m#", r#"{"device": "tmpfs", "type": "tmpfs"}"#).that_may_fail(),
    Base::new(Kind::Package, "p#", "{}"),
    Base::new(
        Kind::PackageRepository,
        "r#",
        r#"{"uri": "http://192.0.2.1/", "suite": "s", "components": ["main"], "key": "-----BEGIN PGP PUBLIC KEY BLOCK-----"}"#,
    ),
    Base::new(Kind::Reboot, "Reboot #", r#"{"when_file": "@/never"}"#).that_may_fail(),
    Base::new(Kind::Route, "10.1.#.0/24", r#"{"device": "eth0"}"#),
    Base::new(Kind::Service, "s#", "{}"),
    Base::new(Kind::StaticPod, "p#", r#"{"content": "x"}"#),
    Base::new(Kind::Swap, "off", "{}").that_may_fail(),
    Base::new(Kind::Symlink, "@/l#", r#"{"target": "x"}"#),
    // A parameter that does not exist cannot be set.
    Base::new(Kind::Sysctl, "net.v#", r#"{"value": "1"}"#).that_may_fail(),
    Base::new(Kind::Template, "@/t#", r#"{"content": "x"}"#),
    Base::new(Kind::Unit, "u#.service", r#"{"content": "[Service]\nExecStart=/bin/true\n"}"#),
    Base::new(Kind::User, "u#", "{}").that_may_fail(),
    Base::new(Kind::Wait, "Wait #", r#"{"file": "@", "deadline": 1}"#).that_may_fail(),
];
