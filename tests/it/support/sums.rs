//! A tiny suite and the manifest of a run of it.
use std::collections::BTreeMap;

use earnest_engine::Sampling;
use earnest_results::{
    FileRecord, Generation, Host, MANIFEST_FORMAT, Manifest, Mode, ModelRecord, Plan, RunSettings, Status,
};
use earnest_tasks::suite::{
    Answered, Budget, FailureClass, Item, Items, Score, Scored, Scoring, Segments, Suite, Summary, SummaryRow,
};

/// Adds numbers; the items of two tasks alternate. Item `long` has a question of that many characters.
pub struct Sums {
    pub items: usize,
    pub long: Option<(usize, usize)>,
}

impl Items for Sums {
    fn iter(&self) -> Box<dyn Iterator<Item = Item> + Send + '_> {
        Box::new((0..self.items).map(|number| {
            let task = ["small", "large"][number % 2];
            let question = match self.long {
                Some((item, characters)) if item == number => "x".repeat(characters),
                _ => format!("{number}+1="),
            };
            Item {
                id: format!("sums/{task}/{number}"),
                task: task.into(),
                cluster: format!("c{number}"),
                covariates: BTreeMap::from([("length".into(), number.into())]),
                segments: Segments::question(question),
                gold: (number + 1).to_string(),
                budget: Budget { answer: 8, thinking: 64 },
                stop_strings: vec!["\n".into()],
                keep_stop: false,
                continuations: Vec::new(),
            }
        }))
    }
    fn len(&self) -> usize {
        self.items
    }
}

impl Scoring for Sums {
    fn name(&self) -> &'static str {
        "sums"
    }
    fn version(&self) -> &'static str {
        "1"
    }
    fn options(&self) -> serde_json::Value {
        serde_json::json!({ "items": self.items })
    }
    fn score(&self, item: &Item, answered: &Answered<'_>) -> Score {
        let correct = answered.completion.starts_with(&item.gold);
        Score {
            correct,
            answer: Some(answered.completion.to_owned()),
            scorers: [("prefix", correct)].into(),
            metrics: [("undefined", f64::NAN), ("length", 1.5)].into(),
            failure: (!correct).then_some(FailureClass::Wrong),
            ..Score::default()
        }
    }
    fn summarise(&self, samples: &[Scored<'_>]) -> Summary {
        let row = SummaryRow { name: "all".into(), n: samples.len(), values: Vec::new(), numbers: Vec::new() };
        Summary { rows: vec![row], series: Vec::new(), notes: Vec::new() }
    }
}

/// The manifest of a run of a suite.
pub fn manifest(run: &str, suite: &Suite, plan: Plan) -> Manifest {
    let settings = RunSettings {
        suite: suite.scoring.name().into(),
        suite_version: suite.scoring.version().into(),
        suite_options: suite.scoring.options(),
        limit: plan.limit,
        samples: plan.samples,
        until: None,
        model_files: vec![FileRecord { name: "model".into(), size: 3, sha256: "ab".repeat(32) }],
        weights: None,
        pre_tokenizer: None,
        prompt_mode: Mode::Raw,
        system: earnest_results::SystemPlace::Own,
        generation: Generation {
            sampling: Sampling::GREEDY,
            seed: 1,
            stop_ids: vec![0],
            max_tokens: None,
            thinking: false,
        },
        enable_thinking: None,
        thinking_text: Default::default(),
        endpoint: None,
        engine: "scripted".into(),
        earnest: "0".into(),
    };
    Manifest {
        format: MANIFEST_FORMAT,
        run: run.into(),
        status: Status::Running,
        shard: plan.shard,
        settings_sha256: settings.sha256(),
        settings,
        model: ModelRecord {
            name: "model".into(),
            path: "model".into(),
            format: "none".into(),
            architecture: "none".into(),
            context: 64,
            chat_template_sha256: None,
            pinned: None,
            weights: None,
            allowed_config: Vec::new(),
        },
        first_prompt: None,
        engine: None,
        host: Host { os: "os".into(), arch: "arch".into(), cpu: None, threads: 1, memory: None },
        started: "2026-01-01T00:00:00Z".into(),
        ended: None,
        sandbox: None,
        sessions: 1,
        generation_s: 0.0,
        decision: None,
    }
}
