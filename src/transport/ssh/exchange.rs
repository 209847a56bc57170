//! One program on one channel: sent without waiting for anything, and read at the same time.

use std::sync::Arc;

use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelWriteHalf, Error, Sig};

use crate::transport::Replies;
use crate::transport::capture::{Capture, Source};
use crate::transport::shell::Frame;

/// How much of a payload is copied at a time, bytes.
const PIECE: usize = 256 << 10;

/// The extended data type of standard error (RFC 4254 section 5.2).
const STDERR: u32 = 1;

/// How an exchange ended.
pub(super) enum End {
    /// The program did, with this status (128 + n for signal n), and all of its output was seen.
    Exited(i32),
    /// The link broke, or the host closed the channel without a status.
    Lost,
    /// The host runs no commands for this user.
    Refused,
    /// The program printed more than is kept.
    TooMuch,
}

/// Runs one framed program to its end.
pub(super) async fn run(
    channel: Channel<Msg>,
    frame: &Frame,
    (payload, replies): (&[u8], Replies),
    capture: &mut Capture<'_>,
) -> End {
    let (mut incoming, outgoing) = channel.split();
    let mut outgoing = CloseOnDrop { channel: Arc::new(outgoing), open: true };
    let channel = Arc::clone(&outgoing.channel);
    let sending = send(&channel, frame, payload, replies);
    tokio::pin!(sending);
    let (mut unsent, mut status, mut whole) = (true, None, false);
    loop {
        let message = tokio::select! {
            // When sending fails the program has ended or the link broke: which of them, the channel tells.
            _ = &mut sending, if unsent => {
                unsent = false;
                continue;
            }
            message = incoming.wait() => message,
        };
        let pushed = match message {
            None => return status.filter(|_| whole).map_or(End::Lost, End::Exited),
            Some(ChannelMsg::Close) => {
                outgoing.open = false;
                return status.map_or(End::Lost, End::Exited);
            }
            Some(ChannelMsg::Failure) => return End::Refused,
            Some(ChannelMsg::Data { data }) => capture.push(Source::Stdout, &data),
            Some(ChannelMsg::ExtendedData { data, ext: STDERR }) => capture.push(Source::Stderr, &data),
            Some(ChannelMsg::ExitStatus { exit_status }) => {
                status = i32::try_from(exit_status).ok();
                Ok(())
            }
            Some(ChannelMsg::ExitSignal { signal_name, .. }) => {
                status = Some(128 + number(&signal_name));
                Ok(())
            }
            Some(ChannelMsg::Eof) => {
                whole = true;
                Ok(())
            }
            Some(_) => Ok(()),
        };
        if pushed.is_err() {
            return End::TooMuch;
        }
    }
}

async fn send(
    outgoing: &ChannelWriteHalf<Msg>,
    frame: &Frame,
    payload: &[u8],
    mut replies: Replies,
) -> Result<(), Error> {
    outgoing.exec(true, frame.command.as_str()).await?;
    outgoing.data_bytes(frame.script.clone()).await?;
    for piece in payload.chunks(PIECE) {
        outgoing.data_bytes(piece.to_vec()).await?;
    }
    while let Some(reply) = replies.recv().await {
        outgoing.data_bytes(reply).await?;
    }
    outgoing.eof().await
}

/// Signals by their names in RFC 4254 section 6.10, on Linux; 0 for one that is not known.
fn number(signal: &Sig) -> i32 {
    match signal {
        Sig::HUP => 1,
        Sig::INT => 2,
        Sig::QUIT => 3,
        Sig::ILL => 4,
        Sig::ABRT => 6,
        Sig::FPE => 8,
        Sig::KILL => 9,
        Sig::USR1 => 10,
        Sig::SEGV => 11,
        Sig::PIPE => 13,
        Sig::ALRM => 14,
        Sig::TERM => 15,
        Sig::Custom(_) => 0,
    }
}

/// Closes the channel when a run is given up, so that the connection stays usable and the host's program
/// sees the end of its input.
struct CloseOnDrop {
    channel: Arc<ChannelWriteHalf<Msg>>,
    open: bool,
}

impl Drop for CloseOnDrop {
    fn drop(&mut self) {
        // Without a runtime there is no connection left either.
        if let (true, Ok(runtime)) = (self.open, tokio::runtime::Handle::try_current()) {
            let channel = Arc::clone(&self.channel);
            runtime.spawn(async move { channel.close().await });
        }
    }
}
