//! `line`: one line of a text file that others own too.

use crate::resource::contract::change::{Change, Verdict};
use crate::resource::contract::context::Context;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field::{FieldSort, FieldSpec};
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::fields::pattern::Pattern;
use crate::resource::text::edited::Edited;
use crate::resource::text::lines::Lines;

/// Its fields.
pub const FIELDS: &[FieldSpec] = &[
    FieldSpec { name: "path", sort: FieldSort::Text, required: true, about: "The file; not a link." },
    FieldSpec { name: "text", sort: FieldSort::Text, required: true, about: "The whole line." },
    FieldSpec {
        name: "match",
        sort: FieldSort::Text,
        required: false,
        about: "A regular expression of a whole line: the last line that matches becomes this text, others that \
                match go; with `ensure: absent` all that match go.",
    },
    FieldSpec {
        name: "below",
        sort: FieldSort::Text,
        required: false,
        about: "A regular expression of a whole line: a new line goes below the last that matches; at the end of \
                the file by default.",
    },
    FieldSpec {
        name: "create",
        sort: FieldSort::Boolean,
        required: false,
        about: "Whether a file that is missing is made (0644 root), false by default.",
    },
];

/// A line. Lines are compared whole; white space counts.
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
    pub(in crate::resource) fn parse(given: &Given) -> Result<Self, FieldError> {
        let path = path::field(given, "path")?.map_or_else(|| given.need("path"), Ok)?;
        let text = given.text("text");
        if text.as_deref().is_some_and(|text| text.is_empty() || text.contains(['\n', '\r'])) {
            return Err(given.invalid("text", "it must be one line of text"));
        }
        let matching = Pattern::field(given, "match")?;
        if text.is_none() && matching.is_none() {
            return Err(given.invalid("text", "text or match must say what should be absent"));
        }
        Ok(Self {
            file: Edited { path, create: given.boolean("create", false), sensitive: given.sensitive },
            ensure: given.ensure,
            text,
            matching,
            below: Pattern::field(given, "below")?,
        })
    }

    pub(in crate::resource) fn file(&self) -> &Edited {
        &self.file
    }

    pub(in crate::resource) fn probes(&self) -> Vec<Probe> {
        vec![self.file.probe()]
    }

    pub(in crate::resource) fn diff(
        &self,
        observed: &Observed,
        context: &Context<'_>,
    ) -> Result<Verdict, Refusal> {
        let present = self.file.text(observed, context)?;
        let path = &self.file.path;
        let (Some(line), Ensure::Present) = (&self.text, self.ensure) else {
            let Some(present) = present else { return Ok(Change::default().or(format!("{path} is absent"))) };
            let mut lines = Lines::of(present.text);
            lines.remove(|body| self.is_ours(body));
            let change = self.file.change(Some(present), lines.into_text(), context);
            return Ok(change.or(format!("{path} has no such line")));
        };
        if present.is_none() && !self.file.create {
            if context.pending.may_bring_files() {
                let reason =
                    format!("{path} is not there yet: it is looked at again after what may bring it");
                return Ok(Verdict::NoChange { reason });
            }
            return Err(Refusal::NoFile { path: path.clone() });
        }
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        let there = lines.bodies().any(|body| self.is_ours(body));
        match &self.below {
            // One that is there may stand twice: that is its owner's affair, unless `match` says otherwise.
            _ if there && self.matching.is_none() => {}
            Some(below) if !there => {
                let at = lines.last(|body| below.matches(body)).ok_or_else(|| Refusal::NoSuchLine {
                    path: path.clone(),
                    pattern: below.as_str().to_owned(),
                })?;
                lines.insert(at + 1, line);
            }
            _ => lines.set(|body| self.is_ours(body), line),
        }
        let change = self.file.change(present, lines.into_text(), context);
        Ok(change.or(format!("{path} has this line")))
    }

    fn is_ours(&self, body: &str) -> bool {
        self.text.as_deref() == Some(body)
            || self.matching.as_ref().is_some_and(|pattern| pattern.matches(body))
    }
}
