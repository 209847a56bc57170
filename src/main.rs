//! The command line of metalform; everything is in the library.

fn main() {}
