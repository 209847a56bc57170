//! Loopback addresses for servers of tests.

use std::net::{IpAddr, Ipv4Addr};

/// 127.x.y.N: in a network of this process's own, so that processes side by side do not meet.
pub fn own(number: u8) -> IpAddr {
    let [_, _, high, low] = std::process::id().to_be_bytes();
    IpAddr::V4(Ipv4Addr::new(127, high | 128, low, number))
}
