//! One program on one channel: sent without waiting for anything, and read at the same time. Only where sudo asks
//! for a password nothing is sent before sudo has let us through: what it reads as a second password would
//! be the script.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelWriteHalf, Error, Sig};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use zeroize::Zeroizing;

use crate::transport::Replies;
use crate::transport::capture::{Capture, Source, SudoStage};
use crate::transport::shell::{Elevation, Frame};
use crate::transport::sudo::{Attempt, SudoPassword};

/// How much of a payload is copied at a time, bytes.
const PIECE: usize = 256 << 10;

/// The extended data type of standard error (RFC 4254 section 5.2).
const STDERR: u32 = 1;

/// How long sudo has until it asks, and after the answer until it lets us through or not. A directory service may
/// be asked meanwhile.
const SUDO: Duration = Duration::from_secs(60);

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
    /// sudo does not let us through, for this reason.
    Sudo(String),
}

/// For whom the password is given.
pub(super) struct Asked<'a> {
    pub(super) password: &'a SudoPassword,
    pub(super) user: &'a str,
    pub(super) host: &'a str,
}

/// Runs one framed program to its end. `asked` answers sudo where the frame has it ask.
pub(super) async fn run(
    channel: Channel<Msg>,
    frame: &Frame,
    (payload, replies): (&[u8], Replies),
    capture: &mut Capture<'_>,
    asked: Option<Asked<'_>>,
) -> End {
    let (mut incoming, outgoing) = channel.split();
    let mut outgoing = CloseOnDrop { channel: Arc::new(outgoing), open: true };
    let channel = Arc::clone(&outgoing.channel);
    let through = Notify::new();
    if frame.elevation != Elevation::SudoWithPassword {
        through.notify_one();
    }
    let sending = send(&channel, frame, (payload, replies), &through);
    tokio::pin!(sending);
    let (mut unsent, mut status, mut whole) = (true, None, false);
    let mut answering = Answering { asked, attempt: None, deadline: Instant::now() + SUDO };
    loop {
        let waits = capture.sudo_stage() != SudoStage::Through;
        let message = tokio::select! {
            // When sending fails the program has ended or the link broke: which of them, the channel tells.
            _ = &mut sending, if unsent => {
                unsent = false;
                continue;
            }
            () = sleep_until(answering.deadline), if waits && answering.asked.is_some() => {
                return End::Sudo(format!("it neither asked for a password nor let us through within {SUDO:?}"));
            }
            message = incoming.wait() => message,
        };
        let pushed = match message {
            None => return status.filter(|_| whole).map_or(End::Lost, End::Exited),
            Some(ChannelMsg::Close) => {
                outgoing.open = false;
                answering.ended(capture.sudo_stage(), status);
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
        if waits && let Err(reason) = answering.go_on(capture.sudo_stage(), &channel, &through).await {
            return End::Sudo(reason);
        }
    }
}

/// Answers sudo, once.
struct Answering<'a> {
    asked: Option<Asked<'a>>,
    attempt: Option<Attempt<'a>>,
    deadline: Instant,
}

impl Answering<'_> {
    async fn go_on(
        &mut self,
        stage: SudoStage,
        channel: &ChannelWriteHalf<Msg>,
        through: &Notify,
    ) -> Result<(), String> {
        match stage {
            SudoStage::Through => {
                if let Some(attempt) = self.attempt.take() {
                    attempt.taken();
                }
                through.notify_one();
            }
            SudoStage::Asked(1) if self.attempt.is_none() => {
                let Some(asked) = &self.asked else { return Ok(()) };
                let attempt = asked.password.attempt(asked.user).await.map_err(|host| {
                    format!("it asks for a password, and {host} did not take the one that was given")
                })?;
                let line = Zeroizing::new(format!("{}\n", attempt.secret().expose()).into_bytes());
                // When it fails the channel tells why.
                let _ = channel.data_bytes(Bytes::from_owner(line)).await;
                self.attempt = Some(attempt);
                self.deadline = Instant::now() + SUDO;
            }
            SudoStage::Asked(2..) => {
                self.refused();
                return Err("it does not take the password".to_owned());
            }
            SudoStage::Asked(_) => {}
        }
        Ok(())
    }

    /// sudo gave up after the one answer.
    fn ended(&mut self, stage: SudoStage, status: Option<i32>) {
        if stage != SudoStage::Through && status.is_some() {
            self.refused();
        }
    }

    fn refused(&mut self) {
        if let (Some(attempt), Some(asked)) = (self.attempt.take(), &self.asked) {
            attempt.refused(asked.host);
        }
    }
}

async fn send(
    outgoing: &ChannelWriteHalf<Msg>,
    frame: &Frame,
    (payload, mut replies): (&[u8], Replies),
    through: &Notify,
) -> Result<(), Error> {
    outgoing.exec(true, frame.command.as_str()).await?;
    through.notified().await;
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
