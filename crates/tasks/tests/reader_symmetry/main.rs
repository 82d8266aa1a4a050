//! Symmetry of the reader: a right and a wrong number in the same words are read alike, and as they are stated.
//!
//! Every task of NUPA and Arithmetic-Bench, the templates of `gsm-mini` and questions of our own are answered in every sentence frame of
//! `frames`: with the right number, with a wrong one of the same shape and with one of the question's own numbers. What is compared is
//! the number that was read with the number that was stated.
//!
//! `SYMMETRY_REPORT=FILE` writes the misreadings, by frame, to a file.

mod cases;
mod frames;
mod tally;
mod wrong;

use cases::{Case, Number};
use earnest_answer::reader::{Asked, read, same_number};
use earnest_tasks::suite::{Answered, FINAL};
use frames::{FRAMES, Frame};
use rayon::prelude::*;
use tally::{Miss, Tally, Truth};

/// Least share of stated numbers that are read as stated.
const LEAST: f64 = 0.99;

/// Greatest difference between the shares of right and wrong numbers.
const MOST_DIFFERENCE: f64 = 0.003;

/// Least share within one frame, and within one task.
const LEAST_OF_ONE: f64 = 0.90;

fn tally(cases: &[Case], frames: &[Frame]) -> Tally {
    let tallies: Vec<Tally> = frames.par_iter().map(|frame| tally_of(cases, frame)).collect();
    tallies.into_iter().fold(Tally::default(), Tally::with)
}

fn tally_of(cases: &[Case], frame: &Frame) -> Tally {
    let mut tally = Tally::default();
    for case in cases {
        for truth in Truth::ALL {
            let number = match truth {
                Truth::Right => Some(&case.right),
                Truth::Wrong => Some(&case.wrong),
                Truth::Operand => case.operand.as_ref(),
            };
            let Some(number) = number else { continue };
            let Some(completion) = frame.fill(case, number) else { continue };
            let reading = read(&Asked { prompt: &case.prompt, form: case.form }, &completion, false);
            let as_stated = reading.text().is_some_and(|read| is_as_stated(case, number, read));
            tally.count(frame.name, &case.task, truth, case.operand.is_some(), as_stated);
            if !as_stated {
                let read = match &reading.answer {
                    Ok(answer) => answer.text.clone(),
                    Err(none) => format!("({})", none.name()),
                };
                tally.misses.push(Miss {
                    frame: frame.name,
                    task: case.task.clone(),
                    truth,
                    prompt: case.prompt.clone(),
                    completion,
                    stated: number.value.clone(),
                    read,
                });
            }
        }
    }
    tally
}

/// True if a reading is the number that was stated: the same value, and the same digits where the task is about digits.
fn is_as_stated(case: &Case, stated: &Number, read: &str) -> bool {
    let bare = |text: &str| text.trim_matches(['(', ')']).to_owned();
    let (stated, read) = (bare(&stated.value), bare(read));
    stated == read || (!case.by_spelling && same_number(&stated, &read))
}

#[test]
fn right_and_wrong_numbers_are_read_as_stated() {
    let cases = cases::all();
    let tally = tally(&cases, FRAMES);
    if let Ok(path) = std::env::var("SYMMETRY_REPORT") {
        std::fs::write(path, tally.report(cases.len())).expect("the report can be written");
    }
    println!("{}", tally.summary());
    let problems = tally.problems(LEAST, LEAST_OF_ONE, MOST_DIFFERENCE);
    assert!(problems.is_empty(), "{}\n{}\n{}", tally.by_frame_and_task(), tally.summary(), problems.join("\n"));
}

/// The scorer `final` of the suites, in plain words: a right number is right, a wrong one wrong.
#[test]
fn right_numbers_are_right_and_wrong_ones_wrong() {
    const SENTENCES: [&str; 6] =
        ["«»", "It is «».", "We get «».", "The answer is «».", "**«»**", "So, it comes to «»."];
    let (mut all, mut failed) = (0usize, Vec::new());
    for (suite, items) in cases::scored() {
        for (item, wrong) in items {
            for sentence in SENTENCES {
                for (number, expected) in [(&item.gold, true), (&wrong, false)] {
                    let completion = sentence.replace("«»", number);
                    let score = suite.score(&item, &Answered { completion: &completion, truncated: false });
                    all += 1;
                    if score.scorers.get(FINAL) != Some(expected) {
                        failed.push(format!("{} {completion:?} is not {expected}", item.id));
                    }
                }
            }
        }
    }
    println!("{} of {all} are scored as they should be", all - failed.len());
    assert!(failed.len() as f64 <= (1.0 - LEAST) * all as f64, "{} of {all}:\n{}", failed.len(), failed.join("\n"));
}

#[test]
fn frames_and_cases_are_as_many_as_promised() {
    let cases = cases::all();
    let tasks: std::collections::BTreeSet<&str> = cases.iter().map(|case| case.task.as_str()).collect();
    let of = |suite: &str| tasks.iter().filter(|task| task.starts_with(suite)).count();
    assert_eq!((of("nupa/"), of("arithmetic-bench/"), of("gsm-mini/")), (53, 16, 16));
    assert!(of("own/") >= 12);
    assert!(FRAMES.len() >= 60, "{} frames", FRAMES.len());
    let names: std::collections::BTreeSet<&str> = FRAMES.iter().map(|frame| frame.name).collect();
    assert_eq!(names.len(), FRAMES.len(), "two frames have one name");
    for frame in FRAMES {
        let filled = cases.iter().filter(|case| frame.fill(case, &case.right).is_some()).count();
        assert!(filled >= 5, "{} fits {filled} cases", frame.name);
    }
}

/// A frame that states nothing shows that the test can fail: "The numbers were A and B." has no answer.
#[test]
fn a_frame_that_states_another_number_fails() {
    let broken = [Frame { name: "broken", language: None, text: "Ignore «n», the answer is «m»." }];
    let tally = tally(&cases::all(), &broken);
    let problems = tally.problems(LEAST, LEAST_OF_ONE, MOST_DIFFERENCE);
    assert!(problems.iter().any(|problem| problem.contains("broken")), "{problems:?}");
}
