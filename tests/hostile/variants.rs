//! A text in every place of every kind, one place at a time.

use metalform::resource::Resource;
use metalform::resource::contract::ensure::Ensure;
use metalform::resource::fields::field::FieldSort;
use metalform::resource::fields::given::FieldError;
use metalform::resource::kinds;
use serde_json::{Value, json};

use crate::bases::{Plain, bases};
use crate::play::Host;

/// A resource with the text in one place.
pub struct Variant {
    plain: Plain,
    place: String,
    pub may_fail: bool,
    /// Its name is a path of the test's own.
    is_path: bool,
}

impl Variant {
    pub fn title(&self) -> String {
        format!("{} with {} of {:?}", self.plain.name.escape_debug(), self.place, self.plain.kind)
    }

    pub fn id(&self) -> String {
        format!("{}:{}", self.plain.kind, self.plain.name)
    }

    pub fn kind(&self) -> &'static str {
        self.plain.kind
    }

    pub fn parse(&self, ensure: Ensure) -> Result<Resource, FieldError> {
        self.plain.parse(ensure)
    }

    /// Where its name is a path: that there is something, or nothing any more, and with what content.
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

/// Everything that can be made of a text.
pub fn variants(host: &Host, text: &str) -> Vec<Variant> {
    let below = format!("{}/{text}", host.files().display());
    let mut variants = Vec::new();
    for base in bases() {
        let spec = kinds().iter().find(|spec| spec.name == base.kind).unwrap();
        let is_path =
            base.name.starts_with('@') && matches!(base.kind, "directory" | "file" | "symlink" | "template");
        let mut add = |place: &str, change: &dyn Fn(&mut Plain, usize)| {
            let number = variants.len();
            let mut plain = base.resource(host, number);
            change(&mut plain, number);
            variants.push(Variant { plain, place: place.to_owned(), may_fail: base.may_fail, is_path });
        };
        add("the name", &|plain, number| {
            let directory = host.files().join(number.to_string());
            plain.name = match base.name.starts_with('@') {
                // In a directory of its own, which is part of what is asked for.
                true => format!("{}/{text}", directory.display()),
                false => text.to_owned(),
            };
        });
        for field in spec.fields.iter().filter(|field| !base.shell.contains(&field.name)) {
            let values: Vec<Value> = match field.sort {
                FieldSort::Text | FieldSort::Any => vec![json!(text), json!(below)],
                FieldSort::TextList => vec![json!([text]), json!(["x", below])],
                FieldSort::TextMap => vec![json!({text: "x"}), json!({"x": text})],
                FieldSort::Mode | FieldSort::Integer | FieldSort::Boolean => Vec::new(),
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
