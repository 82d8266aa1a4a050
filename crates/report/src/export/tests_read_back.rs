//! Tests of exports that are read back as logs.
use earnest_engine::{FinishReason, Timings};
use earnest_logs::{FindOptions, Log, LogSample, find};
use earnest_results::{FailureKind, Generated, SAMPLE_FORMAT, Sample, SampleFailure};
use earnest_tasks::suite::Score;
use serde_json::Value;

use super::{CsvTexts, write_csv, write_jsonl};

fn logs(path: &std::path::Path) -> Vec<Log> {
    find(&[path.to_owned()], &FindOptions::default()).unwrap().logs
}

fn stored(number: u32, completion: Option<&str>) -> Sample {
    Sample {
        format: SAMPLE_FORMAT,
        run: "sums-m_1-0123abcd".into(),
        suite: "sums".into(),
        item: format!("sums/{}", number / 2),
        sample: number % 2,
        task: "add".into(),
        cluster: "c".into(),
        covariates: [("length".to_owned(), Value::from(3)), ("b".to_owned(), Value::from("1"))].into(),
        gold: "42".into(),
        prompt_sha256: "00".into(),
        prompt_tokens: 3,
        budget: 9,
        max_tokens: 9,
        completion: completion.map(|text| Generated {
            text: text.into(),
            ids: vec![number; 2],
            counted_tokens: 0,
            finish: FinishReason::Eos,
            cached_tokens: 0,
            timings: Timings { queued_s: 0.0, prefill_s: 0.25, decode_s: 0.5 },
        }),
        score: completion.map(|text| Score {
            correct: text == "42",
            answer: (text == "42").then(|| text.to_owned()),
            scorers: [("boundary", text == "42"), ("compat", true)].into(),
            metrics: [("digit_match", 1.0 / 3.0)].into(),
            ..Score::default()
        }),
        failure: completion.is_none().then(|| SampleFailure {
            kind: FailureKind::BeyondContext,
            message: "no, \"room\"".into(),
            retryable: false,
        }),
    }
}

#[test]
fn exports_read_back_with_every_score() {
    let rows = vec![stored(0, Some("42")), stored(1, Some("a,\"b\"\r\nc")), stored(2, Some("")), stored(3, None)];
    let folder = tempfile::tempdir().unwrap();
    let mut found = Vec::new();
    for format in ["jsonl", "csv"] {
        let path = folder.path().join(format!("out.{format}"));
        let mut out = Vec::new();
        match format {
            "csv" => write_csv(&rows, CsvTexts::Neutral, &mut out).unwrap(),
            _ => write_jsonl(&rows, &mut out).unwrap(),
        };
        std::fs::write(&path, out).unwrap();
        let logs = logs(&path);
        assert_eq!(logs.len(), 1);
        let card = &logs[0].card;
        assert_eq!((card.model.as_str(), card.task.as_str(), card.repeats), ("m_1", "sums", Some(2)));
        assert_eq!(card.scorers, ["correct", "matcher_boundary", "matcher_compat", "metric_digit_match"]);
        let mut samples = Vec::new();
        logs[0]
            .samples(&mut |sample| {
                samples.push(sample);
                Ok(())
            })
            .unwrap();
        found.push(samples);
    }
    let without_covariates = |samples: &[LogSample]| -> Vec<LogSample> {
        let plain = |sample: &LogSample| {
            let mut sample = sample.clone();
            // Texts in CSV.
            sample.document.remove("covariates");
            sample
        };
        samples.iter().map(plain).collect()
    };
    assert_eq!(without_covariates(&found[0]), without_covariates(&found[1]));
    let samples = &found[0];
    let numbers = |sample: &LogSample| sample.scores.iter().map(|score| score.number().unwrap()).collect::<Vec<_>>();
    assert_eq!(numbers(&samples[0]), [1.0, 1.0, 1.0, 1.0 / 3.0]);
    assert_eq!(numbers(&samples[1]), [0.0, 0.0, 1.0, 1.0 / 3.0]);
    assert_eq!(samples[1].completions, ["a,\"b\"\r\nc"]);
    assert_eq!((samples[2].completions.len(), samples[2].completions[0].as_str()), (1, ""));
    assert_eq!((samples[3].error.as_deref(), samples[3].completions.len()), (Some("no, \"room\""), 0));
    assert_eq!((samples[1].id.as_str(), samples[1].epoch), ("sums/0", 1));
}

#[test]
fn formulas_come_back_as_they_were() {
    let texts = ["=1+1", "'=1+1", "@x", "-42", "\t=1", "'quoted'", "+a"];
    let rows: Vec<Sample> = (0..).zip(texts).map(|(number, text)| stored(number, Some(text))).collect();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.csv");
    for form in [CsvTexts::Neutral, CsvTexts::Raw] {
        let mut out = Vec::new();
        write_csv(&rows, form, &mut out).unwrap();
        assert_eq!(String::from_utf8_lossy(&out).contains(",=1+1,"), form == CsvTexts::Raw);
        std::fs::write(&path, out).unwrap();
        let logs = logs(&path);
        let mut read = Vec::new();
        logs[0]
            .samples(&mut |sample| {
                read.extend(sample.completions);
                Ok(())
            })
            .unwrap();
        assert_eq!(read, texts, "{form:?}");
    }
}
