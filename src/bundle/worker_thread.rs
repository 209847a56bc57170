//! Long computations beside downloads.

use std::panic::resume_unwind;

/// Runs `work` on a thread of its own, so that the calling task goes on with other futures. It runs to its end even if
/// this future is dropped.
pub(super) async fn on_worker_thread<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime is ending, and drops this future.
            Err(_) => std::future::pending().await,
        },
    }
}
