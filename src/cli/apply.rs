//! `metalform apply`.

use std::collections::BTreeSet;
use std::convert::Infallible;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::{Mutex, PoisonError};

use clap::Args;

use super::apply_plan::{self, CheckedPlan};
use super::conduct::{Conduct, FleetArguments};
use super::failure::Failure;
use super::host_trouble::{self, Outcomes};
use super::interrupt::Manner;
use super::output::{Format, HostsDocument, document, print};
use super::recap::{self, Records, Row};
use super::states::{Making, SeenHost, StateArguments, StateWork};
use super::{Global, plan, setting};
use crate::engine::Desired;
use crate::engine::cancel::{Cancel, CancelLevel};
use crate::engine::host::{Convergence, HostError};
use crate::engine::roster::RosterFault;
use crate::engine::saved_plan::SavedHost;
use crate::engine::saved_plan::planned::Planned;
use crate::model::event::{Event, HostOutcome};
use crate::model::name::HostName;
use crate::report::plain::Detail;
use crate::resource::contract::step::CertificateRequest;
use crate::state::Compiled;
use crate::transport::error::TransportError;

/// Make hosts what states say, without a cluster
///
/// Applied again, it changes nothing that is right. A host that cannot be reached is set aside and listed: exit
/// code 3 when nothing else went wrong, 4 when a host failed. Interrupted (Ctrl-C) once, each host finishes the
/// resource at hand and what was not done is listed; twice, all stops at once: exit code 130.
#[derive(Debug, Args)]
pub struct Apply {
    #[command(flatten)]
    states: StateArguments,
    #[command(flatten)]
    fleet: FleetArguments,
    /// Apply the plan that `plan --out FILE` kept, on its hosts, and nothing else; when a host, a state or a
    /// value has changed since, nothing is done on any host: exit code 7
    #[arg(long, value_name = "FILE", conflicts_with_all = ["states", "roster", "on", "local", "dry_run"])]
    plan: Option<PathBuf>,
    /// Only show what would change, as `plan` does
    #[arg(long)]
    dry_run: bool,
    /// With --dry-run: exit with code 2 when there are changes
    #[arg(long, requires = "dry_run")]
    detailed_exitcode: bool,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl Apply {
    /// What an interrupt means: a host is not left in the middle of a resource.
    pub fn manner(&self) -> Manner {
        if self.dry_run { Manner::AtOnce } else { Manner::Gradual }
    }

    /// Runs it.
    ///
    /// # Errors
    /// For each host that is not what its states say, one line.
    pub async fn run(&self, global: &Global, stop: &Cancel) -> Result<ExitCode, Failure> {
        if let Some(path) = &self.plan {
            return self.run_plan(path, global, stop).await;
        }
        let work = self.states.read(global).await?;
        if self.dry_run {
            return plan::plan(&work, self.output, self.detailed_exitcode, None).await;
        }
        let doing = async |conduct: &Conduct<'_>| {
            let make = |_: &HostName, compiled| work.desired(compiled);
            apply(&work, conduct, Making { with_facts: false, make }).await
        };
        let hosts = work.hosts().into_iter().collect();
        self.told(hosts, (global, stop), doing).await
    }

    /// Applies a saved plan, where nothing has moved.
    async fn run_plan(&self, path: &Path, global: &Global, stop: &Cancel) -> Result<ExitCode, Failure> {
        let checked = apply_plan::checked(path, global, self.states.limit(), stop).await?;
        let CheckedPlan { work, file, key, same, unreachable } = checked;
        let nothing = SavedHost { machine: key.digest(""), resources: Vec::new() };
        let doing = async |conduct: &Conduct<'_>| {
            let make = |host: &HostName, compiled| {
                let saved = file.hosts.get(host).unwrap_or(&nothing);
                Ok(Planned { states: work.desired(compiled)?, saved, key: &key })
            };
            let mut outcomes = apply(&work, conduct, Making { with_facts: true, make }).await;
            outcomes.extend(unreachable);
            outcomes.sort_by(|(one, _), (other, _)| one.cmp(other));
            outcomes
        };
        self.told(same, (global, stop), doing).await
    }

    /// Does it on these hosts, tells of it, and shows what became of them.
    async fn told(
        &self,
        hosts: BTreeSet<HostName>,
        (global, stop): (&Global, &Cancel),
        doing: impl AsyncFnOnce(&Conduct<'_>) -> Outcomes<Convergence>,
    ) -> Result<ExitCode, Failure> {
        let reporter = setting::reporter(global, Detail::Resources);
        let records = Mutex::new(Records::default());
        let events = |event: Event| {
            let mut records = records.lock().unwrap_or_else(PoisonError::into_inner);
            let event = records.counted(event);
            records.take_in(&event);
            reporter.event(&event);
        };
        events(Event::RunBegun { hosts: hosts.len() });
        let conduct = Conduct { only: Some(hosts), ..self.fleet.conduct(self.states.limit(), stop, &events) };
        let outcomes = tokio::select! {
            outcomes = doing(&conduct) => outcomes,
            never = tell_of_stop(&conduct) => match never {},
        };
        // The lines at the bottom of a terminal go before the result comes.
        drop(reporter);
        let records = records.into_inner().unwrap_or_else(PoisonError::into_inner);
        let rows: Vec<Row> =
            outcomes.iter().map(|(host, outcome)| recap::row(host, outcome, &records.of(host))).collect();
        show(&rows, self.output)?;
        let troubles = outcomes.iter().filter_map(|(host, outcome)| Some((host, outcome.as_ref().err()?)));
        host_trouble::failure(troubles).map_or(Ok(ExitCode::SUCCESS), Err)
    }
}

async fn tell_of_stop(conduct: &Conduct<'_>) -> Infallible {
    conduct.share.cancel.reached(CancelLevel::AfterResource).await;
    (conduct.events)(Event::StopAsked);
    std::future::pending().await
}

async fn apply<D: Desired + Send>(
    work: &StateWork,
    conduct: &Conduct<'_>,
    making: Making<impl Fn(&HostName, Vec<Compiled>) -> Result<D, Vec<RosterFault>> + Sync>,
) -> Outcomes<Convergence> {
    // States with certificates were refused when they were compiled.
    let nobody = |_: &CertificateRequest, _: &str| Err("there is no authority outside a cluster".to_owned());
    let on_one =
        async |seen: SeenHost<'_, D>| match seen.host.converge(seen.looked, &nobody, conduct.events).await {
            // It was reached before: it is not one to be set aside.
            Err(HostError::Transport(TransportError::Unreachable { host, reason })) => {
                Err(TransportError::Lost { host, reason }.into())
            }
            result => result,
        };
    let judge = |done: &Convergence| match done.changed.len() {
        0 => (HostOutcome::Unchanged, 0),
        changed => (HostOutcome::Changed, changed),
    };
    work.each(conduct, making, on_one, judge).await
}

fn show(rows: &[Row], format: Format) -> Result<(), Failure> {
    match format {
        Format::Json | Format::Yaml => document(format, &HostsDocument::new("Apply", rows)),
        Format::Name => print(&rows.iter().map(|row| format!("{}\n", row.host)).collect::<String>()),
        Format::Table | Format::Wide => print(&recap::text(rows)),
    }
}
