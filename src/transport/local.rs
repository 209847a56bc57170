//! Programs on this very machine, which is how the bootstrap node treats itself.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::capture::{Capture, OUTPUT_LIMIT, Source};
use super::error::TransportError;
use super::shell::{Elevation, Frame};
use super::{Output, Program, Progress, Replies, Transport};

/// Runs programs as the user that runs us, who is root on a bootstrap node.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalTransport;

#[async_trait]
impl Transport for LocalTransport {
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        progress: &mut Progress<'_>,
    ) -> Result<Output, TransportError> {
        let frame = Frame::new(&program.script, Elevation::None);
        let mut capture = Capture::new(&frame, progress);
        let mut child = Command::new("sh")
            .args(["-c", &frame.command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // What a terminal sends to its foreground is not meant for it: who runs us decides when it stops.
            .process_group(0)
            .spawn()
            .map_err(no_shell)?;
        let mut running = EndOnDrop(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        exchange(&mut child, &frame, (&program.payload, replies), &mut capture).await?;
        let status = child.wait().await.map_err(no_shell)?;
        running.0 = None;
        let status = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(128);
        capture.finish(status, "local", "root")
    }
}

/// Ends a program, with all that it has started, when its run is given up.
struct EndOnDrop(Option<Pid>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // It may have ended by itself.
            let _ended = kill_process_group(group, Signal::TERM);
        }
    }
}

/// Feeds the child and reads both its streams until they end.
async fn exchange(
    child: &mut Child,
    frame: &Frame,
    (payload, mut replies): (&[u8], Replies),
    capture: &mut Capture<'_>,
) -> Result<(), TransportError> {
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Ok(());
    };
    let feed = async move {
        stdin.write_all(&frame.script).await?;
        stdin.write_all(payload).await?;
        while let Some(reply) = replies.recv().await {
            stdin.write_all(&reply).await?;
        }
        Ok::<(), std::io::Error>(())
    };
    tokio::pin!(feed);
    let (mut feeding, mut reading_out, mut reading_err) = (true, true, true);
    let (mut out, mut err) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    while reading_out || reading_err {
        let (source, length) = tokio::select! {
            // A program need not read its input: a broken pipe says no more than that.
            _ = &mut feed, if feeding => {
                feeding = false;
                continue;
            }
            length = stdout.read(&mut out), if reading_out => (Source::Stdout, length.map_err(no_shell)?),
            length = stderr.read(&mut err), if reading_err => (Source::Stderr, length.map_err(no_shell)?),
        };
        let (buffer, open) = match source {
            Source::Stdout => (&out, &mut reading_out),
            Source::Stderr => (&err, &mut reading_err),
        };
        *open = length > 0;
        capture.push(source, &buffer[..length]).map_err(|_too_much| TransportError::NoShell {
            host: "local".to_owned(),
            reason: format!("more than {} MiB of output", OUTPUT_LIMIT >> 20),
        })?;
    }
    Ok(())
}

fn no_shell(error: std::io::Error) -> TransportError {
    TransportError::NoShell { host: "local".to_owned(), reason: error.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn run(script: &str, payload: &[u8]) -> Output {
        let program = Program { script: script.to_owned(), payload: payload.to_vec() };
        LocalTransport.run(&program, &mut |_| ()).await.unwrap()
    }

    #[tokio::test]
    async fn status_output_and_payload_come_and_go_whole() {
        let payload = vec![b'x'; 1 << 20];
        for (script, status, stdout, stderr) in [
            ("echo out; echo err >&2; exit 7", 7, &b"out\n"[..], &b"err\n"[..]),
            ("cat", 0, &payload, b""),
            ("kill -TERM $$", 143, b"", b""),
            ("exec sh -c 'kill -9 $$'", 137, b"", b""),
        ] {
            let output = run(script, &payload).await;
            let expected = Output { status, stdout: stdout.to_vec(), stderr: stderr.to_vec() };
            assert!(output == expected, "{script}: {}", output.status);
        }
    }

    #[tokio::test]
    async fn a_program_is_answered_while_it_runs() {
        let program =
            Program { script: "read -r a; echo \"$a?\"; cat".to_owned(), payload: b"one\n".to_vec() };
        let (sender, replies) = tokio::sync::mpsc::unbounded_channel();
        let mut sender = Some(sender);
        let mut answer = |line: &str| {
            if let ("one?", Some(sender)) = (line, sender.take()) {
                sender.send(b"two".to_vec()).unwrap();
            }
        };
        let output = LocalTransport.converse(&program, replies, &mut answer).await.unwrap();
        assert_eq!(String::from_utf8_lossy(&output.stdout), "one?\ntwo");
    }

    #[tokio::test]
    async fn a_run_that_is_given_up_ends_with_all_that_it_started() {
        let (up, seen) = tokio::sync::oneshot::channel();
        let program = Program { script: "sleep 60 & echo $!; wait".to_owned(), payload: Vec::new() };
        let mut up = Some(up);
        let mut progress = |line: &str| {
            up.take().map(|up| up.send(line.to_owned()));
        };
        let id = tokio::select! {
            output = LocalTransport.run(&program, &mut progress) => panic!("{output:?}"),
            id = seen => id.unwrap(),
        };
        // What has ended is gone, or waits for its parent to notice.
        let runs =
            || std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
        while runs() {
            assert!(tokio::time::Instant::now() < deadline, "process {id} still runs");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn progress_sees_whole_lines() {
        let program = Program { script: "printf 'a\\nb'; printf 'c\\nd'".to_owned(), payload: Vec::new() };
        let mut lines = Vec::new();
        LocalTransport.run(&program, &mut |line| lines.push(line.to_owned())).await.unwrap();
        assert_eq!(lines, ["a", "bc", "d"]);
    }

    #[tokio::test]
    async fn endless_output_is_cut_off() {
        let program = Program { script: "exec cat /dev/zero".to_owned(), payload: Vec::new() };
        let error = LocalTransport.run(&program, &mut |_| ()).await.unwrap_err();
        assert!(matches!(error, TransportError::NoShell { .. }), "{error}");
    }
}
