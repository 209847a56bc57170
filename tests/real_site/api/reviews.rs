//! Reviews of tokens and rights, which are answered and not stored.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

/// What reviews are answered from, and which there were.
#[derive(Default)]
pub struct Reviews {
    /// Token → user.
    pub tokens: BTreeMap<String, String>,
    /// User and path.
    pub readers: BTreeSet<(String, String)>,
    /// Titles of all reviews.
    pub asked: Vec<String>,
}

impl Reviews {
    /// The answer to a review; `None` for any other request.
    pub fn answer(&mut self, title: &str, body: &[u8]) -> Option<Value> {
        let answer = match title {
            "create tokenreviews" => Self::token_review,
            "create subjectaccessreviews" => Self::access_review,
            _ => return None,
        };
        self.asked.push(title.to_owned());
        let mut review: Value = serde_json::from_slice(body).unwrap();
        review["status"] = answer(self, &review["spec"]);
        Some(review)
    }

    fn token_review(&self, spec: &Value) -> Value {
        match self.tokens.get(spec["token"].as_str().unwrap()) {
            Some(user) => json!({
                "authenticated": true,
                "user": { "username": user, "uid": "u", "groups": ["system:authenticated"], "extra": { "e": ["1"] } },
            }),
            None => json!({ "error": "invalid bearer token" }),
        }
    }

    /// As RBAC: what is not allowed is not. All that the token has of its user is to be there.
    fn access_review(&self, spec: &Value) -> Value {
        let whole =
            spec["groups"] == json!(["system:authenticated"]) && spec["extra"] == json!({ "e": ["1"] });
        let get = &spec["nonResourceAttributes"];
        let reader = |text: &Value| text.as_str().unwrap_or_default().to_owned();
        let reader = (reader(&spec["user"]), reader(&get["path"]));
        json!({ "allowed": whole && get["verb"] == "get" && self.readers.contains(&reader) })
    }
}
