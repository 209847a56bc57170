//! Readiness notification to systemd (sd_notify(3)): units that are ordered after this one start when it listens.

use std::os::unix::net::UnixDatagram;

/// Sends it, when systemd expects it.
pub fn ready() {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let sent = UnixDatagram::unbound().and_then(|from| from.send_to(b"READY=1", socket));
    if let Err(error) = sent {
        tracing::warn!(%error, "cannot notify systemd of readiness");
    }
}
