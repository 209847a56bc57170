//! Programs on the machine that metalform runs on: the bootstrap node does not connect to itself.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use async_trait::async_trait;
use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, Command};

use super::capture::{Capture, OUTPUT_LIMIT, OutputStream};
use super::error::TransportError;
use super::shell::{Elevation, Frame};
use super::{Input, LineSink, Output, Program, Replies, Transport};

/// Runs programs as the user that runs metalform: root on a bootstrap node.
#[derive(Debug, Clone, Copy, Default)]
pub struct LocalTransport;

#[async_trait]
impl Transport for LocalTransport {
    async fn converse(
        &self,
        program: &Program,
        replies: Replies,
        lines: &mut LineSink<'_>,
    ) -> Result<Output, TransportError> {
        let frame = Frame::new(&program.script, Elevation::None);
        let mut capture = Capture::new(&frame, lines);
        let mut child = Command::new("sh")
            .args(["-c", &frame.command])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            // Signals from the terminal (Ctrl-C) are for metalform, which decides when the program stops.
            .process_group(0)
            .spawn()
            .map_err(no_shell)?;
        let mut running = EndOnDrop(child.id().and_then(|id| Pid::from_raw(i32::try_from(id).ok()?)));
        exchange(&mut child, &frame, Input { payload: &program.payload, replies }, &mut capture).await?;
        let status = child.wait().await.map_err(no_shell)?;
        running.0 = None;
        let status = status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(128);
        capture.finish(status, "local", "root")
    }
}

/// Ends a program, with all processes of its group, when its run is dropped.
struct EndOnDrop(Option<Pid>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        if let Some(group) = self.0 {
            // The group may have ended already.
            let _ended = kill_process_group(group, Signal::TERM);
        }
    }
}

/// Writes to the child and reads both its streams until they end.
async fn exchange(
    child: &mut Child,
    frame: &Frame,
    mut input: Input<'_>,
    capture: &mut Capture<'_>,
) -> Result<(), TransportError> {
    let (Some(mut stdin), Some(mut stdout), Some(mut stderr)) =
        (child.stdin.take(), child.stdout.take(), child.stderr.take())
    else {
        return Ok(());
    };
    let feed = async move {
        stdin.write_all(&frame.script).await?;
        stdin.write_all(input.payload).await?;
        while let Some(reply) = input.replies.recv().await {
            stdin.write_all(&reply).await?;
        }
        Ok::<(), std::io::Error>(())
    };
    tokio::pin!(feed);
    let (mut feeding, mut reading_out, mut reading_err) = (true, true, true);
    let (mut out, mut err) = (vec![0; 64 << 10], vec![0; 64 << 10]);
    while reading_out || reading_err {
        let (source, length) = tokio::select! {
            // A program may leave its input unread: a broken pipe is no error.
            _ = &mut feed, if feeding => {
                feeding = false;
                continue;
            }
            length = stdout.read(&mut out), if reading_out => (OutputStream::Stdout, length.map_err(no_shell)?),
            length = stderr.read(&mut err), if reading_err => (OutputStream::Stderr, length.map_err(no_shell)?),
        };
        let (buffer, open) = match source {
            OutputStream::Stdout => (&out, &mut reading_out),
            OutputStream::Stderr => (&err, &mut reading_err),
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
    async fn status_output_and_payload_are_complete() {
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
    async fn a_program_is_replied_to_while_it_runs() {
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
    async fn a_dropped_run_ends_with_all_that_it_started() {
        let (up, seen) = tokio::sync::oneshot::channel();
        let program = Program { script: "sleep 60 & echo $!; wait".to_owned(), payload: Vec::new() };
        let mut up = Some(up);
        let mut sink = |line: &str| {
            up.take().map(|up| up.send(line.to_owned()));
        };
        let id = tokio::select! {
            output = LocalTransport.run(&program, &mut sink) => panic!("{output:?}"),
            id = seen => id.unwrap(),
        };
        // A process that has ended is gone, or a zombie.
        let runs =
            || std::fs::read_to_string(format!("/proc/{id}/stat")).is_ok_and(|stat| !stat.contains(") Z "));
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(10);
        while runs() {
            assert!(tokio::time::Instant::now() < deadline, "process {id} still runs");
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn the_sink_receives_whole_lines() {
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
