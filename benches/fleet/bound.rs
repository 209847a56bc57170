//! One bound of a benchmark; the fields are those of `benches/bound.py`.

use std::fmt::Write as _;

use serde::Serialize;

#[derive(Debug, Serialize)]
pub struct Bound {
    pub about: &'static str,
    pub limit: String,
    pub measured: String,
    pub met: bool,
}

/// Markdown.
pub fn table(bounds: &[Bound]) -> String {
    let mut text = "| bound | limit | measured | |\n| --- | --- | --- | --- |\n".to_owned();
    for Bound { about, limit, measured, met } in bounds {
        let met = if *met { "met" } else { "NOT MET" };
        writeln!(text, "| {about} | {limit} | {measured} | {met} |").unwrap();
    }
    text
}
