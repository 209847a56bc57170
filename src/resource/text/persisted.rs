//! A setting that outlives a reboot: a file of its own below a directory of drop-ins, or one line of a file
//! there that several settings share.

use crate::resource::contract::change::Change;
use crate::resource::contract::context::Context;
use crate::resource::contract::probe::{Observed, Probe};
use crate::resource::contract::refusal::Refusal;
use crate::resource::fields::given::{FieldError, Given};
use crate::resource::fields::path;
use crate::resource::text::contents::{Contents, removal, removal_probe};
use crate::resource::text::edited::Edited;
use crate::resource::text::lines::Lines;

/// Where the setting stands, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::resource) struct Persisted {
    own: String,
    /// `None` when it should be absent.
    line: Option<String>,
    /// Instead of the file of its own, which then goes.
    shared: Option<Edited>,
}

impl Persisted {
    /// `directory` is where both files lie, without the slash at its end. The field `file` names the shared one.
    pub fn parse(
        given: &Given,
        directory: &'static str,
        own: &str,
        line: Option<String>,
    ) -> Result<Self, FieldError> {
        let own = format!("{directory}/{own}");
        let shared = match path::field(given, "file")? {
            Some(path) if path == own => None,
            Some(path) => {
                let name = path.strip_prefix(directory).and_then(|rest| rest.strip_prefix('/'));
                if !name.is_some_and(|name| name.ends_with(".conf") && !name.contains('/')) {
                    let reason = format!("it must be a file NAME.conf in {directory}");
                    return Err(given.invalid("file", reason));
                }
                Some(Edited { path, create: true, sensitive: given.sensitive })
            }
            None => None,
        };
        Ok(Self { own, line, shared })
    }

    /// The shared file.
    pub fn file(&self) -> Option<&Edited> {
        self.shared.as_ref()
    }

    pub fn probes(&self) -> Vec<Probe> {
        match &self.shared {
            Some(shared) => vec![shared.probe(), removal_probe(&self.own)],
            None => vec![self.contents().map_or_else(|| removal_probe(&self.own), |own| own.probe())],
        }
    }

    /// `ours` tells the lines of a shared file that are about this setting.
    pub fn compare(
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
