//! A setting that survives a reboot: a file of its own in a directory of drop-ins, or a line of a file there that
//! several settings share.

use crate::resource::contract::change::Change;
use crate::resource::contract::context::Context;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::field_error::FieldError;
use crate::resource::fields::field_values::FieldValues;
use crate::resource::fields::path;
use crate::resource::text::contents::{Contents, removal};
use crate::resource::text::edited::Edited;
use crate::resource::text::lines::Lines;

/// The file and the line of a setting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Persisted {
    own: String,
    /// The path of that file in earlier versions of metalform; it is removed.
    former: Option<String>,
    /// `None` when it should be absent.
    line: Option<String>,
    /// Instead of the file of its own, which is removed.
    shared: Option<Edited>,
}

impl Persisted {
    /// `directory` contains both files, and has no slash at its end. The field `file` is the path of the shared one.
    pub fn parse(
        fields: &FieldValues,
        directory: &'static str,
        own: &str,
        line: Option<String>,
    ) -> Result<Self, FieldError> {
        let own = format!("{directory}/{own}");
        let shared = match path::field(fields, "file")? {
            Some(path) if path == own => None,
            Some(path) => {
                let name = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
                if !name.is_some_and(|name| name.ends_with(".conf") && !name.contains('/')) {
                    let reason = format!("must be a file NAME.conf in {directory}");
                    return Err(fields.invalid("file", reason));
                }
                Some(Edited { path, create: true, sensitive: fields.sensitive })
            }
            None => None,
        };
        Ok(Self { own, former: None, line, shared })
    }

    /// With the path that the file of its own had in earlier versions.
    #[must_use]
    pub fn formerly(self, path: String) -> Self {
        let is_shared = self.file().is_some_and(|shared| shared.path == path);
        Self { former: (!is_shared).then_some(path), ..self }
    }

    pub fn file(&self) -> Option<&Edited> {
        self.shared.as_ref()
    }

    pub fn probes(&self) -> Vec<Probe> {
        let mut probes = match &self.shared {
            Some(shared) => vec![shared.probe(), Probe::path(&self.own)],
            None => vec![self.contents().map_or_else(|| Probe::path(&self.own), |own| own.probe())],
        };
        probes.extend(self.former.as_deref().map(Probe::path));
        probes
    }

    /// `ours` selects the lines of a shared file that set it.
    pub fn compare(
        &self,
        observed: &Observed,
        context: &Context<'_>,
        ours: impl Fn(&str) -> bool,
    ) -> Result<Change, Refusal> {
        let mut change = self.compare_present(observed, context, ours)?;
        if let Some(former) = &self.former {
            change.append(removal(former, observed, context.pending)?);
        }
        Ok(change)
    }

    fn compare_present(
        &self,
        observed: &Observed,
        context: &Context<'_>,
        ours: impl Fn(&str) -> bool,
    ) -> Result<Change, Refusal> {
        let Some(shared) = &self.shared else {
            return match self.contents() {
                Some(own) => own.compare(observed, context.pending),
                None => removal(&self.own, observed, context.pending),
            };
        };
        let present = shared.text(observed, context)?;
        let mut lines = Lines::of(present.map_or("", |present| present.text));
        match &self.line {
            Some(line) => lines.set(ours, line),
            None => lines.remove(ours),
        }
        let mut change = shared.change(present, lines.into_text(), context);
        change.append(removal(&self.own, observed, context.pending)?);
        Ok(change)
    }

    fn contents(&self) -> Option<Contents> {
        let line = self.line.as_ref()?;
        Some(Contents::public(self.own.clone(), format!("{line}\n")))
    }
}
