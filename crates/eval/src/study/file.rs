//! Study files.
use std::path::{Path, PathBuf};

use earnest_digest::input;
use earnest_engine::endpoint::Api;
use earnest_models::checkpoint::{Compute, ElementType, KvType, Quant, WeightFormat};
use earnest_models::memory::ByteSize;
use earnest_stats::mixed::{Formula, FormulaError};
use earnest_tasks::suite::registry::{self, OptionValues};
use earnest_tasks::suite::{ThinkingText, check_size};
use toml::de::DeTable;

use super::definition::{
    Adjustment, CompareDefinition, Dimension, MixedModelDefinition, ModelDefinition, ModelReference, StudyDefinition,
    TaskDefinition,
};
use super::mistake::{Mistake, Place, StudyError};
use super::options::read_options;
use super::plan::{MOST_MODELS, MOST_TASKS};
use super::toml_table::{Notes, Table, unknown};
use crate::evaluate::{EndOfSequence, GenerationSettings};
use crate::model::{BUILT_IN, EndpointRequest, EngineSettings, TrafficSettings, without_word};
use crate::prompt::Prompts;
use earnest_results::ThinkingRequest;

impl StudyDefinition {
    /// Reads a study file. `engine` has the limits of models that do not set their own. Paths are relative to the file.
    ///
    /// # Errors
    /// Everything that is wrong with the file, with lines.
    pub fn read(path: &Path, engine: &EngineSettings) -> Result<Self, StudyError> {
        let failed = |problem: String| StudyError {
            file: Some(path.to_owned()),
            mistakes: vec![Mistake::new(&Place::key("cannot be read"), problem)],
        };
        let bytes = input::read(path, input::MOST_SETTINGS).map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8(bytes).map_err(|error| failed(format!("it is not UTF-8: {error}")))?;
        Self::parse(&text, path, engine)
    }

    /// Reads the text of a study file.
    ///
    /// # Errors
    /// As [`StudyDefinition::read`].
    pub fn parse(text: &str, path: &Path, engine: &EngineSettings) -> Result<Self, StudyError> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let notes = Notes::new(text);
        let (document, errors) = DeTable::parse_recoverable(text);
        for error in &errors {
            let byte = error.span().map_or(0, |span| span.start);
            notes.add(Mistake::new(&notes.place("", byte), error.message()));
        }
        if !errors.is_empty() {
            return Err(StudyError::new(Some(path), notes.into_mistakes()));
        }
        let study = Reader { base: path.parent().unwrap_or(Path::new("")), engine }
            .study(Table::new(&notes, String::new(), 0, document.get_ref()), path);
        StudyError::check(Some(path), notes.into_mistakes())?;
        Ok(study)
    }
}

/// Reader of one file.
struct Reader<'a> {
    /// Folder of the file.
    base: &'a Path,
    engine: &'a EngineSettings,
}

/// Decoding and the use of thinking.
#[derive(Clone)]
struct Decoding {
    generation: GenerationSettings,
    thinking_text: ThinkingText,
}

struct TaskDefaults {
    samples: u32,
    limit: Option<usize>,
    seed: u64,
    prompts: Vec<Prompts>,
}

/// Longest name of a study in bytes: with the endings of the report and its figures it is the name of a file, of at most 255.
const LONGEST_NAME: usize = 150;

impl Reader<'_> {
    fn study(&self, mut file: Table<'_>, path: &Path) -> StudyDefinition {
        let stem = path.file_stem().map_or_else(|| "study".to_owned(), |stem| stem.to_string_lossy().into_owned());
        let name = file.text("name").unwrap_or(stem);
        let plain = |letter: char| letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.');
        if name.is_empty() || name.starts_with('.') || !name.chars().all(plain) {
            let message = format!("{name} cannot be the name of the report's file: use letters, digits, -, _ and .");
            file.add(Mistake::new(&file.place_of("name"), message));
        }
        if name.len() > LONGEST_NAME {
            let message = format!("the name has {} bytes; the report's file can have {LONGEST_NAME}", name.len());
            file.add(Mistake::new(&file.place_of("name"), message));
        }
        let none = TaskDefaults { samples: 1, limit: None, seed: 1, prompts: vec![Prompts::default()] };
        let defaults = task_defaults(&mut file, &none);
        let decoding = Decoding { generation: GenerationSettings::default(), thinking_text: ThinkingText::default() };
        let decoding = generation(&mut file, &decoding);
        let top = Place { key: String::new(), line: Some(1) };
        let mut few = |what: &'static str, most: usize| {
            let mut tables = file.named_tables(what);
            if tables.len() > most {
                let mistake = Mistake::new(&top, format!("the study has {} {what}, more than {most}", tables.len()));
                file.add(mistake.hint("divide it into several studies"));
                tables.truncate(1);
            }
            tables
        };
        let (models, tasks) = (few("models", MOST_MODELS), few("tasks", MOST_TASKS));
        let models: Vec<ModelDefinition> =
            models.into_iter().map(|(name, table)| self.model(name, table, &decoding)).collect();
        let tasks: Vec<TaskDefinition> =
            tasks.into_iter().map(|(name, table)| self.task(name, table, &defaults)).collect();
        if models.is_empty() {
            file.add(
                Mistake::new(&top, "there are no models").hint("add e.g. [models.small] with model = \"built-in\""),
            );
        }
        if tasks.is_empty() {
            file.add(Mistake::new(&top, "there are no tasks").hint("add e.g. [tasks.sums] with suite = \"nupa\""));
        }
        let compare = file.tables("compare").into_iter().map(compare).collect();
        let mixed_models = file.tables("mixed-model").into_iter().filter_map(mixed_model).collect();
        file.finish();
        StudyDefinition { name, file: Some(path.to_owned()), models, tasks, compare, mixed_models }
    }

    /// A path of the file: as it is if it is absolute, else from the file's folder.
    fn path(&self, given: &str) -> PathBuf {
        self.base.join(given)
    }

    /// A model's path if there is such a file or folder beside the study, else the name as given.
    fn model_name(&self, given: &str) -> PathBuf {
        // A folder of that name is `./NAME`.
        let named = without_word(Path::new(given));
        if named.as_os_str() == BUILT_IN {
            return named.to_owned();
        }
        let path = self.path(given);
        if path.exists() { path } else { given.into() }
    }

    fn model(&self, name: String, mut table: Table<'_>, decoding: &Decoding) -> ModelDefinition {
        let place = table.place();
        let engine = self.engine_settings(&mut table);
        let traffic = traffic(&mut table);
        let weights = WeightFormat {
            quant: table.choice("quant", &QUANT).flatten(),
            dtype: table.choice("dtype", &DTYPE),
            compute: table.choice("compute", &COMPUTE).flatten(),
            kv: table.choice("kv", &KV).flatten(),
        };
        let model = table.text("model");
        let runner = table.choice("engine", &[("native", false), ("mistralrs", true)]).unwrap_or(false);
        let request = EndpointRequest {
            url: String::new(),
            model: model.clone(),
            api: table.choice("api", &[("completions", Api::Completions), ("chat", Api::Chat)]),
            tokenizer: table.text("tokenizer").map(|path| self.model_name(&path)),
            context: table.integer("context"),
        };
        let reference = if let Some(url) = table.text("endpoint") {
            for key in ["quant", "dtype", "compute", "kv", "engine"] {
                refuse(&table, key, "is for models that run here, not for an endpoint");
            }
            ModelReference::Endpoint(EndpointRequest { url, ..request })
        } else {
            for key in ["api", "tokenizer", "context"] {
                refuse(&table, key, "is for an endpoint");
            }
            let model = match model {
                Some(model) => self.model_name(&model),
                None => {
                    let mistake = Mistake::new(&place, "it names no model");
                    table.add(
                        mistake.hint("add model = \"...\": a name from `earnest models list`, a path or \"built-in\""),
                    );
                    PathBuf::new()
                }
            };
            match runner {
                true if !weights.is_plain() => {
                    table.add(Mistake::new(&place, "quant, dtype and compute need engine = \"native\""));
                    ModelReference::Mistralrs(model)
                }
                true => ModelReference::Mistralrs(model),
                false => ModelReference::Native { model, weights },
            }
        };
        let allow_config = table.texts("allow-config").unwrap_or_default();
        if !allow_config.is_empty()
            && matches!(&reference, ModelReference::Endpoint(request) if request.tokenizer.is_none())
        {
            refuse(&table, "allow-config", "is for a model or tokenizer that is here, and the endpoint has none");
        }
        let Decoding { generation, thinking_text } = generation(&mut table, decoding);
        table.finish();
        ModelDefinition { name, reference, engine, traffic, generation, thinking_text, allow_config, place }
    }

    fn engine_settings(&self, table: &mut Table<'_>) -> EngineSettings {
        let base = self.engine;
        let settings = EngineSettings {
            max_batch: table.integer("max-batch").or(base.max_batch),
            kv_memory: table.parsed::<ByteSize>("kv-memory").map(|size| size.0).or(base.kv_memory),
            threads: table.integer("threads").or(base.threads),
            prefix_cache: table.truth("prefix-cache").unwrap_or(base.prefix_cache),
            device: table.parsed("device").unwrap_or(base.device),
            batch_invariant: table.truth("batch-invariant").unwrap_or(base.batch_invariant),
            cuda_variants: base.cuda_variants,
        };
        if let Err(error) = settings.check() {
            table.add(Mistake::of(&table.place(), &error));
        }
        settings
    }

    fn task(&self, name: String, mut table: Table<'_>, defaults: &TaskDefaults) -> TaskDefinition {
        let place = table.place();
        let own = task_defaults(&mut table, defaults);
        let file = table.text("file").map(|file| self.path(&file));
        let suite = match (table.text("suite"), &file) {
            (Some(suite), Some(_)) if suite != TASK => {
                refuse(&table, "file", &format!("is for your own questions; {suite} has its own"));
                suite
            }
            (Some(suite), _) => suite,
            (None, Some(_)) => TASK.to_owned(),
            (None, None) => {
                let mistake = Mistake::new(&place, "it names neither a suite nor a file of questions");
                table.add(mistake.hint("add suite = \"...\" (`earnest suites` lists them) or file = \"...\""));
                TASK.to_owned()
            }
        };
        let mut options = OptionValues::new(own.seed, Vec::new());
        let given = table.table("options");
        match registry::find(&suite) {
            Some(registration) => {
                if let Some(given) = given {
                    read_options(given, &registration.card(), self.base, &mut options);
                }
            }
            None => {
                let names: Vec<&str> = registry::BUILT_IN.iter().map(|suite| suite.card().name).collect();
                let nearest = unknown(&table.place_of("suite"), &suite, &names).problem.hint;
                let mut mistake = Mistake::new(&table.place_of("suite"), format!("there is no suite {suite}"));
                mistake.problem.hint = nearest;
                table.add(mistake);
            }
        }
        if let Some(file) = file {
            options = options.with("file", file);
        }
        table.finish();
        TaskDefinition {
            name,
            suite,
            options,
            prompts: own.prompts,
            limit: own.limit,
            samples: own.samples,
            seed: own.seed,
            place,
        }
    }
}

/// The suite of the user's own questions.
const TASK: &str = "task";

const QUANT: [(&str, Option<Quant>); 6] = [
    ("none", None),
    ("q8_0", Some(Quant::Q8)),
    ("q6k", Some(Quant::Q6k)),
    ("q5k", Some(Quant::Q5k)),
    ("q4k", Some(Quant::Q4k)),
    ("nf4", Some(Quant::Nf4)),
];

const DTYPE: [(&str, ElementType); 3] =
    [("f32", ElementType::F32), ("bf16", ElementType::Bf16), ("f16", ElementType::F16)];

const COMPUTE: [(&str, Option<Compute>); 5] = [
    ("f32", None),
    ("int8", Some(Compute::Int8)),
    ("a8", Some(Compute::A8)),
    ("bf16", Some(Compute::Bf16)),
    ("fp8", Some(Compute::Fp8)),
];

const KV: [(&str, Option<KvType>); 2] = [("f32", None), ("bf16", Some(KvType::Bf16))];

/// Notes a key that stands where it means nothing.
fn refuse(table: &Table<'_>, key: &'static str, reason: &str) {
    if table.has(key) {
        table.add(Mistake::new(&table.place_of(key), format!("{key} {reason}")));
    }
}

fn task_defaults(table: &mut Table<'_>, outer: &TaskDefaults) -> TaskDefaults {
    let samples = table.integer("samples").unwrap_or(outer.samples);
    let limit = table.integer("limit").or(outer.limit);
    for (key, nothing) in [("samples", samples == 0), ("limit", limit == Some(0))] {
        if nothing {
            table.add(Mistake::new(&table.place_of(key), format!("{key} = 0 leaves nothing to ask")));
        }
    }
    for (key, size) in [("samples", samples as usize), ("limit", limit.unwrap_or(0))] {
        if let Err(error) = check_size(|| format!("{key} = {size}"), &[size]) {
            table.add(Mistake::new(&table.place_of(key), error.to_string()));
        }
    }
    let prompts = table.texts("prompts").map(|words| {
        let mut prompts: Vec<Prompts> = Vec::new();
        for word in words {
            let place = table.place_of("prompts");
            match word.parse::<Prompts>() {
                Ok(one) if prompts.contains(&one) => table.add(Mistake::new(&place, format!("{word} is named twice"))),
                Ok(one) => prompts.push(one),
                Err(problem) => table.add(Mistake::new(&place, problem)),
            }
        }
        prompts
    });
    TaskDefaults {
        samples,
        limit,
        seed: table.integer("seed").unwrap_or(outer.seed),
        prompts: prompts.unwrap_or_else(|| outer.prompts.clone()),
    }
}

/// The table `generation`, over that of the study.
fn generation(around: &mut Table<'_>, outer: &Decoding) -> Decoding {
    let Some(mut table) = around.table("generation") else { return outer.clone() };
    let base = &outer.generation;
    let generation = GenerationSettings {
        temperature: table.number("temperature").map(|value| value as f32).or(base.temperature),
        top_k: table.integer("top-k").or(base.top_k),
        top_p: table.number("top-p").map(|value| value as f32).or(base.top_p),
        min_p: table.number("min-p").map(|value| value as f32).or(base.min_p),
        repetition_penalty: table.number("repetition-penalty").map(|value| value as f32).or(base.repetition_penalty),
        recommended: table.truth("recommended").unwrap_or(base.recommended),
        max_tokens: table.integer("max-tokens").or(base.max_tokens),
        eos: table
            .choice("eos", &[("all", EndOfSequence::All), ("tokenizer", EndOfSequence::Tokenizer)])
            .unwrap_or(base.eos),
        thinking: table
            .choice(
                "thinking",
                &[("auto", ThinkingRequest::Auto), ("on", ThinkingRequest::On), ("off", ThinkingRequest::Off)],
            )
            .unwrap_or(base.thinking),
        seed: base.seed,
    };
    let thinking_text = table
        .choice("thinking-text", &[("strip", ThinkingText::Stripped), ("keep", ThinkingText::Kept)])
        .unwrap_or(outer.thinking_text);
    if let Err(error) = generation.check() {
        table.add(Mistake::of(&table.place(), &error));
    }
    table.finish();
    Decoding { generation, thinking_text }
}

fn traffic(table: &mut Table<'_>) -> TrafficSettings {
    let base = TrafficSettings::default();
    let traffic = TrafficSettings {
        concurrency: table.integer("concurrency").unwrap_or(base.concurrency),
        per_minute: table.number("per-minute").or(base.per_minute),
        retries: table.integer("retries").unwrap_or(base.retries),
        longest_wait: table.number("longest-wait").unwrap_or(base.longest_wait),
        request_timeout: table.number("request-timeout").unwrap_or(base.request_timeout),
    };
    if let Err(error) = traffic.check() {
        table.add(Mistake::of(&table.place(), &error));
    }
    traffic
}

fn compare(mut table: Table<'_>) -> CompareDefinition {
    let definition = CompareDefinition {
        between: table.choice("between", &Dimension::NAMES).unwrap_or(Dimension::Models),
        baseline: table.text("baseline"),
        adjust: table
            .choice("adjust", &[("holm", Adjustment::Holm), ("none", Adjustment::None)])
            .unwrap_or(Adjustment::Holm),
        tasks: table.texts("tasks").unwrap_or_default(),
        place: table.place(),
    };
    table.finish();
    definition
}

fn mixed_model(mut table: Table<'_>) -> Option<MixedModelDefinition> {
    let place = table.place();
    let formula = table.text("formula");
    let tasks = table.texts("tasks").unwrap_or_default();
    let factors = table.texts("factors").unwrap_or_default();
    let mut references = Vec::new();
    if let Some(given) = table.table("reference") {
        for (column, found) in given.all() {
            match found.value.as_str() {
                Some(level) => references.push((column.to_owned(), level.to_owned())),
                None => table.add(Mistake::new(&found.place, "expected the reference level in quotes")),
            }
        }
    }
    let formula: Option<Formula> = match formula {
        Some(text) => {
            let place = table.place_of("formula");
            let parsed = text.parse().map_err(|error: FormulaError| Mistake::new(&place, error.to_string()));
            let random = |formula: Formula| match formula.random.is_empty() {
                true => Err(Mistake::new(&place, format!("`{text}` has no random intercept"))
                    .hint(format!("e.g. {text} + (1 | cluster)"))),
                false => Ok(formula),
            };
            Some(parsed.and_then(random).map_err(|mistake| table.add(mistake)).ok()?)
        }
        None => None,
    };
    table.finish();
    Some(MixedModelDefinition { formula, tasks, factors, references, place })
}
