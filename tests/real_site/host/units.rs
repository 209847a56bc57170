//! What systemd knows of the host's units.

use std::collections::BTreeMap;

use metalform::resource::contract::probe::UnitState;
use metalform::resource::contract::step::UnitVerb;

use super::tree::{Entry, Tree};

/// Where unit files are looked for.
const DIRECTORIES: [&str; 3] = ["/etc/systemd/system", "/usr/lib/systemd/system", "/lib/systemd/system"];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unit {
    pub state: UnitState,
    /// What `UnitFileState` is without a mask.
    below_mask: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Units {
    known: BTreeMap<String, Unit>,
    /// Units that fail when they are started, and what systemctl prints then.
    pub broken: BTreeMap<String, String>,
    /// Unit files that systemd-analyze complains of, and how.
    pub bad_files: BTreeMap<String, String>,
}

impl Units {
    /// Puts a unit there as it was seen.
    pub fn put(&mut self, name: &str, state: UnitState) {
        let below_mask = if state.unit_file == "masked" { "static" } else { &state.unit_file }.to_owned();
        self.known.insert(name.to_owned(), Unit { state, below_mask });
    }

    /// systemd reads a unit when it is asked for it, so one that has a file is loaded.
    pub fn state(&self, name: &str, tree: &Tree) -> UnitState {
        let state = |load: &str, unit_file: &str| UnitState {
            load: load.to_owned(),
            active: "inactive".to_owned(),
            sub: "dead".to_owned(),
            unit_file: unit_file.to_owned(),
            needs_daemon_reload: false,
            started: None,
            changed: None,
        };
        match (self.known.get(name), has_file(name, tree)) {
            (Some(unit), true) if unit.state.load == "not-found" => state("loaded", "disabled"),
            (Some(unit), _) => unit.state.clone(),
            (None, true) => state("loaded", "disabled"),
            (None, false) => state("not-found", ""),
        }
    }

    /// A unit file was written or removed: what systemd has read is older.
    pub fn file_changed(&mut self, path: &str) {
        let file = DIRECTORIES
            .iter()
            .find_map(|directory| path.strip_prefix(directory)?.strip_prefix('/'))
            .and_then(|rest| rest.split('/').next());
        let Some(name) = file.map(|file| file.strip_suffix(".d").unwrap_or(file)) else { return };
        if let Some(unit) = self.known.get_mut(name).filter(|unit| unit.state.load == "loaded") {
            unit.state.needs_daemon_reload = true;
        }
    }

    pub fn reload_files(&mut self, tree: &Tree) {
        for (name, unit) in &mut self.known {
            unit.state.needs_daemon_reload = false;
            if unit.state.load == "not-found" && has_file(name, tree) {
                "loaded".clone_into(&mut unit.state.load);
                "disabled".clone_into(&mut unit.state.unit_file);
            }
        }
    }

    pub fn act(&mut self, name: &str, verb: UnitVerb, tree: &Tree, now: u64) -> Result<(), String> {
        let seen = self.state(name, tree);
        let known = self.known.contains_key(name);
        if !known || self.known[name].state.load != seen.load {
            self.put(name, seen.clone());
        }
        let starts = matches!(verb, UnitVerb::Start | UnitVerb::Restart | UnitVerb::ReloadOrRestart);
        match seen.load.as_str() {
            "not-found" if verb != UnitVerb::Mask => return Err(format!("Unit {name} not found.")),
            "masked" if starts || verb == UnitVerb::Enable => return Err(format!("Unit {name} is masked.")),
            _ => {}
        }
        if starts && let Some(output) = self.broken.get(name) {
            let output = output.clone();
            self.set_active(name, "failed", "failed");
            return Err(output);
        }
        let Some(unit) = self.known.get_mut(name) else { return Ok(()) };
        match verb {
            UnitVerb::Enable => "enabled".clone_into(&mut unit.state.unit_file),
            UnitVerb::Disable => "disabled".clone_into(&mut unit.state.unit_file),
            UnitVerb::Stop => self.set_active(name, "inactive", "dead"),
            UnitVerb::Start if seen.active == "active" => {}
            UnitVerb::ReloadOrRestart if seen.active == "active" => unit.state.changed = at(now),
            UnitVerb::Start | UnitVerb::Restart | UnitVerb::ReloadOrRestart => {
                (unit.state.started, unit.state.changed) = (at(now), at(now));
                self.set_active(name, "active", "running");
            }
            UnitVerb::Mask => {
                unit.below_mask.clone_from(&unit.state.unit_file);
                "masked".clone_into(&mut unit.state.load);
                "masked".clone_into(&mut unit.state.unit_file);
            }
            UnitVerb::Unmask if unit.state.load == "masked" => {
                "loaded".clone_into(&mut unit.state.load);
                unit.state.unit_file.clone_from(&unit.below_mask);
            }
            UnitVerb::Unmask => {}
        }
        Ok(())
    }

    /// What systemd does when the machine starts: the enabled units run.
    pub fn boot(&mut self, now: u64) {
        for unit in self.known.values_mut() {
            let starts = unit.state.unit_file == "enabled" && unit.state.load == "loaded";
            let (active, sub) = if starts { ("active", "running") } else { ("inactive", "dead") };
            active.clone_into(&mut unit.state.active);
            sub.clone_into(&mut unit.state.sub);
            (unit.state.started, unit.state.changed) = if starts { (at(now), at(now)) } else { (None, None) };
            unit.state.needs_daemon_reload = false;
        }
    }

    pub fn set_active(&mut self, name: &str, active: &str, sub: &str) {
        if let Some(unit) = self.known.get_mut(name) {
            active.clone_into(&mut unit.state.active);
            sub.clone_into(&mut unit.state.sub);
        }
    }
}

/// Seconds on the host's clock, as systemd shows them.
fn at(now: u64) -> Option<i64> {
    i64::try_from(now).ok()
}

fn has_file(name: &str, tree: &Tree) -> bool {
    let template = name
        .split_once('@')
        .and_then(|(prefix, rest)| rest.rsplit_once('.').map(|(_, suffix)| format!("{prefix}@.{suffix}")));
    DIRECTORIES.iter().any(|directory| {
        let there = |file: &str| {
            let entry = tree.get(&format!("{directory}/{file}"));
            matches!(entry, Some(Entry::File { .. } | Entry::Symlink(_)))
        };
        there(name) || template.as_deref().is_some_and(there)
    })
}
