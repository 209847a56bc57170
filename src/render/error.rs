//! Why a template or an expression cannot be rendered.

use std::error::Error as _;

use minijinja::ErrorKind;

/// One fault. Of a template it has file and line; strings and expressions are parts of a state file, whose location the
/// caller adds.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RenderError {
    /// A template has a syntax error, or reads an undefined value.
    #[error("templates/{template}:{line}{}: {reason}", column_after(*.column))]
    Template {
        /// Path below `templates/` of the template with the fault, which may be an included one.
        template: String,
        /// Counted from 1.
        line: usize,
        /// Counted from 1, in characters; `None` where minijinja reports the line alone.
        column: Option<usize>,
        /// The message of minijinja.
        reason: String,
    },
    /// The template does not exist.
    #[error("no template templates/{template}")]
    NoTemplate {
        /// Path below `templates/`.
        template: String,
    },
    /// A string with `{{ }}`, or an expression, cannot be evaluated.
    #[error("{reason}")]
    Expression {
        /// The message of minijinja.
        reason: String,
    },
    /// An expression is undefined.
    #[error("`{expression}` is undefined")]
    Undefined {
        /// As written.
        expression: String,
    },
    /// A condition is neither true nor false.
    #[error("`{expression}` is {found}, not true or false")]
    NotBoolean {
        /// As written.
        expression: String,
        /// The type of its value.
        found: String,
    },
    /// The value of `each` is not a list.
    #[error("`{expression}` is {found}, not a list")]
    NotList {
        /// As written.
        expression: String,
        /// The type of its value.
        found: String,
    },
}

impl RenderError {
    /// A fault in the template `name` or in one that it includes. `source` returns the text of a template.
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
        // minijinja's line is that of the end of the tag.
        let line = before.map(|text| text.matches('\n').count() + 1).or(cause.line()).unwrap_or(1);
        Self::Template { template: template.to_owned(), line, column, reason: reason(cause) }
    }

    /// A fault in a string or an expression.
    pub(super) fn in_expression(error: &minijinja::Error) -> Self {
        Self::Expression { reason: reason(innermost(error)) }
    }
}

fn column_after(column: Option<usize>) -> String {
    column.map(|column| format!(":{column}")).unwrap_or_default()
}

/// minijinja wraps the fault of an included template.
fn innermost(error: &minijinja::Error) -> &minijinja::Error {
    match error.source().and_then(|source| source.downcast_ref()) {
        Some(cause) => innermost(cause),
        None => error,
    }
}

fn reason(error: &minijinja::Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::SyntaxError, Some(detail)) => format!("{}: {detail}", ErrorKind::SyntaxError),
        // The details of other kinds are complete messages.
        (_, Some(detail)) => detail.to_owned(),
        (kind, None) => kind.to_string(),
    }
}
