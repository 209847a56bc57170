//! Templates: minijinja, strict. An undefined value is an error with the template's line.
