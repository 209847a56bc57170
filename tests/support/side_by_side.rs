//! Plays many things at once, one on each processor.

use std::sync::Mutex;

/// Plays each of `items`, which are taken in their order.
pub fn side_by_side<T>(items: impl Iterator<Item = T> + Send, play: impl Fn(T) + Sync) {
    let items = Mutex::new(items);
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                // The lock is not held while one is played.
                let next = || items.lock().unwrap().next();
                while let Some(item) = next() {
                    play(item);
                }
            });
        }
    });
}
