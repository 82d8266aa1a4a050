//! Invariants of perturbations, on random questions.
use earnest_answer::number::Fraction;
use earnest_answer::number::words::words_in;
use earnest_tasks::suite::dnc::{
    Annotations, Context, DonorPool, Expression, Field, Kind, Perturbed, Problem, Remainder, exact, mentions, perturb,
    plain,
};
use num_traits_check::is_positive;
use proptest::prelude::*;

mod num_traits_check {
    use earnest_answer::number::Fraction;

    /// A value above zero.
    pub fn is_positive(value: &Fraction) -> bool {
        let text = value.to_string();
        !text.starts_with('-') && !text.starts_with("0/")
    }
}

/// Sentences around numbers; `{}` is one of them.
const SENTENCES: [&str; 12] = [
    "Ada had {} plums.",
    "The box cost ${}.",
    "In the 2nd week Ben ran {} miles, then rested.",
    "There are {} trees at 12:30.",
    "She found {}.",
    "About 5/6 of {} birds flew off!",
    "It grew by {}%.",
    "A {}-year-old oak fell.",
    "They sold {} of the mp3 files,",
    "Nobody knows one of the {} names.",
    "(Only {} were left.)",
    "Twenty-one boys and {} girls came.",
];

const FORMULAS: [&str; 8] = ["A+B", "A-B", "B-A", "A*B", "A/B", "A+B-C", "(A-B)*C", "A-(B+C)"];

fn number() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => (1u32..2000).prop_map(|n| n.to_string()),
        1 => (1000u32..90_000).prop_map(|n| format!("{},{:03}", n / 1000, n % 1000)),
        1 => (1u32..500, 1u32..100).prop_map(|(n, d)| format!("{n}.{d:02}")),
        1 => Just("0".to_owned()),
    ]
}

prop_compose! {
    fn problem()(
        numbers in prop::collection::vec(number(), 1..5),
        picks in prop::collection::vec(0..SENTENCES.len(), 5),
        formula in prop::option::of(0..FORMULAS.len()),
        ceil in any::<bool>(),
        question in prop::sample::select(vec!["How many?", "How many of the 3 are left?", "what is it?", ""]),
    ) -> Problem {
        let body: Vec<String> =
            numbers.iter().zip(&picks).map(|(n, pick)| SENTENCES[*pick].replace("{}", n)).collect();
        let formula = formula.map(|which| {
            let mut text = FORMULAS[which].to_owned();
            for (name, index) in [("A", 0), ("B", 1), ("C", 2)] {
                text = text.replace(name, &numbers[index % numbers.len()].replace(',', ""));
            }
            text
        });
        // Only formulas with a value belong to a data set.
        let value = formula.as_ref().and_then(|left| Expression::parse(left).ok()?.value().ok());
        let answer = value.as_ref().map_or("7 (things)".to_owned(), |value| format!("{} (things)", plain(value)));
        Problem {
            id: format!("p{}", body.len()),
            body: body.join(" "),
            question: question.to_owned(),
            table: None,
            formula: value.as_ref().and(formula).map(|left| format!("{left}={}", value.as_ref().map(plain).unwrap_or_default())),
            answer,
            remainder: if ceil { Remainder::Up } else { Remainder::Exact },
            scale: None,
            solution_type: String::new(),
        }
    }
}

fn make(kind: Kind, problem: &Problem, seed: u64) -> Option<Perturbed> {
    let mut donor = problem.clone();
    donor.id = "donor".into();
    donor.body = "Zed owned 77777 shells. Nothing else.".into();
    let donors = DonorPool::new([problem, &donor]);
    let annotations = Annotations::default();
    perturb(kind, problem, Context { seed, draw: 0, donors: &donors, annotations: &annotations, describes: false }).ok()
}

fn values(text: &str) -> Vec<Fraction> {
    let digits = mentions(text).into_iter().filter_map(|number| exact(&number.text));
    digits.chain(words_in(text).into_iter().filter_map(|word| exact(&word.digits))).collect()
}

/// The original texts come back when the edits are undone, so nothing but the edits changed.
fn undone(before: &Problem, found: &Perturbed) -> (String, String) {
    let mut after = (found.problem.body.clone(), found.problem.question.clone());
    for (field, text) in [(Field::Body, &mut after.0), (Field::Question, &mut after.1)] {
        let mut edits: Vec<_> = found.edits.iter().filter(|edit| edit.field == field).collect();
        edits.sort_by_key(|edit| edit.start);
        let mut shift = 0isize;
        let mut starts = Vec::new();
        for edit in edits {
            starts.push(((edit.start as isize + shift) as usize, edit));
            shift += edit.to.len() as isize - edit.from.len() as isize;
        }
        for (start, edit) in starts.into_iter().rev() {
            assert_eq!(&text[start..start + edit.to.len()], edit.to);
            text.replace_range(start..start + edit.to.len(), &edit.from);
        }
    }
    assert_eq!(before.id, found.problem.id);
    after
}

fn asked(body: &str, question: &str, formula: Option<&str>, remainder: Remainder) -> Problem {
    Problem {
        id: "q".into(),
        body: body.into(),
        question: question.into(),
        table: None,
        formula: formula.map(str::to_owned),
        answer: "16 (days)".into(),
        remainder,
        scale: None,
        solution_type: String::new(),
    }
}

fn texts(kind: Kind, problem: &Problem) -> Option<(String, String)> {
    make(kind, problem, 1).map(|found| (found.problem.body, found.problem.question))
}

#[test]
fn hard_cases_are_handled_as_people_would() {
    let words = |body: &str| texts(Kind::Language, &asked(body, "", None, Remainder::Exact)).map(|(body, _)| body);
    assert_eq!(words("It cost $12.46."), Some("It cost twelve point four six dollars.".into()));
    assert_eq!(words("It cost $5 dollars, or $1 less."), Some("It cost five dollars, or one dollar less.".into()));
    assert_eq!(words("14 plums. 3 left."), Some("Fourteen plums. Three left.".into()));
    assert_eq!(
        words("A 50-year-old saw 20% in the 2nd hour"),
        Some("A fifty-year-old saw twenty percent in the 2nd hour".into())
    );
    assert_eq!(words("In 2019 and 1984"), None, "years are names where no formula says otherwise");
    assert_eq!(words("At 12:30 on 5/6, $3 million"), None);
    // Signs, brackets of accountants, mathematics, markup, dates and clocks are left alone, with and without a formula.
    for body in [
        "It lost -$3.",
        "It lost \u{2212}3.",
        "It lost $(5).",
        "About 10^3 cats.",
        "See [5].",
        "<b>5</b> cats",
        "US$5 went.",
        "On May 5.",
        "At 5 p.m. it began.",
        "Note 7 has it.",
        "1 000 cats",
        "3 1/2 cakes",
        "$5$ cats",
    ] {
        for formula in [None, Some("5+3=8"), Some("10-3=7")] {
            let problem = asked(body, "How many?", formula, Remainder::Exact);
            for kind in [Kind::Language, Kind::Type, Kind::Noise, Kind::Distribution, Kind::Verbosity] {
                assert_eq!(texts(kind, &problem), None, "{kind}: {body}");
            }
        }
    }
    // Remainders: the gold answer stays, values are not moved.
    let divided = asked("16 vases a day, 248 vases.", "How many days?", Some("248/16=15 r8"), Remainder::Up);
    let found = make(Kind::Type, &divided, 1).unwrap();
    assert_eq!(found.problem.formula.as_deref(), Some("248.0/16.0=15 r8"));
    assert_eq!((found.problem.gold(), found.problem.answer.as_str()), (exact("16"), "16 (days)"));
    assert!(make(Kind::Noise, &divided, 1).is_none() && make(Kind::Distribution, &divided, 1).is_none());
    // A repeated number, one that is also written in words, one that is not written in digits.
    for body in ["5 red, 5 blue, 7 green.", "5 red, five blue, 7 green.", "Five red, 7 green."] {
        let problem = asked(body, "How many?", Some("5+7=12"), Remainder::Exact);
        assert!(make(Kind::Type, &problem, 1).is_none(), "{body}");
    }
    // What the table repeats stays, so that the question still matches it.
    let mut tabled = asked("Costs were 98 and grew by 12.", "Change from 98?", None, Remainder::Exact);
    tabled.table = Some("| Cost | $(98) |".into());
    assert_eq!(texts(Kind::Language, &tabled).unwrap().0, "Costs were 98 and grew by twelve.");
    // Words become digits and back.
    let worded = asked("She has forty-two pens, one hundred and six caps and one hat.", "", None, Remainder::Exact);
    assert_eq!(texts(Kind::LanguageToDigits, &worded).unwrap().0, "She has 42 pens, 106 caps and one hat.");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn nothing_but_the_edits_changes_and_answers_stay_exact(problem in problem(), seed in 0u64..1000) {
        for kind in Kind::ALL {
            let Some(found) = make(kind, &problem, seed) else { continue };
            prop_assert_eq!(undone(&problem, &found), (problem.body.clone(), problem.question.clone()), "{}", kind);
            prop_assert!(!found.edits.is_empty() && !found.reason.is_empty());
            prop_assert_eq!(found.problem.remainder, problem.remainder);
            if kind.changes_values() {
                // The stated answer is the value of the formula, to the last digit.
                let value = found.problem.expression().unwrap().value().unwrap();
                prop_assert_eq!(found.problem.gold().unwrap(), value.clone());
                let stated = found.problem.answer.strip_suffix(" (things)").unwrap().to_owned();
                prop_assert_eq!(stated, plain(&value));
            } else {
                prop_assert_eq!(found.problem.gold(), problem.gold());
                prop_assert_eq!(&found.problem.answer, &problem.answer);
            }
            // The same draw gives the same question.
            prop_assert_eq!(make(kind, &problem, seed), Some(found));
        }
    }

    #[test]
    fn no_row_is_nonsense(problem in problem(), seed in 0u64..1000) {
        let before = values(&format!("{}\n{}", problem.body, problem.question));
        for kind in [Kind::Noise, Kind::Distribution] {
            let Some(found) = make(kind, &problem, seed) else { continue };
            let expression = found.problem.expression().unwrap();
            prop_assert!(expression.is_positive_with(&mut |operand| operand.value.clone()), "{}", expression);
            prop_assert!(kind == Kind::Noise || !expression.divides());
            prop_assert!(problem.remainder == Remainder::Exact);
            // Every operand of the formula stands in the text, once.
            let after = values(&format!("{}\n{}", found.problem.body, found.problem.question));
            for operand in expression.operands() {
                prop_assert_eq!(after.iter().filter(|value| **value == operand.value).count(), 1, "{:?}", found);
                prop_assert!(!before.contains(&operand.value));
            }
        }
        for kind in [Kind::Verbosity, Kind::Extra] {
            let Some(found) = make(kind, &problem, seed) else { continue };
            let mut known = before.clone();
            known.extend(problem.gold());
            for edit in &found.edits {
                let added = match kind {
                    Kind::Verbosity => edit.to.strip_prefix(edit.from.as_str()).unwrap(),
                    _ => edit.to.as_str(),
                };
                let new = values(added);
                prop_assert!(!new.is_empty(), "{:?}", edit);
                for value in new {
                    prop_assert!(is_positive(&value) && !known.contains(&value), "{:?} repeats a number", edit);
                    known.push(value);
                }
            }
        }
    }

    #[test]
    fn words_and_decimals_keep_the_values(problem in problem(), seed in 0u64..1000) {
        if let Some(found) = make(Kind::Type, &problem, seed) {
            prop_assert_eq!(values(&found.problem.body), values(&problem.body));
            let pointed = found.edits.iter().all(|edit| edit.to == format!("{}.0", edit.from) && !edit.from.contains('.'));
            prop_assert!(pointed);
        }
        if let Some(found) = make(Kind::Language, &problem, seed) {
            for edit in &found.edits {
                // `one` alone is not read back, because it is mostly a pronoun.
                let digits: String = edit.from.chars().filter(|c| c.is_ascii_digit() || *c == '.').collect();
                let said = words_in(&edit.to);
                prop_assert!(said.len() == 1 || digits == "1", "{:?}", edit);
                if let [word] = said.as_slice() {
                    prop_assert_eq!(exact(&word.digits), exact(&digits), "{:?}", edit);
                }
            }
        }
    }

    #[test]
    fn no_text_panics(body in "\\PC{0,60}", question in "[0-9.,$%()+ -]{0,30}", formula in "[0-9+*/().-]{0,12}", seed in 0u64..9) {
        let problem = Problem {
            id: "x".into(),
            body,
            question,
            table: Some("| 5 | 2019 |".into()),
            formula: Some(formula),
            answer: "5".into(),
            remainder: Remainder::Exact,
            scale: None,
            solution_type: String::new(),
        };
        for kind in Kind::ALL {
            let _ = make(kind, &problem, seed);
            let mut random = earnest_tasks::suite::dnc::ReferenceRandom::new(seed as u32);
            let _ = earnest_tasks::suite::dnc::reference_perturb(kind, &problem, &mut random);
            let _ = earnest_tasks::suite::dnc::reference_perturb_text(kind, &problem.body, &mut random);
        }
        let _ = (earnest_tasks::suite::dnc::parse_number(&problem.body), earnest_tasks::suite::dnc::parse_equation(&problem.question));
        let _ = earnest_tasks::suite::dnc::tatqa_match("5", "percent", &problem.body.as_str().into(), "");
        let _ = earnest_tasks::suite::dnc::paper_equation(&problem.body, "5");
        let _ = earnest_tasks::suite::dnc::paper_equation(&problem.question, "5");
    }
}
