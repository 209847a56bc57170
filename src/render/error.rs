//! Why something could not be rendered.

use std::error::Error as _;

use minijinja::ErrorKind;

/// One reason. A template says its file and line; text and expressions are short and stand in a state file,
/// so their place is the caller's to say.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A template is not written correctly, or needs a value that is not there.
    #[error("templates/{template}:{line}{}: {reason}", column_after(*.column))]
    Template {
        /// Its path below `templates/`: the one that the fault is in, which may be an included one.
        template: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters; `None` where minijinja tells the line alone.
        column: Option<usize>,
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
    /// A fault in the template `name` or in one that it includes. `source` gives the text of a template.
    pub(super) fn in_template(
        name: &str,
        error: &minijinja::Error,
        source: impl FnOnce(&str) -> Option<String>,
    ) -> Self {
        let cause = innermost(error);
        let template = cause.name().unwrap_or(name);
        let before = cause.range().and_then(|range| Some(source(template)?.get(..range.start)?.to_owned()));
        let column =
            before.as_deref().map(|text| text.rsplit('\n').next().unwrap_or_default().chars().count() + 1);
        // Where there is a column, the line is its own: minijinja's is that of the tag's end.
        let line = before.map(|text| text.matches('\n').count() + 1).or(cause.line()).unwrap_or(1);
        Self::Template { template: template.to_owned(), line, column, reason: reason(cause) }
    }

    /// A fault in text or in an expression.
    pub(super) fn in_expression(error: &minijinja::Error) -> Self {
        Self::Expression { reason: reason(innermost(error)) }
    }
}

fn column_after(column: Option<usize>) -> String {
    column.map(|column| format!(":{column}")).unwrap_or_default()
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
