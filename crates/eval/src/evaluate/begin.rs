//! Selection of the run that an evaluation works on.
use std::collections::BTreeSet;

use super::{EvaluationSettings, RunChoice};
use crate::EvalError;
use earnest_results::store::{RunLock, RunRecord, Store};
use earnest_results::{Reporter, RunEvent, RunNotice, RunSettings, Shard, Status, folder};

/// A locked run.
pub(super) struct Claimed {
    /// Held until the session ends.
    pub(super) lock: RunLock,
    pub(super) name: String,
    /// None for a new run.
    pub(super) earlier: Option<RunRecord>,
}

/// Locks the run with these settings, or a free name for a new one.
pub(super) fn claim(
    evaluation: &EvaluationSettings,
    settings: &RunSettings,
    model: &str,
    store: &Store,
    reporter: &mut dyn Reporter,
) -> Result<Claimed, EvalError> {
    let sha256 = settings.sha256();
    let shard = evaluation.plan.shard;
    let mut base = settings.run_id(model);
    if let Some(shard) = shard {
        base = format!("{base}-{}of{}", shard.part, shard.of);
    }
    match &evaluation.run {
        RunChoice::Resume(run) => {
            if run.manifest.settings_sha256 != sha256 {
                let differences = run.manifest.settings.differences(settings).iter().map(ToString::to_string).collect();
                return Err(EvalError::SettingsChanged { run: run.manifest.run.clone(), differences });
            }
            let lock = store.lock(&run.manifest.run)?;
            // Read again, because another process may have finished it before we got the lock.
            let name = run.manifest.run.clone();
            let earlier = store.exactly(&name)?;
            return Ok(Claimed { lock, name, earlier });
        }
        RunChoice::Continue | RunChoice::Gather => {
            if shard.is_none() {
                let equal = store.with_settings(&sha256)?;
                check_parts(&equal, matches!(evaluation.run, RunChoice::Continue), reporter)?;
            }
            return Ok(match folder::claim(store, &base, &sha256, shard)? {
                folder::Claimed::Equal(lock, run) => {
                    Claimed { lock, name: run.manifest.run.clone(), earlier: Some(*run) }
                }
                folder::Claimed::New(lock, name) => Claimed { lock, name, earlier: None },
            });
        }
        RunChoice::Repeat(manifest) => {
            if manifest.settings_sha256 != sha256 {
                let differences = manifest.settings.differences(settings);
                let run = manifest.run.clone();
                reporter.event(&RunEvent::notice(RunNotice::Inexact { run, differences }));
            }
        }
        RunChoice::New => {}
    }
    let (lock, name) = folder::free_name(store, &base)?;
    Ok(Claimed { lock, name, earlier: None })
}

/// Checks for finished parts of the run: an error if all are finished, a warning if some are.
fn check_parts(equal: &[RunRecord], can_repeat: bool, reporter: &mut dyn Reporter) -> Result<(), EvalError> {
    let finished = |run: &&RunRecord| run.manifest.status == Status::Finished;
    if equal.iter().filter(finished).any(|run| run.manifest.shard.is_none()) {
        return Ok(());
    }
    let parts: BTreeSet<(usize, usize)> = equal
        .iter()
        .filter(finished)
        .filter_map(|run| run.manifest.shard)
        .map(|shard| (shard.of, shard.part))
        .collect();
    let whole = parts.iter().map(|(of, _)| *of).find(|&of| (1..=of).all(|part| parts.contains(&(of, part))));
    if let Some(of) = whole {
        return Err(EvalError::PartsNotMerged { of, can_repeat });
    }
    if !parts.is_empty() {
        let parts = parts.into_iter().map(|(of, part)| Shard { part, of }).collect();
        reporter.event(&RunEvent::notice(RunNotice::PartsFinished { parts }));
    }
    Ok(())
}
