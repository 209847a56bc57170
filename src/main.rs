//! The command line of metalform; everything is in the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    metalform::cli::run()
}
