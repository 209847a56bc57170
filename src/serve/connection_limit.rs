//! How many connections may be open: of one peer, and of all peers together.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Counts open connections. Clones share the count.
#[derive(Debug, Clone)]
pub(super) struct ConnectionLimit {
    per_peer: usize,
    in_all: usize,
    open: Arc<Mutex<BTreeMap<IpAddr, usize>>>,
}

/// The permission for one connection, given back when it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    peer: IpAddr,
    limit: ConnectionLimit,
}

impl ConnectionLimit {
    pub(super) fn new(per_peer: usize, in_all: usize) -> Self {
        Self { per_peer, in_all, open: Arc::default() }
    }

    /// `None` when this peer, or all together, have as many connections as they may have.
    pub(super) fn take(&self, address: IpAddr) -> Option<Slot> {
        let peer = peer(address);
        let mut open = self.open();
        let of_peer = open.get(&peer).copied().unwrap_or_default();
        if of_peer >= self.per_peer || open.values().sum::<usize>() >= self.in_all {
            return None;
        }
        open.insert(peer, of_peer + 1);
        Some(Slot { peer, limit: self.clone() })
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<IpAddr, usize>> {
        // A panic while the lock was held cannot have left it half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let mut open = self.limit.open();
        match open.get_mut(&self.peer) {
            Some(count) if *count > 1 => *count -= 1,
            _ => drop(open.remove(&self.peer)),
        }
    }
}

/// Whose connections are counted together: an IPv4 address, or an IPv6 network of 64 bits, in which a host chooses
/// its addresses freely.
fn peer(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX)).into(),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_and_all_together_have_their_limits() {
        let limit = ConnectionLimit::new(2, 3);
        let take = |address: &str| limit.take(address.parse().unwrap());
        let first = take("192.0.2.1").unwrap();
        let _second = take("::ffff:192.0.2.1").unwrap();
        assert!(take("192.0.2.1").is_none());
        let other = take("192.0.2.2").unwrap();
        assert!(take("192.0.2.3").is_none());
        drop(other);
        let _third = take("192.0.2.3").unwrap();
        drop(first);
        let _fourth = take("192.0.2.1").unwrap();
        assert!(take("192.0.2.2").is_none());
    }

    #[test]
    fn what_is_given_back_leaves_nothing_behind() {
        let limit = ConnectionLimit::new(2, 3);
        let slots =
            ["2001:db8::1", "2001:db8::2"].map(|address| limit.take(address.parse().unwrap()).unwrap());
        assert!(limit.take("2001:db8::3".parse().unwrap()).is_none());
        drop(slots);
        assert!(limit.open().is_empty());
    }
}
