//! The compiled-in states and templates, and those of the benchmark, have no fault that is found without a host.

use std::path::Path;

use metalform::operation::values;
use metalform::state::{Shapes, Tree, check};

fn faults(tree: &Tree, shapes: &Shapes) -> Vec<String> {
    check(tree, metalform::resource::kinds(), shapes).iter().map(ToString::to_string).collect()
}

#[test]
fn the_shipped_tree_has_no_faults() {
    assert_eq!(faults(&Tree::embedded(), &values::shapes()), Vec::<String>::new());
}

#[test]
fn the_tree_of_the_benchmark_has_no_faults() {
    let tree = Path::new(env!("CARGO_MANIFEST_DIR")).join("benches/engines/metalform");
    assert_eq!(faults(&Tree::directory(&tree).unwrap(), &Shapes::of_any_host()), Vec::<String>::new());
}
