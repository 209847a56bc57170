//! The file of a kernel parameter.

/// The file of a dotted key, by the rule of sysctl(8): `.` and `/` change places, so that
/// `net.ipv4.conf.eth0/100.forwarding` is the parameter of interface `eth0.100`.
pub(super) fn sysctl_path(key: &str) -> String {
    let swapped = key.chars().map(|c| match c {
        '.' => '/',
        '/' => '.',
        other => other,
    });
    format!("/proc/sys/{}", swapped.collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dots_and_slashes_change_places() {
        assert_eq!(sysctl_path("net.ipv4.ip_forward"), "/proc/sys/net/ipv4/ip_forward");
        assert_eq!(sysctl_path("net.ipv4.conf.eth0/1.rp_filter"), "/proc/sys/net/ipv4/conf/eth0.1/rp_filter");
    }
}
