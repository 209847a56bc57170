//! One program on one channel: sent without waiting for anything, and read at the same time. Only where sudo prompts
//! for a password nothing is sent before sudo has started the shell: it would read the script as a second password.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use russh::client::Msg;
use russh::{Channel, ChannelMsg, ChannelWriteHalf, Error, Sig};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};
use zeroize::Zeroizing;

use crate::transport::Input;
use crate::transport::capture::{Capture, OutputStream, SudoStage};
use crate::transport::shell::{Elevation, Frame};
use crate::transport::sudo::{SudoAttempt, SudoPassword};

/// How much of a payload is copied at a time, bytes.
const PIECE: usize = 256 << 10;

/// The extended data type of standard error (RFC 4254 section 5.2).
const STDERR: u32 = 1;

/// How long sudo may take to prompt, and after the answer to accept or refuse it. It may query a directory service.
const SUDO_DEADLINE: Duration = Duration::from_secs(60);

/// How an exchange ended.
pub(super) enum ExchangeEnd {
    /// The program did, with this status (128 + n for signal n), and all of its output was seen.
    Exited(i32),
    /// The connection broke, or the host closed the channel without a status.
    Lost,
    /// The host runs no commands for this user.
    NoCommands,
    /// The program printed more than is kept.
    OutputLimit,
    /// sudo did not start the shell, for this reason.
    SudoRefused(String),
}

/// The user that sudo prompts for, and its password.
pub(super) struct SudoLogin<'a> {
    pub(super) password: &'a SudoPassword,
    pub(super) user: &'a str,
    pub(super) host: &'a str,
}

/// Runs one framed program to its end. `login` answers sudo where the frame lets it prompt.
pub(super) async fn run(
    channel: Channel<Msg>,
    frame: &Frame,
    input: Input<'_>,
    capture: &mut Capture<'_>,
    login: Option<SudoLogin<'_>>,
) -> ExchangeEnd {
    let (mut incoming, outgoing) = channel.split();
    let mut outgoing = CloseOnDrop { channel: Arc::new(outgoing), open: true };
    let channel = Arc::clone(&outgoing.channel);
    let started = Notify::new();
    if frame.elevation != Elevation::SudoWithPassword {
        started.notify_one();
    }
    let sending = send(&channel, frame, input, &started);
    tokio::pin!(sending);
    let (mut unsent, mut status, mut whole) = (true, None, false);
    let mut dialog = SudoDialog { login, attempt: None, deadline: Instant::now() + SUDO_DEADLINE };
    loop {
        let waits = capture.sudo_stage() != SudoStage::Started;
        let message = tokio::select! {
            // When sending fails the program has ended or the connection broke: the channel reports which.
            _ = &mut sending, if unsent => {
                unsent = false;
                continue;
            }
            () = sleep_until(dialog.deadline), if waits && dialog.login.is_some() => {
                return ExchangeEnd::SudoRefused(format!("sudo neither prompted for a password nor ran the command within {SUDO_DEADLINE:?}"));
            }
            message = incoming.wait() => message,
        };
        let pushed = match message {
            None => return status.filter(|_| whole).map_or(ExchangeEnd::Lost, ExchangeEnd::Exited),
            Some(ChannelMsg::Close) => {
                outgoing.open = false;
                dialog.ended(capture.sudo_stage(), status);
                return status.map_or(ExchangeEnd::Lost, ExchangeEnd::Exited);
            }
            Some(ChannelMsg::Failure) => return ExchangeEnd::NoCommands,
            Some(ChannelMsg::Data { data }) => capture.push(OutputStream::Stdout, &data),
            Some(ChannelMsg::ExtendedData { data, ext: STDERR }) => capture.push(OutputStream::Stderr, &data),
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
            return ExchangeEnd::OutputLimit;
        }
        if waits && let Err(reason) = dialog.proceed(capture.sudo_stage(), &channel, &started).await {
            return ExchangeEnd::SudoRefused(reason);
        }
    }
}

/// Answers sudo's prompt, once.
struct SudoDialog<'a> {
    login: Option<SudoLogin<'a>>,
    attempt: Option<SudoAttempt<'a>>,
    deadline: Instant,
}

impl SudoDialog<'_> {
    async fn proceed(
        &mut self,
        stage: SudoStage,
        channel: &ChannelWriteHalf<Msg>,
        started: &Notify,
    ) -> Result<(), String> {
        match stage {
            SudoStage::Started => {
                if let Some(attempt) = self.attempt.take() {
                    attempt.accepted();
                }
                started.notify_one();
            }
            SudoStage::Prompted(1) if self.attempt.is_none() => {
                let Some(login) = &self.login else { return Ok(()) };
                let attempt = login.password.attempt(login.user).await.map_err(|host| {
                    format!("sudo requires a password, and {host} refused the one that was given")
                })?;
                let line = Zeroizing::new(format!("{}\n", attempt.secret().expose()).into_bytes());
                // When it fails the channel reports why.
                let _ = channel.data_bytes(Bytes::from_owner(line)).await;
                self.attempt = Some(attempt);
                self.deadline = Instant::now() + SUDO_DEADLINE;
            }
            SudoStage::Prompted(2..) => {
                self.refused();
                return Err("sudo refuses the password".to_owned());
            }
            SudoStage::Prompted(_) => {}
        }
        Ok(())
    }

    /// The channel closed: sudo gave up after the one answer.
    fn ended(&mut self, stage: SudoStage, status: Option<i32>) {
        if stage != SudoStage::Started && status.is_some() {
            self.refused();
        }
    }

    fn refused(&mut self) {
        if let (Some(attempt), Some(login)) = (self.attempt.take(), &self.login) {
            attempt.refused(login.host);
        }
    }
}

async fn send(
    outgoing: &ChannelWriteHalf<Msg>,
    frame: &Frame,
    mut input: Input<'_>,
    started: &Notify,
) -> Result<(), Error> {
    outgoing.exec(true, frame.command.as_str()).await?;
    started.notified().await;
    outgoing.data_bytes(frame.script.clone()).await?;
    for piece in input.payload.chunks(PIECE) {
        outgoing.data_bytes(piece.to_vec()).await?;
    }
    while let Some(reply) = input.replies.recv().await {
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

/// Closes the channel when a run is dropped, so that the connection stays usable and the program reads the end of its
/// input.
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
