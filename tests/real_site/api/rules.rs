//! What a script lets go wrong with requests.

use std::time::Duration;

use tokio::time::Instant;

/// What becomes of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fate {
    /// The connection is refused.
    Refused,
    /// The request is done, and the connection breaks before the answer.
    AnswerLost,
    /// There is never an answer.
    Silent,
    /// It takes this much longer.
    Slow(Duration),
    /// The server answers with this status: 403, 409, 429, 500.
    Status(u16),
}

/// For requests whose title (`patch nodes/n1`) begins so.
#[derive(Debug, Clone)]
pub struct Rule {
    pub title: String,
    pub fate: Fate,
    /// For how many requests more; `None` is for all.
    pub left: Option<usize>,
}

/// All rules; the first that fits decides.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    rules: Vec<Rule>,
    away_until: Option<Instant>,
}

impl Rules {
    pub fn add(&mut self, title: &str, fate: Fate, times: Option<usize>) {
        self.rules.push(Rule { title: title.to_owned(), fate, left: times });
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    /// No API server answers for this long.
    pub fn away_for(&mut self, time: Duration) {
        self.away_until = Some(Instant::now() + time);
    }

    /// What becomes of the request with this title; counts it.
    pub fn fate(&mut self, title: &str) -> Option<Fate> {
        if self.away_until.is_some_and(|until| Instant::now() < until) {
            return Some(Fate::Refused);
        }
        let fits = |rule: &&mut Rule| title.starts_with(&rule.title) && rule.left != Some(0);
        let rule = self.rules.iter_mut().find(fits)?;
        rule.left = rule.left.map(|left| left - 1);
        Some(rule.fate.clone())
    }
}
