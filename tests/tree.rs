//! The states and templates that are compiled in, and those of the benchmark, have no fault that can be seen
//! without a host.

use std::path::Path;

use metalform::state::{Tree, check};

fn faults(tree: &Tree) -> Vec<String> {
    check(tree, &metalform::resource::fields).iter().map(ToString::to_string).collect()
}

#[test]
fn the_shipped_tree_is_sound() {
    assert_eq!(faults(&Tree::embedded().unwrap()), Vec::<String>::new());
}

#[test]
fn the_tree_of_the_benchmark_is_sound() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/engines/metalform");
    assert_eq!(faults(&Tree::directory(&tree).unwrap()), Vec::<String>::new());
}
