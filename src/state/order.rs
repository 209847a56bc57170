//! The order of execution.

/// Orders resources so that each runs after those it names: `after[n]` are the indices that `n` runs after. Only
/// resources that must run later move; the others keep their order.
///
/// # Errors
/// The indices of a cycle: each runs after the next, the last after the first.
pub(super) fn execution_order(after: &[Vec<usize>]) -> Result<Vec<usize>, Vec<usize>> {
    let mut order: Vec<usize> = Vec::with_capacity(after.len());
    let mut done = vec![false; after.len()];
    // All before this one are done, and are skipped: most resources run after nothing.
    let mut from = 0;
    while order.len() < after.len() {
        while done.get(from) == Some(&true) {
            from += 1;
        }
        let ready = (from..after.len()).find(|&n| !done[n] && after[n].iter().all(|&before| done[before]));
        let Some(next) = ready else { return Err(cycle(after, &done)) };
        done[next] = true;
        order.push(next);
    }
    Ok(order)
}

/// Every remaining resource runs after a remaining one, so following these leads back.
fn cycle(after: &[Vec<usize>], done: &[bool]) -> Vec<usize> {
    let mut path: Vec<usize> = Vec::new();
    let mut current = done.iter().position(|done| !done);
    while let Some(n) = current {
        if let Some(start) = path.iter().position(|&seen| seen == n) {
            return path.split_off(start);
        }
        path.push(n);
        current = after[n].iter().copied().find(|&before| !done[before]);
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_resources_that_must_run_later_move() {
        for (after, expected) in [
            (vec![vec![], vec![], vec![]], Ok(vec![0, 1, 2])),
            (vec![vec![2], vec![], vec![]], Ok(vec![1, 2, 0])),
            (vec![vec![1], vec![2], vec![], vec![]], Ok(vec![2, 1, 0, 3])),
            (vec![vec![], vec![2], vec![3], vec![1]], Err(vec![1, 2, 3])),
            (vec![vec![0]], Err(vec![0])),
            (vec![vec![1], vec![2], vec![1]], Err(vec![1, 2])),
        ] {
            assert_eq!(execution_order(&after), expected, "{after:?}");
        }
    }
}
