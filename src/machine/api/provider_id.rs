//! The provider ID of a Node that a Machine became.

use std::fmt;
use std::str::FromStr;

use crate::model::name::HostName;

const SCHEME: &str = "metalform://";

/// `metalform://HOST/UID`: the Host, and the UID of the Machine. cluster-autoscaler compares the last segment alone,
/// which therefore is another one for each Machine that has the same Host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct ProviderId {
    /// Name of the Host.
    pub host: HostName,
    /// UID of the Machine; letters, digits and hyphens.
    pub machine_uid: String,
}

/// A string is not a provider ID of metalform.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a provider ID such as metalform://HOST/UID")]
pub struct ProviderIdError(String);

impl FromStr for ProviderId {
    type Err = ProviderIdError;

    fn from_str(text: &str) -> Result<Self, ProviderIdError> {
        let parse = || {
            let (host, uid) = text.strip_prefix(SCHEME)?.split_once('/')?;
            let allowed = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
            let is_uid = !uid.is_empty() && uid.bytes().all(allowed);
            is_uid.then_some(Self { host: host.parse().ok()?, machine_uid: uid.to_owned() })
        };
        parse().ok_or_else(|| ProviderIdError(text.to_owned()))
    }
}

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{SCHEME}{}/{}", self.host, self.machine_uid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_provider_id_parses_from_its_own_display() {
        let text = "metalform://rack-1.example/89e8b9f0-33a8-11e9-9e48-0a580af40383";
        assert_eq!(text.parse::<ProviderId>().unwrap().to_string(), text);
        for text in [
            "",
            "metalform://",
            "metalform://a",
            "metalform://a/",
            "metalform:///b",
            "metalform://a/b/c",
            "metalform://A/b",
            "kubermatic://a/b",
        ] {
            assert_eq!(text.parse::<ProviderId>(), Err(ProviderIdError(text.to_owned())));
        }
    }
}
