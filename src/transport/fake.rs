//! A transport for tests of the layers above: it answers what it is told to and remembers what it was asked.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use super::error::TransportError;
use super::{Output, Program, Progress, Replies, Transport};

type Answer = Box<dyn FnMut(&Program) -> Result<Output, TransportError> + Send>;

/// Test support. Not behind `cfg(test)`, because integration tests use it too.
pub struct FakeTransport {
    answer: Mutex<Answer>,
    programs: Mutex<Vec<Program>>,
}

impl FakeTransport {
    /// Answers every program by this function.
    pub fn new(answer: impl FnMut(&Program) -> Result<Output, TransportError> + Send + 'static) -> Self {
        Self { answer: Mutex::new(Box::new(answer)), programs: Mutex::default() }
    }

    /// What was run so far, in order.
    pub fn programs(&self) -> Vec<Program> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[async_trait]
impl Transport for FakeTransport {
    /// What the program would be answered goes nowhere.
    async fn converse(
        &self,
        program: &Program,
        _replies: Replies,
        progress: &mut Progress<'_>,
    ) -> Result<Output, TransportError> {
        self.programs.lock().unwrap_or_else(PoisonError::into_inner).push(program.clone());
        let output = (self.answer.lock().unwrap_or_else(PoisonError::into_inner))(program)?;
        for line in String::from_utf8_lossy(&output.stdout).lines() {
            progress(line);
        }
        Ok(output)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn it_answers_by_the_closure_and_remembers_the_programs() {
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
