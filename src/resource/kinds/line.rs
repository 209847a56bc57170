//! `line`: one line of a text file that other programs edit too.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_spec::{FieldSpec, FieldType};
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::fields::pattern::Pattern;
use crate::resource::text::edited::Edited;
use crate::resource::text::lines::Lines;

pub const FIELDS: &[FieldSpec] = &[
    FieldSpec::required("path", FieldType::String, "The file, which must not be a link."),
    FieldSpec::required("text", FieldType::String, "The whole line."),
    FieldSpec::optional(
        "match",
        FieldType::String,
        "A regular expression for a whole line: the last line that matches is replaced by this text, other \
                lines that match are removed. With `ensure: absent` all lines that match are removed.",
    ),
    FieldSpec::optional(
        "below",
        FieldType::String,
        "A regular expression for a whole line: a new line is inserted below the last line that matches; \
                at the end of the file by default.",
    ),
    FieldSpec::optional(
        "create",
        FieldType::Boolean,
        "Whether a missing file is created (0644 root), false by default.",
    ),
];

/// A line. Whole lines are compared, white space included.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    file: Edited,
    ensure: Ensure,
    /// `None` only where it should be absent.
    text: Option<String>,
    matching: Option<Pattern>,
    below: Option<Pattern>,
}

impl Line {
    pub fn parse(fields: &FieldValues) -> Result<Self, FieldError> {
        let path = path::field(fields, "path")?.map_or_else(|| fields.need("path"), Ok)?;
        let text = fields.string("text");
        if text.as_deref().is_some_and(|text| text.is_empty() || text.contains(['\n', '\r'])) {
            return Err(fields.invalid("text", "must be a single line"));
        }
        let matching = Pattern::field(fields, "match")?;
        if text.is_none() && matching.is_none() {
            return Err(fields.invalid("text", "text or match is required"));
        }
        Ok(Self {
            file: Edited { path, create: fields.boolean("create", false), sensitive: fields.sensitive },
            ensure: fields.ensure,
            text,
            matching,
            below: Pattern::field(fields, "below")?,
        })
    }

    pub fn file(&self) -> &Edited {
        &self.file
    }

    pub fn probes(&self) -> Vec<Probe> {
        vec![self.file.probe()]
    }

    pub fn diff(&self, observed: &Observed, context: &Context<'_>) -> Result<Verdict, Refusal> {
        let present = self.file.text(observed, context)?;
        let path = &self.file.path;
        let (Some(line), Ensure::Present) = (&self.text, self.ensure) else {
            let Some(present) = present else {
                return Ok(Change::default().into_verdict(format!("{path} is absent")));
            };
            let mut lines = Lines::of(present.text);
            lines.remove(|body| self.is_ours(body));
            let change = self.file.change(Some(present), lines.into_text(), context);
            return Ok(change.into_verdict(format!("{path} does not have this line")));
        };
        if present.is_none() && !self.file.create {
            if context.pending.may_add_files() {
                let reason = format!(
                    "{path} does not exist yet; it is compared again after the resources that may create it"
                );
                return Ok(Verdict::NoChange { reason });
            }
            return Err(Refusal::NoFile { path: path.clone() });
        }
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        let present_already = lines.bodies().any(|body| self.is_ours(body));
        match &self.below {
            // A line that is present twice stays so, unless `match` is set.
            _ if present_already && self.matching.is_none() => {}
            Some(below) if !present_already => {
                let at = lines.last(|body| below.matches(body)).ok_or_else(|| Refusal::NoSuchLine {
                    path: path.clone(),
                    pattern: below.as_str().to_owned(),
                })?;
                lines.insert(at + 1, line);
            }
            _ => lines.set(|body| self.is_ours(body), line),
        }
        let change = self.file.change(present, lines.into_text(), context);
        Ok(change.into_verdict(format!("{path} has this line")))
    }

    fn is_ours(&self, body: &str) -> bool {
        self.text.as_deref() == Some(body)
            || self.matching.as_ref().is_some_and(|pattern| pattern.matches(body))
    }
}
