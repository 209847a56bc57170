//! Templates: minijinja, strict. An undefined value is an error with the template's line.
//!
//! Three things are rendered with the same values and the same rules: files of `templates/`, strings of
//! state files that hold `{{ }}`, and the bare expressions of `when:` and `each:`. Nothing is escaped (what
//! is written here is read by daemons, not by browsers) and the last newline of a template is kept.

mod absent;
mod error;
mod filters;
mod renderer;

pub use absent::Without;
pub mod mention;

pub use error::RenderError;
pub use minijinja::Value;
pub use renderer::{Renderer, values_of, with_value};
