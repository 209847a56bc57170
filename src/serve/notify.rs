//! Telling systemd that the service is ready (sd_notify(3)), so that what is ordered after it finds it listening.

use std::os::unix::net::UnixDatagram;

/// Tells it, when systemd asked to be told.
pub fn ready() {
    let Some(socket) = std::env::var_os("NOTIFY_SOCKET") else { return };
    let sent = UnixDatagram::unbound().and_then(|from| from.send_to(b"READY=1", socket));
    if let Err(error) = sent {
        tracing::warn!(%error, "systemd cannot be told that the service is ready");
    }
}
