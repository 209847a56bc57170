//! `metalform facts`.

use std::collections::BTreeMap;
use std::process::ExitCode;

use clap::Args;

use super::conduct::Conduct;
use super::failure::Failure;
use super::host_trouble;
use super::hosts::HostArguments;
use super::output::{Format, document, print, table};
use crate::engine;
use crate::model::event::HostOutcome;
use crate::model::facts::Facts;
use crate::model::roster::Host;

/// Show what hosts are: the facts that states and templates see; without --roster, of this machine
#[derive(Debug, Args)]
pub struct FactsCommand {
    #[command(flatten)]
    hosts: HostArguments,
    /// Output format
    #[arg(long, short, default_value = "table")]
    output: Format,
}

impl FactsCommand {
    /// Runs it.
    ///
    /// # Errors
    /// For each host that cannot be reached or does not say what it is, one line.
    pub async fn run(&self) -> Result<ExitCode, Failure> {
        let selected = self.hosts.select_or_local().await?;
        let conduct = Conduct::looking(self.hosts.limit);
        let facts = async |_: &Host, host: engine::host::HostSession<'_>| Ok(Ok(host.facts().await?));
        let outcomes = selected.each(&conduct, facts, |_| (HostOutcome::Unchanged, 0)).await;
        let seen: BTreeMap<&str, &Facts> =
            outcomes.iter().filter_map(|(name, facts)| Some((name.as_str(), facts.as_ref().ok()?))).collect();
        match self.output {
            Format::Json | Format::Yaml => document(self.output, &seen)?,
            Format::Name => print(&seen.keys().map(|name| format!("{name}\n")).collect::<String>())?,
            Format::Table => {
                let rows: Vec<[String; 6]> = seen.iter().map(|(name, facts)| row(name, facts)).collect();
                print(&table(&HEAD[..6], &rows))?;
            }
            Format::Wide => {
                let rows: Vec<[String; 9]> = seen.iter().map(|(name, facts)| wide(name, facts)).collect();
                print(&table(&HEAD, &rows))?;
            }
        }
        let troubles = outcomes.iter().filter_map(|(name, facts)| Some((name, facts.as_ref().err()?)));
        host_trouble::failure(troubles).map_or(Ok(ExitCode::SUCCESS), Err)
    }
}

const HEAD: [&str; 9] =
    ["NAME", "OS", "ARCH", "CPUS", "MEMORY", "ADDRESSES", "KERNEL", "FREE BELOW /VAR", "MACHINE-ID"];

fn row(name: &str, facts: &Facts) -> [String; 6] {
    let addresses = facts.addresses.values().flatten().filter(|cidr| !is_link_local(cidr.address));
    [
        name.to_owned(),
        format!("{} {}", facts.os.id, facts.os.version).trim_end().to_owned(),
        facts.arch.clone(),
        facts.cpus.to_string(),
        gibibytes(facts.memory),
        addresses.map(|cidr| cidr.address.to_string()).collect::<Vec<_>>().join(","),
    ]
}

fn wide(name: &str, facts: &Facts) -> [String; 9] {
    let [name, os, arch, cpus, memory, addresses] = row(name, facts);
    [
        name,
        os,
        arch,
        cpus,
        memory,
        addresses,
        facts.kernel.clone(),
        gibibytes(facts.disk_free),
        facts.machine_id.clone(),
    ]
}

/// Every interface has one; they tell nothing of where the host is.
fn is_link_local(address: std::net::IpAddr) -> bool {
    matches!(address, std::net::IpAddr::V6(v6) if v6.is_unicast_link_local())
}

fn gibibytes(bytes: u64) -> String {
    let tenths = bytes / ((1 << 30) / 10);
    format!("{}.{} GiB", tenths / 10, tenths % 10)
}
