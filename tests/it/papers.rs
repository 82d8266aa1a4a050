//! Comparisons with the papers without stored runs: published tables and figures, plans, counts and names.
use earnest_papers::gsm_symbolic::published::{Printed, code_errors, models, residual_effects};
use earnest_papers::gsm_symbolic::{
    Assumptions, Cell, ErrorClass, Evaluation, NumberDistribution, Observation, PromptSize, ResultRow, Study, analyse,
    paper_name, paper_order,
};
use earnest_papers::nupa::{Rate, ReferenceRow, Section3, TokenCounter, section_3};
use earnest_papers::{Plan, PlanRow, Published, arithmetic_bench, difference, gsm_symbolic, model_key, nupa};
use earnest_tasks::suite::gsm_symbolic::Prompt;
use earnest_tasks::suite::nupa::Adapter;
use earnest_tasks::suite::{FailureClass, Item};
use earnest_train::experiment::{ExperimentResults, NumberStyle};
use serde_json::{Value, json};

#[test]
fn names_of_one_model_meet() {
    let key = |name: &str| model_key(name).0;
    assert_eq!(key("Meta-Llama-3-8B-Instruct"), key("Llama-3-8B-Instruct"));
    assert_eq!(key("Qwen/Qwen2.5-0.5B-Instruct"), key("qwen2.5-0.5b-instruct-q4_k_m"));
    assert_eq!(model_key("SmolLM2-135M-Instruct.Q4_1").1.as_deref(), Some("Q4_1"));
    assert_eq!(model_key("Qwen2.5-7B-Instruct-GPTQ-Int4").1.as_deref(), Some("GPTQ_Int4"));
    assert_eq!(model_key("QwQ-32B"), ("qwq32b".to_owned(), None));
    assert_ne!(key("Qwen2.5-7B-Instruct"), key("Qwen2.5-72B-Instruct"));
}

#[test]
fn newcombe_reference_value() {
    // Newcombe's own example (a): 56/70 - 48/80 = 0.2 with 0.0524 to 0.3339.
    let one = Published::new(80.0, 70, None).unwrap().value;
    let other = Published::new(60.0, 80, None).unwrap().value;
    let found = difference(&one, &other);
    assert!((found.low - 0.0524).abs() < 1e-4 && (found.high - 0.3339).abs() < 1e-4, "{found:?}");
}

fn planned(model: &str) -> PlanRow {
    PlanRow {
        model: model.to_owned(),
        tables: vec![4],
        prompts: 1,
        prompt_characters: 1,
        prompt_tokens: Some(3600),
        most_new_tokens: 0,
        most_hours: None,
        command: "earnest run".to_owned(),
    }
}

#[test]
fn hours_grow_with_the_size_that_a_name_says() {
    let plan = |names: &[&str]| Plan {
        paper: String::new(),
        rows: names.iter().map(|name| planned(name)).collect(),
        notes: vec![],
    };
    let hours = |plan: &Plan| -> Vec<Option<f64>> { plan.rows.iter().map(|row| row.most_hours).collect() };
    let names = ["Qwen2.5-0.5B-Instruct", "QwQ-32B", "Qwen3-235B-A22B", "DeepSeek-R1-671B", "phi-2", "-B", "AB"];
    // An hour for each parameter.
    let mut sizes = plan(&names);
    sizes.estimate(&Rate::together(1.0, "stated".to_owned()), 1.0, "");
    assert_eq!(hours(&sizes), [Some(0.5e9), Some(32e9), Some(22e9), Some(37e9), None, None, None]);
    let mut plan = plan(&["a-1B", "a-8B", "a"]);
    plan.estimate(&Rate::together(1.0, "stated".to_owned()), 2e9, " --compute int8");
    assert_eq!(hours(&plan), [Some(0.5), Some(4.0), None]);
    assert_eq!(plan.rows[0].command, "earnest run --compute int8");
}

#[test]
fn the_arithmetic_bench_plan_has_the_papers_sizes() {
    let plan = arithmetic_bench::plan(None);
    assert_eq!(plan.rows.len(), 18);
    let row = |name: &str| plan.rows.iter().find(|row| row.model == name).unwrap();
    assert_eq!(row("Qwen2.5-7B-Instruct").prompts, 16_000);
    assert_eq!(row("QwQ-32B").prompts, 1_600);
    assert_eq!(row("QwQ-32B").most_new_tokens, 1_600 * 16_384);
    assert_eq!(row("QwQ-32B").tables, [4, 5, 6]);
    assert!(row("QwQ-32B").command.contains("--per-length 1"));
}

#[test]
fn tokens_are_counted_where_a_model_is_at_hand() {
    let each = |_: &Item| Some(2);
    assert_eq!(arithmetic_bench::plan(Some(&each)).rows[0].prompt_tokens, Some(32_000));
    let none = |_: &Item| None;
    assert_eq!(arithmetic_bench::plan(Some(&none)).rows[0].prompt_tokens, None);
}

/// The GSM-Symbolic study without runs.
fn published_study() -> Study {
    Study::new(vec![], vec![], None)
}

#[test]
fn every_spelling_of_a_studied_model_has_the_papers_name() {
    assert_eq!(paper_name("microsoft/phi-2").0, Some("phi-2"));
    assert_eq!(paper_name("Llama-3-8B-Instruct").0, Some("Meta-Llama-3-8B-Instruct"));
    assert_eq!(paper_name("gemma-2-2b.Q4_K_M"), (Some("gemma-2-2b"), Some("Q4_K_M".into())));
    assert_eq!(paper_name("gemma-2b").0, Some("gemma-2b"));
    assert_eq!(paper_name("SmolLM2-135M").0, None);
    assert!(paper_order("gemma-2b") < paper_order("phi-2") && paper_order("other") == usize::MAX);
}

#[test]
fn every_published_class_has_one_of_ours() {
    for prompt in [Prompt::SimpleCode, Prompt::StructuredCode] {
        for row in code_errors(prompt).unwrap().values() {
            for label in row.keys() {
                assert!(ErrorClass::ALL.iter().any(|class| class.label() == label), "{label}");
            }
        }
    }
    assert_eq!(ErrorClass::of(&FailureClass::ForbiddenString), ErrorClass::Other);
    assert_eq!(ErrorClass::of(&FailureClass::MemoryLimit), ErrorClass::Limit);
}

#[test]
fn differences_and_roundings() {
    let cell = Cell::new(Some(Printed::Rounded(0.41)), Some(0.413), 2);
    assert!((cell.difference.unwrap() - 0.003).abs() < 1e-12 && cell.prints_alike == Some(true));
    assert_eq!(Cell::new(Some(Printed::Rounded(0.41)), Some(0.42), 2).prints_alike, Some(false));
    let bound = Cell::new(Some(Printed::Below { bound: 0.001 }), Some(1e-5), 3);
    assert_eq!((bound.difference, bound.prints_alike), (None, Some(true)));
    assert_eq!(Cell::new(None, Some(f64::NAN), 2), Cell::default());
}

#[test]
fn shares_and_test_of_the_questions_integers() {
    let found = NumberDistribution::new(&[0.0, 1.0, 5.0, 5.0], &[5.0, 5000.0]);
    assert_eq!(found.base_shares[..6], [25.0, 25.0, 0.0, 0.0, 0.0, 50.0]);
    assert_eq!(found.variant_shares[10], 50.0);
    assert_eq!(found.statistic, Some(0.5));
    assert_eq!(found.cumulative[10], (5, 100.0, 50.0));
    assert_eq!(NumberDistribution::new(&[], &[1.0]).p, None);
    let figure_7 = &published_study().figures[6];
    assert_eq!((figure_7.rows[0].name.as_str(), figure_7.rows[10].name.as_str()), ("[0, 1)", "1000 and more"));
}

fn observation(template: &str, instance: i64, correct: bool, gamma: Option<f64>) -> Observation {
    let variant = instance >= 0;
    let failure = (!correct).then_some(ErrorClass::Wrong);
    Observation { template: template.into(), instance, variant, correct, gamma, failure }
}

fn evaluation(model: &str, rows: &[Observation]) -> Evaluation {
    Evaluation { rows: rows.to_vec(), ..Evaluation::new(model, Prompt::Gsm) }
}

#[test]
fn accuracies_weigh_templates_equally() {
    let row = |template, instance, correct| observation(template, instance, correct, None);
    // Template a has three variants (all right), b one (wrong): 50 %, not 75 %.
    let rows = [row("a", -1, true), row("a", 0, true), row("a", 1, true), row("a", 2, true), row("b", 0, false)];
    let analyses = analyse(vec![evaluation("all", &rows), evaluation("base", &rows[..1])]);
    let found = analyses[0].accuracies;
    assert_eq!((found.base, found.variants, found.difference), (Some(100.0), Some(50.0), Some(-50.0)));
    // By instance: 50, 100, 100.
    assert!((found.instance_sd.unwrap() - 28.867_513_459_481_29).abs() < 1e-12);
    assert_eq!(analyses[1].accuracies.difference, None);
}

#[test]
fn gamma_is_centred_over_the_prompts_models_and_its_gaps_dropped() {
    let rows = |base, variant| [observation("a", -1, true, base), observation("b", 0, false, variant)];
    let one = evaluation("one", &rows(Some(1.0), None));
    let other = evaluation("other", &rows(Some(4.0), Some(4.0)));
    let found = analyse(vec![one, other]);
    assert_eq!(found[0].gamma_centre, Some(3.0));
    assert_eq!((found[0].glmm2.dropped, found[1].glmm2.dropped), (1, 0));
    assert_eq!(found[0].glmm1.rows, 2);
}

#[test]
fn the_matrix_is_the_studys() {
    let assumptions = Assumptions::default();
    let sizes = Prompt::ALL.map(|prompt| PromptSize::estimate(prompt, 5100, &assumptions));
    let plan = gsm_symbolic::plan(&sizes, assumptions.clone());
    assert_eq!(plan.runs.len(), 60);
    assert_eq!(plan.runs.iter().map(|run| run.questions).sum::<usize>(), 306_000);
    assert!(plan.runs[..20].iter().all(|run| run.phase == 1));
    // Mistral's 1016 tokens with the longest question bound the mean.
    let mean = plan.runs[0].prompt_tokens / 5100;
    assert!((800..1016).contains(&mean), "{mean}");
    assert!(plan.hours > 0.1 && plan.hours < 20.0, "{}", plan.hours);
    // Twice the parameters, twice the time.
    let hours = |name: &str| plan.runs.iter().find(|run| run.model == name).unwrap().hours;
    assert!((hours("Phi-3-medium-128k-instruct") / hours("gemma-7b") - 2.0).abs() < 1e-9);
}

#[test]
fn measured_rates_give_back_the_time_they_were_measured_in() {
    // A model as large as the first of the plan: 1,000 tokens in 4 s, steps of 8 sequences in 0.5 s.
    let size =
        PromptSize { prompt: Prompt::Gsm, questions: 80, tokens: 9000, tokens_after_prefix: 1000, counted: true };
    let first = gsm_symbolic::plan(&[size], Assumptions::default()).runs[0].clone();
    let parameters = models().iter().find(|model| model.name() == first.model).unwrap().billions() * 1e9;
    let measured = Assumptions::measured("a machine".to_owned(), parameters, 1000.0, 4.0, 8.0, 0.5);
    let steps = 10.0 * measured.tokens_per_answer;
    let found = gsm_symbolic::plan(&[size], measured);
    assert!((found.runs[0].hours * 3600.0 - (4.0 + 0.5 * steps)).abs() < 1e-6, "{}", found.runs[0].hours);
    assert!(found.notes[0].contains("a machine"), "{}", found.notes[0]);
}

#[test]
fn without_runs_the_tables_are_the_papers() {
    let tables = published_study().tables;
    assert_eq!(tables.iter().map(|table| table.number).collect::<Vec<_>>(), (2..=15).collect::<Vec<u8>>());
    for table in &tables {
        let expected = match table.number {
            2..=5 => 20,
            14 | 15 => 50,
            _ => 10,
        };
        assert_eq!(table.rows.len(), expected, "{}", table.title);
        for row in &table.rows {
            assert!(row.cells.iter().all(|cell| cell.published.is_some() && cell.ours.is_none()), "{row:?}");
        }
    }
    let artefacts = |number: usize| {
        tables[number - 2].rows.iter().filter(|row| row.remarks.iter().any(|r| r.contains("artefact"))).count()
    };
    assert_eq!([2, 3, 8, 9, 12, 13, 14, 15].map(artefacts), [1, 1, 1, 1, 1, 1, 5, 5]);
}

#[test]
fn column_wise_values_are_no_smaller_than_raw_ones() {
    let fifteen = published_study().tables.pop().unwrap();
    assert_eq!((fifteen.number, fifteen.columns[3].name.as_str()), (15, "Holm over models"));
    for prompt in Prompt::ALL {
        let series = prompt.to_string();
        for row in residual_effects() {
            let of_cell = |found: &&ResultRow| found.name == row.model && found.series.as_ref() == Some(&series);
            let adjusted = fifteen.rows.iter().find(of_cell).unwrap().cells[3].published.unwrap();
            assert!(row.cell(prompt).p.range(3).0 <= adjusted.range(3).1);
        }
    }
}

#[test]
fn every_figure_has_the_papers_data() {
    let figures = published_study().figures;
    assert_eq!(figures.iter().map(|figure| figure.number).collect::<Vec<_>>(), (1..=11).collect::<Vec<u8>>());
    let rows: Vec<usize> = figures.iter().map(|figure| figure.rows.len()).collect();
    assert_eq!(rows[..8], [20, 30, 10, 10, 10, 10, 13, 30]);
    // Strongest drop on top, and the order of the GSM prompt in the others.
    assert_eq!((figures[0].rows[0].name.as_str(), figures[3].rows[0].name.as_str()), ("phi-2", "phi-2"));
    // Figure 9: a total for each of ten models and three prompts.
    assert_eq!(rows[8], 30);
    let shares: f64 = figures[10]
        .rows
        .iter()
        .filter(|row| row.name == "gemma-2b" && row.series.as_ref().unwrap().starts_with("simple-code"))
        .filter_map(|row| row.cells[0].published?.value())
        .sum();
    assert!((shares - 100.0).abs() < 1e-9);
}

#[test]
fn the_papers_counts_with_and_without_artefacts() {
    let claims = published_study().claims;
    let counts: Vec<(usize, usize)> = claims.iter().map(|claim| (claim.published, claim.without_artefacts)).collect();
    // Ten of twenty become nine, two after Holm one; number effect on GSM 6 to 5, simple NL 8 to 7, structured NL 7 to 5,
    // structured code 1 to 0; residual effects 8 to 6.
    assert_eq!(counts, [(10, 9), (2, 1), (6, 5), (8, 7), (7, 5), (0, 0), (1, 0), (8, 6)]);
}

#[test]
fn the_nupa_tables_have_the_papers_sizes() {
    let tables = nupa::compare(&[], &ReferenceRow::OwnModel).published;
    let sizes: Vec<(u8, usize, usize)> =
        tables.iter().map(|table| (table.table, table.rows.len(), table.columns.len())).collect();
    assert_eq!(sizes[1..], [(7, 9, 16), (8, 9, 76), (9, 9, 76), (10, 6, 12), (19, 4, 9)]);
    assert_eq!((sizes[0].0, sizes[0].1), (3, 4));
    for table in &tables {
        assert!(table.rows.iter().all(|row| row.values.len() == table.columns.len()), "{}", table.title);
    }
    let value = |table: usize, model: &str, column: &str| {
        let table = &tables[table];
        let index = table.columns.iter().position(|name| name == column).unwrap();
        table.rows.iter().find(|row| row.model == model).unwrap().values[index]
    };
    assert_eq!(value(0, "RF CoT", "mod_Integer 6"), Some(67.0));
    assert_eq!(value(0, "RF CoT", "add_Float 7"), None);
    assert_eq!(value(1, "GPT-4o", "sub_Integer well_learned"), Some(6.0));
    assert_eq!(value(4, "Qwen2-7B, five-shot", "max_Float S"), Some(100.0));
}

#[test]
fn the_nupa_plan_has_the_papers_sizes() {
    let plan = nupa::plan(Adapter::Completion, None).unwrap().at_rate(None);
    // 2,390 cells of 100 questions (2,370 without to_float's omitted ones), less those of small fractions.
    let published = &plan.rows[0];
    assert!((230_000..=239_000).contains(&published.prompts), "{}", published.prompts);
    assert!(published.prompt_tokens.is_none() && published.hours.is_none());
    assert_eq!((plan.rows[2].tables.as_slice(), plan.rows[2].figures.as_slice()), (&[10][..], &[8][..]));
    let ruled = &plan.rows[3..];
    assert!(ruled.iter().all(|row| row.tables == [3] && row.command.contains("--style rule-following")));
    assert!(ruled.iter().any(|row| row.command.contains("mod_Integer --lengths 6,7,8")), "{ruled:?}");
    assert!(plan.notes.iter().any(|note| note.contains("`model = PATH`")));
}

#[test]
fn hours_of_the_nupa_plan_follow_tokens_and_rate() {
    let tokens = TokenCounter { prompt: &|_| 10, text: &|_| 2 };
    let rate = Rate::together(100.0, "stated".into());
    let plan = nupa::plan(Adapter::Chat, Some(&tokens)).unwrap().at_rate(Some(rate));
    for row in &plan.rows {
        assert_eq!((row.prompt_tokens, row.answer_tokens), (Some(10 * row.prompts), Some(2 * row.prompts)));
        let [few, many] = row.hours.unwrap();
        assert!((few - 12.0 * row.prompts as f64 / 360_000.0).abs() < 1e-9 && many > few);
    }
    let named = plan.of_model("--model m.gguf --compute int8");
    assert!(named.rows.iter().all(|row| row.command.starts_with("earnest run nupa --model m.gguf --compute int8")));
}

/// A model of an experiment, trained on numbers of 8 digits and asked two digits more. Its size is named after its format, so that a
/// result says which format it is of.
fn trained(task: &str, format: &str, parameters: usize) -> Value {
    let score = |length: usize| json!({"task": task, "length": length, "learnt": length == 8, "questions": 10, "exact_match": 0.5});
    json!({
        "task": task, "tokenizer": "1", "position": "rope", "format": format, "size": format, "label": "", "seed": 1,
        "grids": [], "parameters": parameters, "vocabulary": 16, "used_tokens": 16, "width": 64, "steps": 100,
        "batch": 10, "seconds": 1.0, "scores": [score(8), score(9), score(10)], "course": [],
    })
}

/// Section 3 compared with an experiment of these models.
fn compared(models: &[Value]) -> Section3 {
    let results =
        json!({"format": 1, "title": "", "seeds": [1], "questions": 10, "planned": models.len(), "models": models});
    section_3(&serde_json::from_value::<ExperimentResults>(results).unwrap(), &[], "a test")
}

#[test]
fn sizes_of_models_are_written_in_groups_of_three() {
    let written = |parameters: usize| {
        let scale = compared(&[trained("add_Integer", "plain", parameters)]).scale;
        let (size, _) = scale[0].strip_prefix("add_Integer: ").unwrap().split_once(" parameters").unwrap();
        size.to_owned()
    };
    assert_eq!(["7", "70", "700", "7,000", "1,234,567"], [7, 70, 700, 7000, 1_234_567].map(written));
}

#[test]
fn printed_formats_are_those_of_experiment_files() {
    let reversals = ["", "reversed", "reversed-decimals", "reversed-each", "reversed-total"];
    let parts = reversals.into_iter().flat_map(|reversed| {
        [["", ""], ["padded", ""], ["", "hinted"], ["padded", "hinted"]].map(|[pad, hint]| [reversed, pad, hint])
    });
    let formats: Vec<String> = parts
        .map(|parts| parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("+"))
        .map(|format| if format.is_empty() { "plain".to_owned() } else { format })
        .collect();
    for format in &formats {
        assert!(format.parse::<NumberStyle>().is_ok(), "{format}");
    }
    let tasks = ["add_Integer", "add_Float", "multiply_hard_Integer", "max_Integer"];
    let models: Vec<Value> =
        tasks.iter().flat_map(|task| formats.iter().map(|format| trained(task, format, 1_000_000))).collect();
    let section = compared(&models);
    let cells: Vec<_> = section.cells.iter().filter(|cell| matches!(cell.published.table, 16 | 17)).collect();
    assert_eq!(cells.len(), 52);
    for cell in &cells {
        assert_eq!(cell.ours.len(), 1, "{:?}", cell.published);
    }
    let padded = cells.iter().find(|cell| cell.published.variant == "rev total+pad").unwrap();
    assert_eq!(padded.ours[0].model, "rope reversed-total+padded");
}
