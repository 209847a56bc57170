//! The states and templates that are compiled in have no fault that can be seen without a host.

use metalform::state::{Tree, check};

#[test]
fn the_shipped_tree_is_sound() {
    let tree = Tree::embedded().unwrap();
    let faults: Vec<String> =
        check(&tree, &metalform::resource::fields).iter().map(ToString::to_string).collect();
    assert_eq!(faults, Vec::<String>::new());
}
