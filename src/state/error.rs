//! A fault in a state file or a template, and where it is.

use super::field::FieldFault;
use super::hint::Hint;
use super::location::{Location, Position};
use super::reference::ReferenceFault;
use super::syntax::SyntaxFault;
use super::top::TopFault;
use super::yaml::YamlError;
use crate::model::document::{TextError, one_line};
use crate::render::RenderError;

/// One fault. Shown as one line that begins with its place.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {}", one_line(&fault.to_string()))]
pub struct StateError {
    /// Where it is.
    pub at: Location,
    /// What it is. Boxed, because it is much larger than what succeeds.
    pub fault: Box<Fault>,
}

/// What can be wrong, by the step that finds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file is no text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The text is not YAML, or not the part of it that we read.
    #[error(transparent)]
    Yaml(#[from] YamlError),
    /// It is not a state file.
    #[error(transparent)]
    Syntax(#[from] SyntaxFault),
    /// A resource does not have the fields of its kind.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// Resources do not fit together.
    #[error(transparent)]
    Reference(#[from] ReferenceFault),
    /// States and roles do not fit together.
    #[error(transparent)]
    Top(#[from] TopFault),
    /// An expression cannot be evaluated.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A template cannot be rendered; its place is the error's.
    #[error("{reason}")]
    Template {
        /// What is wrong there.
        reason: String,
        /// The resource that it was rendered for; `None` when it was only read.
        wanted_by: Option<Location>,
    },
}

impl StateError {
    /// A fault at a place in a file.
    pub(super) fn new(file: &str, at: Position, fault: impl Into<Fault>) -> Self {
        Self { at: Location::new(file, at), fault: Box::new(fault.into()) }
    }

    /// A fault of a file as a whole.
    pub(super) fn of_file(file: impl Into<String>, fault: impl Into<Fault>) -> Self {
        Self { at: Location::of_file(file), fault: Box::new(fault.into()) }
    }

    /// What went wrong with rendering for the resource at `place`.
    pub(super) fn of_render(place: Location, error: RenderError) -> Self {
        match error {
            RenderError::Template { template, line, column, reason } => Self::in_template(
                &template,
                (line, column),
                Fault::Template { reason, wanted_by: Some(place) },
            ),
            other => Self { at: place, fault: Box::new(other.into()) },
        }
    }

    /// What is wrong with a template by itself.
    pub(super) fn of_template(error: RenderError) -> Self {
        match error {
            RenderError::Template { template, line, column, reason } => {
                Self::in_template(&template, (line, column), Fault::Template { reason, wanted_by: None })
            }
            other => Self::of_file("templates", other),
        }
    }

    fn in_template(template: &str, (line, column): (usize, Option<usize>), fault: Fault) -> Self {
        let at = Location {
            file: format!("templates/{template}"),
            line: Some(line as u64),
            column: column.map(|column| column as u64),
        };
        Self { at, fault: Box::new(fault) }
    }

    /// What to do about it, where that is known and not plain from the message.
    pub fn hint(&self) -> Option<Hint> {
        match &*self.fault {
            Fault::Yaml(YamlError::UnquotedExpression { .. }) => Some(Hint::QuoteExpression),
            Fault::Text(_) | Fault::Yaml(_) | Fault::Render(_) => None,
            Fault::Syntax(fault) => fault.hint(),
            Fault::Field(fault) => fault.hint(),
            Fault::Reference(fault) => fault.hint(),
            Fault::Top(fault) => fault.hint(),
            Fault::Template { wanted_by, .. } => wanted_by.clone().map(|place| Hint::WantedBy { place }),
        }
    }
}
