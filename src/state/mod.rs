//! State files: parsed, checked and compiled to an ordered list of resources, with no host present.
