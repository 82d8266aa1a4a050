//! Every generated item of every task: canonical texts, ranges, and answers that agree with a second way to compute them.
use std::cmp::Ordering;

use earnest_answer::number::{Digitwise, Notation, Number, Rounding};
use earnest_tasks::suite::nupa::answer::AnswerForm;
use earnest_tasks::suite::nupa::{Cell, Operation, PairRules, Question, Representation, Split, TASKS, TaskId};

fn notation(form: AnswerForm) -> Notation {
    match form {
        AnswerForm::Integer => Notation::Integer,
        AnswerForm::Float => Notation::Decimal,
        AnswerForm::Fraction => Notation::Fraction,
        AnswerForm::Scientific => Notation::Scientific,
    }
}

/// The answer through [`Number`] alone; the suite's own way runs on digit strings where it can.
fn second_opinion(task: TaskId, a: &Number, b: Option<&str>) -> String {
    use Operation as O;
    let other = || Number::parse(a.notation(), b.unwrap()).unwrap();
    let small = || b.unwrap().parse::<usize>().unwrap();
    let chosen = |keep: Ordering| if a.compare(&other()).unwrap() == keep { a.clone() } else { other() };
    let answer = match task.operation {
        O::Add | O::AddEasy => a.add(&other()),
        O::Sub => a.subtract(&other()),
        O::MultiplyHard | O::MultiplyEasy => a.multiply(&other()),
        O::TrueDiv => a.true_divide(&other()),
        O::FloorDiv => a.floor_divide(&other()).map(|(quotient, _)| quotient),
        O::Mod | O::ModEasy => a.floor_divide(&other()).map(|(_, remainder)| remainder),
        O::Max | O::MaxHard => Ok(chosen(Ordering::Greater)),
        O::Min | O::MinHard => Ok(chosen(Ordering::Less)),
        O::DigitMax => a.digitwise(Digitwise::Max, &other()),
        O::DigitMin => a.digitwise(Digitwise::Min, &other()),
        O::DigitAdd => a.digitwise(Digitwise::AddModulo10, &other()),
        O::ToFloat => a.to_decimal(),
        O::ToScient => a.to_scientific(),
        O::GetDigit => return a.digit_at(small()).unwrap().to_string(),
        O::Length => return a.digit_count().unwrap().to_string(),
        O::Count => return a.occurrences(small() as u32).unwrap().to_string(),
        O::Sig => return a.to_significant(small(), Rounding::HalfUp).unwrap(),
    };
    answer.unwrap().to_string()
}

fn questions(task: TaskId, reference: bool) -> impl Iterator<Item = Question> {
    let rules = PairRules { reference, ..PairRules::default() };
    let lengths = (1..=task.longest()).filter(move |length| task.longest() == 20 || length % 9 == 1 || *length < 8);
    lengths.flat_map(move |length| Cell::new(task, length, Split::Test, rules, 11).unwrap().take(12))
}

#[test]
fn items_are_canonical_and_exact() {
    for task in TASKS {
        for question in questions(task, false).chain(questions(task, true)) {
            let a = Number::parse(task.representation.notation(), &question.a).unwrap();
            // Truncated operands of easy tasks and integers with zeroed digits are canonical too.
            assert_eq!(a.to_string(), question.a, "{task}");
            assert_eq!(second_opinion(task, &a, question.b.as_deref()), question.answer, "{question:?}");
            let answer = Number::parse(notation(task.answer_form()), &question.answer).unwrap();
            if task.operation != Operation::Sig {
                assert_eq!(answer.to_string(), question.answer, "{question:?}");
            }
            assert!(!question.answer.contains('-'), "{question:?}");
        }
    }
}

#[test]
fn operands_obey_their_tasks() {
    for task in TASKS {
        for question in questions(task, false) {
            let parse = |text: &str| Number::parse(task.representation.notation(), text).unwrap();
            let Some(b) = question.b.as_deref() else { continue };
            match (task.operation, task.representation) {
                (Operation::Sub | Operation::FloorDiv | Operation::Mod | Operation::ModEasy, _) => {
                    assert!(parse(&question.a).compare(&parse(b)).unwrap().is_ge(), "{question:?}");
                }
                (Operation::MultiplyEasy, Representation::Integer) => assert!(b.len() <= 3, "{question:?}"),
                (Operation::Max | Operation::Min, Representation::Fraction) => {
                    let one = parse("1/1");
                    for operand in [&question.a, b] {
                        assert!(parse(operand).compare(&one).unwrap().is_lt(), "{question:?}");
                    }
                }
                (Operation::Sig, _) => assert!(b.parse::<usize>().unwrap() >= 2),
                _ => {}
            }
        }
    }
}

#[test]
fn auxiliary_draws_are_uniform() {
    // Positions of get_digit on 10-digit integers: 10 equally likely values, chi-squared with 9 degrees of freedom.
    let task: TaskId = "get_digit_Integer".parse().unwrap();
    let mut counts = [0usize; 10];
    let cell = Cell::new(task, 10, Split::Train, PairRules::default(), 2).unwrap();
    for question in cell.take(20_000) {
        counts[question.b.unwrap().parse::<usize>().unwrap()] += 1;
    }
    let statistic: f64 = counts.iter().map(|&count| (count as f64 - 2000.0).powi(2) / 2000.0).sum();
    assert!(statistic < 33.7, "{counts:?}");
}
