//! A transport for tests of the layers above: programs are answered by a closure and recorded.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::error::TransportError;
use super::{LineSink, Output, Program, Replies, Transport};

type Answer = Box<dyn FnMut(&Program) -> Result<Output, TransportError> + Send>;

/// Test support. Not behind `cfg(test)`, because integration tests use it too.
pub struct FakeTransport {
    answer: Mutex<Answer>,
    programs: Mutex<Vec<Program>>,
}

impl FakeTransport {
    /// Answers every program with this closure.
    pub fn new(answer: impl FnMut(&Program) -> Result<Output, TransportError> + Send + 'static) -> Self {
        Self { answer: Mutex::new(Box::new(answer)), programs: Mutex::default() }
    }

    /// The programs so far, in order.
    pub fn programs(&self) -> Vec<Program> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Transport for FakeTransport {
    /// Ignores the replies.
    async fn converse(
        &self,
        program: &Program,
        _replies: Replies,
        lines: &mut LineSink<'_>,
    ) -> Result<Output, TransportError> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).push(program.clone());
        let output = (self.answer.lock().unwrap_or_else(PoisonError::into_inner))(program)?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            lines(line);
        }
        Ok(output)
    }
}

/// Test support: it is reached, and no program on it ever ends.
#[cfg(test)]
pub struct HangingTransport;

#[cfg(test)]
#[async_trait]
impl Transport for HangingTransport {
    async fn converse(
        &self,
        _: &Program,
        _: Replies,
        _: &mut LineSink<'_>,
    ) -> Result<Output, TransportError> {
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_answers_with_the_closure_and_records_the_programs() {
        let mut runs = 0;
        let fake = FakeTransport::new(move |_| {
            runs += 1;
            Ok(Output { status: runs, stdout: b"one\ntwo\n".to_vec(), stderr: Vec::new() })
        });
        let program = Program { script: "true".into(), payload: Vec::new() };
        let mut lines = Vec::new();
        let first = fake.run(&program, &mut |line| lines.push(line.to_owned())).await.unwrap();
        let second = fake.run(&program, &mut |_| ()).await.unwrap();
        assert_eq!((first.status, second.status), (1, 2));
        assert_eq!(lines, ["one", "two"]);
        assert_eq!(fake.programs(), [program.clone(), program]);
    }
}
