//! Provenance of the runs.
use earnest_results::Origin;
use minijinja::context;

use super::summary::facts as counted;
use crate::markup::{Markup, html};
use crate::page::ReportRun;
use earnest_engine::endpoint::NOT_TOLD;
use earnest_results::started;

/// Renders the provenance of the runs: settings, model files, host, engine and first prompt.
pub fn provenance(runs: &[ReportRun]) -> Markup {
    let shown = runs.iter().map(|run| {
        let first = run.document.manifest.first_prompt.as_ref();
        let first = first.map(|first| context!(tokens => first.ids.len(), bos => first.bos, text => &first.text));
        context!(label => &run.label, facts => facts(run), first)
    });
    html("provenance.html", context!(runs => shown.collect::<Vec<_>>()))
}

fn facts(run: &ReportRun) -> Vec<(&'static str, String)> {
    let manifest = &run.document.manifest;
    let settings = &manifest.settings;
    let mut facts: Vec<(&'static str, String)> = vec![
        ("run", manifest.run.clone()),
        ("settings, SHA-256", manifest.settings_sha256.clone()),
        ("suite", format!("{} {} {}", settings.suite, settings.suite_version, settings.suite_options)),
        (
            "model",
            match settings.origin() == Origin::Log {
                true => format!("{}, from the log {}", manifest.model.name, manifest.model.path),
                false => {
                    let model = &manifest.model;
                    let architecture = Some(model.architecture.as_str()).filter(|one| *one != NOT_TOLD);
                    let context = Some(model.context).filter(|length| *length > 0);
                    let parts = [architecture.map(str::to_owned), Some(model.format.clone())];
                    let parts = parts.into_iter().chain([context.map(|length| format!("context {length}"))]);
                    format!("{} ({})", model.name, parts.flatten().collect::<Vec<_>>().join(", "))
                }
            },
        ),
        ("earnest", settings.earnest.clone()),
        ("started", started(manifest).unwrap_or_else(|| "unknown".to_owned())),
        ("ended", manifest.ended.clone().unwrap_or_else(|| "–".into())),
        (
            "host",
            format!(
                "{} {}, {}, {} threads",
                manifest.host.os,
                manifest.host.arch,
                manifest.host.cpu.as_deref().unwrap_or("unknown CPU"),
                manifest.host.threads
            ),
        ),
    ];
    facts.extend(settings.until.as_ref().map(|until| ("until", until.to_string())));
    facts.extend(manifest.sandbox.as_ref().map(|sandbox| ("model-written Python", sandbox.to_string())));
    if let Some(engine) = &manifest.engine {
        let card = &engine.card;
        facts.push((
            "engine",
            match card.weights_dtype.as_str() {
                NOT_TOLD => format!("{} {}, {}", card.engine, card.version, card.devices.join(", ")),
                dtype => format!("{} {}, weights {dtype}, {}", card.engine, card.version, card.devices.join(", ")),
            },
        ));
    }
    facts.extend(counted(&run.document));
    for file in &settings.model_files {
        facts.push(("file, SHA-256", format!("{} {} ({} bytes)", file.name, file.sha256, file.size)));
    }
    facts
}
