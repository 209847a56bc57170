//! Servers of packages and images as rows, for `mirror status`.

use super::table::table;
use crate::service::mirror_status::{ServerState, ServerStatus};

/// One row for each server.
pub fn text(servers: &[ServerStatus]) -> String {
    let rows: Vec<[String; 6]> = servers.iter().map(cells).collect();
    table(&["NODE", "ADDRESS", "STATE", "BUNDLES", "IMAGES", "SYNCED"], &rows)
}

fn cells(server: &ServerStatus) -> [String; 6] {
    let answered = server.state != ServerState::Unreachable;
    let known = |text: String| if answered && !text.is_empty() { text } else { "-".to_owned() };
    [
        server.node.to_string(),
        server.address.map_or_else(|| "-".to_owned(), |address| address.to_string()),
        word(server.state).to_owned(),
        known(server.bundles.join(",")),
        known(server.images.to_string()),
        server.synced.map_or_else(|| "-".to_owned(), |time| time.to_string()),
    ]
}

fn word(state: ServerState) -> &'static str {
    match state {
        ServerState::Origin => "origin",
        ServerState::Whole => "whole",
        ServerState::Behind => "behind",
        ServerState::Unreachable => "unreachable",
        ServerState::Unknown => "unknown",
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn a_server_that_does_not_answer_has_no_numbers() {
        let server = |node: &str, state, images| ServerStatus {
            node: node.parse().unwrap(),
            address: Some("10.20.0.11".parse().unwrap()),
            state,
            bundles: vec!["1.34.4".to_owned(), "1.35.4".to_owned()],
            images,
            synced: (state == ServerState::Whole).then_some(Timestamp::UNIX_EPOCH),
            errors: Vec::new(),
        };
        let mut dead = server("infra-2", ServerState::Unreachable, 0);
        (dead.address, dead.bundles) = (None, Vec::new());
        let servers =
            [server("bootstrap", ServerState::Origin, 12), server("infra-1", ServerState::Whole, 12), dead];
        insta::assert_snapshot!(text(&servers), @r"
        NODE        ADDRESS      STATE         BUNDLES         IMAGES   SYNCED
        bootstrap   10.20.0.11   origin        1.34.4,1.35.4   12       -
        infra-1     10.20.0.11   whole         1.34.4,1.35.4   12       1970-01-01T00:00:00Z
        infra-2     -            unreachable   -               -        -
        ");
    }
}
