//! A string in every place of every kind, one place at a time.

use metalform::resource::Resource;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::contract::kind::Kind;
use metalform::resource::contract::resource_id::ResourceId;
use metalform::resource::fields;
use metalform::resource::fields::field_error::FieldError;
use metalform::resource::fields::field_spec::FieldType;
use serde_json::{Value, json};

use crate::bases::{BASES, Plain};
use crate::play::Host;

/// A resource with the string in one place.
pub struct Variant {
    plain: Plain,
    place: String,
    pub may_fail: bool,
    /// Its name is a path in the directory of the test.
    is_path: bool,
}

impl Variant {
    pub fn title(&self) -> String {
        format!("{} with {} of {}", self.plain.name.escape_debug(), self.place, self.plain.kind)
    }

    pub fn id(&self) -> ResourceId {
        ResourceId { kind: self.plain.kind, name: self.plain.name.clone() }
    }

    pub fn kind(&self) -> Kind {
        self.plain.kind
    }

    pub fn parse(&self, ensure: Ensure) -> Result<Resource, FieldError> {
        self.plain.parse(ensure)
    }

    /// Where its name is a path: it exists with the right content, or does not exist.
    pub fn expect_done(&self, ensure: Ensure, said: &str) {
        if !self.is_path || self.may_fail {
            return;
        }
        let found = std::fs::symlink_metadata(&self.plain.name);
        assert_eq!(found.is_ok(), ensure == Ensure::Present, "{said}");
        if let (Ensure::Present, Some(content)) = (ensure, self.plain.fields.get("content")) {
            let text = std::fs::read_to_string(&self.plain.name).unwrap();
            assert_eq!(Some(text.as_str()), content.as_str(), "{said}");
        }
        if let (Ensure::Present, Some(target)) = (ensure, self.plain.fields.get("target")) {
            let link = std::fs::read_link(&self.plain.name).unwrap();
            assert_eq!(link.to_str(), target.as_str(), "{said}");
        }
    }
}

/// The string in every place.
pub fn variants(host: &Host, text: &str) -> Vec<Variant> {
    let below = format!("{}/{text}", host.files().display());
    let mut variants = Vec::new();
    for base in BASES {
        let is_path = base.name.starts_with('@')
            && matches!(base.kind, Kind::Directory | Kind::File | Kind::Symlink | Kind::Template);
        let mut add = |place: &str, change: &dyn Fn(&mut Plain, usize)| {
            let number = variants.len();
            let mut plain = base.resource(host, number);
            change(&mut plain, number);
            variants.push(Variant { plain, place: place.to_owned(), may_fail: base.may_fail, is_path });
        };
        add("the name", &|plain, number| {
            let directory = host.files().join(number.to_string());
            plain.name = match base.name.starts_with('@') {
                // In a directory of its own, which is part of the desired path.
                true => format!("{}/{text}", directory.display()),
                false => text.to_owned(),
            };
        });
        for field in fields(base.kind).iter().filter(|field| !base.shell.contains(&field.name)) {
            let values: Vec<Value> = match field.takes {
                FieldType::String | FieldType::Any => vec![json!(text), json!(below)],
                FieldType::StringList => vec![json!([text]), json!(["x", below])],
                FieldType::StringMap => vec![json!({text: "x"}), json!({"x": text})],
                FieldType::Mode | FieldType::Integer | FieldType::Boolean => Vec::new(),
            };
            for value in values {
                add(field.name, &|plain, _| {
                    plain.fields.insert(field.name.to_owned(), value.clone());
                });
            }
        }
    }
    variants
}
