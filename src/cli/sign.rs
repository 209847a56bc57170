//! `metalform sign`.

use std::process::ExitCode;

use clap::Args;

use super::clock;
use super::failure::Failure;
use super::invocation::Invocation;
use crate::controller::kubelet_signer;
use crate::engine::cancel::CancelLevel;
use crate::serve::notify;
use crate::service::workspace;
use crate::workspace::layout::Layout;

/// Sign certificates of kubelets with the cluster's CA; the unit metalform-signer.service runs it
#[derive(Debug, Args)]
pub struct SignArgs {}

impl SignArgs {
    /// Runs until it is interrupted: what is not signed then, the next run signs.
    ///
    /// # Errors
    /// When the configuration cannot be read. Later failures are logged and tried again.
    pub async fn run(&self, invocation: &Invocation) -> Result<ExitCode, Failure> {
        let layout = Layout::default();
        let networks = workspace::configuration(&layout)?.networks;
        notify::ready();
        tokio::select! {
            () = kubelet_signer::run(layout, networks, clock::now) => {}
            () = invocation.cancel.reached(CancelLevel::AfterResource) => {}
        }
        Ok(ExitCode::SUCCESS)
    }
}
