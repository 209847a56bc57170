//! Links the resources of one host: unique ids, resolved references, the order to run.

use std::collections::{BTreeMap, BTreeSet};

use super::compiled::Compiled;
use super::config_digest;
use super::error::StateError;
use super::expression;
use super::instance::{Instance, Reference};
use super::order::execution_order;
use super::reference::{AFTER, ONLY_IF_CHANGED, RESTART_WHEN_CHANGED};
use super::reference_fault::ReferenceFault;
use crate::model::near::Near;
use crate::resource::contract::ensure::Ensure;
use crate::resource::contract::kind::Kind;
use crate::resource::contract::resource_id::ResourceId;

/// Orders the resources and sets their references. `left_out` are the resources that are not on this host, as written:
/// a reference to one is no fault.
pub(super) fn link(
    instances: Vec<Instance>,
    left_out: &[ResourceId],
) -> Result<Vec<Compiled>, Vec<StateError>> {
    let index = index(&instances)?;
    let mut errors = unknown(&instances, &index, left_out);
    let order = match order(&instances, &index) {
        Ok(order) => order,
        Err(error) => {
            errors.push(error);
            return Err(errors);
        }
    };
    let mut instances: Vec<_> = instances.into_iter().map(Some).collect();
    let mut before = BTreeSet::new();
    let mut without = BTreeSet::new();
    let mut linked: Vec<Compiled> = Vec::new();
    for instance in order.into_iter().filter_map(|n| instances[n].take()) {
        let Instance { mut compiled, references } = instance;
        let watches = references.iter().any(|reference| reference.key == ONLY_IF_CHANGED);
        let reacts = references.iter().find(|reference| reference.key == RESTART_WHEN_CHANGED);
        let reacts = reacts.map(|reference| reference.at.clone());
        for Reference { key, at, id } in references {
            if !index.contains_key(&id) || without.contains(&id) {
                continue;
            }
            if !before.contains(&id) {
                let fault = ReferenceFault::NotBefore { key: key.to_owned(), id };
                errors.push(StateError { at, fault: Box::new(fault.into()) });
                continue;
            }
            match key {
                AFTER => compiled.after.push(id),
                ONLY_IF_CHANGED => compiled.only_if_changed.push(id),
                _ => {
                    let ids = compiled.fields.entry(key).or_insert_with(|| Vec::<String>::new().into());
                    if let Some(ids) = ids.as_array_mut() {
                        ids.push(id.to_string().into());
                    }
                }
            }
        }
        if watches && compiled.only_if_changed.is_empty() {
            without.insert(compiled.id);
            continue;
        }
        if compiled.id.kind == Kind::StaticPod && compiled.ensure == Ensure::Present {
            let named = compiled.ids(RESTART_WHEN_CHANGED);
            // By id: the same in every selection of states.
            let mut named: Vec<&Compiled> = linked.iter().filter(|one| named.contains(&one.id)).collect();
            named.sort_by(|a, b| a.id.cmp(&b.id));
            if !config_digest::fill(&mut compiled, named.into_iter())
                && let Some(at) = reacts
            {
                errors.push(StateError { at, fault: Box::new(ReferenceFault::NoDigest.into()) });
            }
        }
        before.insert(compiled.id.clone());
        linked.push(compiled);
    }
    if errors.is_empty() { Ok(linked) } else { Err(errors) }
}

fn index(instances: &[Instance]) -> Result<BTreeMap<ResourceId, usize>, Vec<StateError>> {
    let mut index: BTreeMap<ResourceId, usize> = BTreeMap::new();
    let mut errors = Vec::new();
    for (n, instance) in instances.iter().enumerate() {
        let Compiled { id, source, .. } = &instance.compiled;
        match index.get(id) {
            Some(&first) => {
                let first = instances[first].compiled.source.clone();
                let fault = ReferenceFault::Duplicate { id: id.clone(), first };
                errors.push(StateError { at: source.clone(), fault: Box::new(fault.into()) });
            }
            None => {
                index.insert(id.clone(), n);
            }
        }
    }
    if errors.is_empty() { Ok(index) } else { Err(errors) }
}

fn unknown(
    instances: &[Instance],
    index: &BTreeMap<ResourceId, usize>,
    left_out: &[ResourceId],
) -> Vec<StateError> {
    let is_left_out = |id: &ResourceId| {
        left_out.iter().any(|out| out.kind == id.kind && expression::could_become(&out.name, &id.name))
    };
    let references = instances.iter().flat_map(|instance| &instance.references);
    let dangling =
        references.filter(|reference| !index.contains_key(&reference.id) && !is_left_out(&reference.id));
    let error = |reference: &Reference| {
        let known: Vec<_> = index.keys().map(ToString::to_string).collect();
        let near = Near::to(&reference.id.to_string(), known.iter().map(String::as_str));
        let fault = ReferenceFault::Unknown { key: reference.key.to_owned(), id: reference.id.clone(), near };
        StateError { at: reference.at.clone(), fault: Box::new(fault.into()) }
    };
    dangling.map(error).collect()
}

fn order(instances: &[Instance], index: &BTreeMap<ResourceId, usize>) -> Result<Vec<usize>, StateError> {
    let waits_for = |instance: &Instance| {
        let named = instance.references.iter().filter(|reference| reference.key == AFTER);
        named.filter_map(|reference| index.get(&reference.id).copied()).collect()
    };
    let after: Vec<Vec<usize>> = instances.iter().map(waits_for).collect();
    execution_order(&after).map_err(|cycle| {
        let fault = ReferenceFault::cycle(cycle.iter().map(|&n| &instances[n].compiled.id));
        StateError { at: instances[cycle[0]].compiled.source.clone(), fault: Box::new(fault.into()) }
    })
}
