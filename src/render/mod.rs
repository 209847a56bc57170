//! Templates: minijinja, strict. An undefined value is an error with the template's line.
//!
//! Three things are rendered with the same values and rules: files of `templates/`, strings of state files with `{{ }}`,
//! and the bare expressions of `when:` and `each:`. Nothing is escaped, because the output is not HTML, and the last
//! newline of a template is kept.

mod absent;
mod error;
mod filters;
mod renderer;

pub use absent::Without;
pub mod mention;

pub use error::RenderError;
pub use minijinja::Value;
pub use renderer::{Renderer, values_of, with_value};
