//! Faults of state files and templates.

use super::field_fault::FieldFault;
use super::hint::Hint;
use super::location::{Location, Position};
use super::reference_fault::ReferenceFault;
use super::syntax_fault::SyntaxFault;
use super::top_fault::TopFault;
use super::yaml_fault::YamlFault;
use crate::model::document::{TextError, one_line};
use crate::render::RenderError;

/// One fault, displayed as one line that begins with its location.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{at}: {}", one_line(&fault.to_string()))]
pub struct StateError {
    /// The file, and the position where it is known.
    pub at: Location,
    /// Boxed, because it is much larger than the value of a success.
    pub fault: Box<Fault>,
}

/// What is wrong, by the step that finds it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The file is not text.
    #[error(transparent)]
    Text(#[from] TextError),
    /// The text is not YAML, or uses a part of it that is refused.
    #[error(transparent)]
    Yaml(#[from] YamlFault),
    /// It is not a state file.
    #[error(transparent)]
    Syntax(#[from] SyntaxFault),
    /// A resource does not have the fields of its kind, or reads unknown values.
    #[error(transparent)]
    Field(#[from] FieldFault),
    /// A reference between resources cannot be resolved.
    #[error(transparent)]
    Reference(#[from] ReferenceFault),
    /// `states/top.yaml`, or the set of files, is wrong.
    #[error(transparent)]
    Top(#[from] TopFault),
    /// An expression cannot be evaluated.
    #[error(transparent)]
    Render(#[from] RenderError),
    /// A template cannot be rendered; the location is in the template.
    #[error("{reason}")]
    Template {
        /// The message of the template engine.
        reason: String,
        /// The resource that it is rendered for; `None` where it is only parsed.
        rendered_for: Option<Location>,
    },
}

impl StateError {
    /// A fault at a position in a file.
    pub(super) fn new(file: &str, at: Position, fault: impl Into<Fault>) -> Self {
        Self { at: Location::new(file, at), fault: Box::new(fault.into()) }
    }

    /// A fault of a file as a whole.
    pub(super) fn of_file(file: impl Into<String>, fault: impl Into<Fault>) -> Self {
        Self { at: Location::of_file(file), fault: Box::new(fault.into()) }
    }

    /// A fault of rendering for the resource at `place`.
    pub(super) fn of_render(place: Location, error: RenderError) -> Self {
        match error {
            RenderError::Template { template, line, column, reason } => Self::in_template(
                &template,
                (line, column),
                Fault::Template { reason, rendered_for: Some(place) },
            ),
            other => Self { at: place, fault: Box::new(other.into()) },
        }
    }

    /// A fault of a template by itself.
    pub(super) fn of_template(error: RenderError) -> Self {
        match error {
            RenderError::Template { template, line, column, reason } => {
                Self::in_template(&template, (line, column), Fault::Template { reason, rendered_for: None })
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

    /// What to do, where that is known and not clear from the message.
    pub fn hint(&self) -> Option<Hint> {
        match &*self.fault {
            Fault::Yaml(YamlFault::UnquotedExpression { .. }) => Some(Hint::QuoteExpression),
            Fault::Text(_) | Fault::Yaml(_) | Fault::Render(_) => None,
            Fault::Syntax(fault) => fault.hint(),
            Fault::Field(fault) => fault.hint(),
            Fault::Reference(fault) => fault.hint(),
            Fault::Top(fault) => fault.hint(),
            Fault::Template { rendered_for, .. } => {
                rendered_for.clone().map(|place| Hint::RenderedFor { place })
            }
        }
    }
}
