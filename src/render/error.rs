//! Why something could not be rendered.

use std::error::Error as _;

use minijinja::ErrorKind;

/// One reason. A template says its file and line; text and expressions are short and stand in a state file,
/// so their place is the caller's to say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A template is not written correctly, or needs a value that is not there.
    #[error("templates/{template}:{line}: {reason}")]
    Template {
        /// Its path below `templates/`: the one that the fault is in, which may be an included one.
        template: String,
        /// Counted from 1.
        line: usize,
        /// What is wrong there.
        reason: String,
    },
    /// There is no such template.
    #[error("there is no template templates/{template}")]
    NoTemplate {
        /// The path asked for, below `templates/`.
        template: String,
    },
    /// Text with `{{ }}`, or an expression, cannot be evaluated.
    #[error("{reason}")]
    Expression {
        /// What is wrong with it.
        reason: String,
    },
    /// An expression evaluates to nothing.
    #[error("`{expression}` is undefined")]
    Undefined {
        /// As written.
        expression: String,
    },
    /// A condition evaluates to something other than true or false.
    #[error("`{expression}` is {found}, not true or false")]
    NotBoolean {
        /// As written.
        expression: String,
        /// The sort of value it gave.
        found: String,
    },
    /// Something to repeat over is not a list.
    #[error("`{expression}` is {found}, not a list")]
    NotList {
        /// As written.
        expression: String,
        /// The sort of value it gave.
        found: String,
    },
}

impl RenderError {
    /// A fault in the template `name` or in one that it includes.
    pub(super) fn in_template(name: &str, error: &minijinja::Error) -> Self {
        let cause = innermost(error);
        Self::Template {
            template: cause.name().unwrap_or(name).to_owned(),
            line: cause.line().unwrap_or(1),
            reason: reason(cause),
        }
    }

    /// A fault in text or in an expression.
    pub(super) fn in_expression(error: &minijinja::Error) -> Self {
        Self::Expression { reason: reason(innermost(error)) }
    }
}

/// minijinja wraps the fault of an included template in one that only says that the include failed.
fn innermost(error: &minijinja::Error) -> &minijinja::Error {
    match error.source().and_then(|source| source.downcast_ref()) {
        Some(cause) => innermost(cause),
        None => error,
    }
}

fn reason(error: &minijinja::Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::SyntaxError, Some(detail)) => format!("{}: {detail}", ErrorKind::SyntaxError),
        // The details of other kinds are whole sentences.
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    }
}
