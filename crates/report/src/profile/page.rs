//! The profile as a page: limits of all skills on one screen, then what went wrong.
use earnest_tasks::counted;
use minijinja::{Value, context};

use earnest_stats::psychometric::Limit;
use earnest_tasks::suite::profile::Family;

use super::compare::label;
use super::notations::has_enough;
use super::text::{is_open, limit_text, p_text, prompt_of_page, steps_text};
use super::{
    Comparison, FormShare, LimitDifference, NotationResult, NotationVerdict, NumeracyProfile, SkillProfile,
    anatomy_page, thinking_page,
};
use crate::ReportError;
use crate::markup::{Markup, drawing, html};
use crate::page::{Frame, Sections, framed};
use crate::plot::{Figure, LimitBar, LimitPanel, LimitRow, limits};

const STYLE: &str = include_str!("page.css");

/// Renders the page of one profile, or of two side by side with their comparison. It opens no connection and needs no script.
///
/// # Errors
/// If a template fails.
pub fn page(profiles: &[&NumeracyProfile], comparison: &Comparison) -> Result<String, ReportError> {
    let labels: Vec<&str> = (0..profiles.len()).map(|index| label(profiles, index)).collect();
    let title = format!("earnest: numeracy of {}", labels.join(" and "));
    let labels: Value = labels.into_iter().collect();
    // A heading a profile where there are several; a profile without the part has none.
    let each = |part: fn(&NumeracyProfile) -> Markup| -> Markup {
        let parts = profiles.iter().map(|profile| part(profile)).collect::<Result<Vec<Value>, ReportError>>()?;
        html("each.html", context!(parts, labels => &labels))
    };
    let mut sections = Sections::default();
    let mut section = |id: &str, title: &str, lead: &str, content| sections.section(id, title, lead, content);
    section("limits", "Digit limits", "", all_limits(profiles, comparison)?);
    section(
        "prompt",
        "What the prompt costs",
        "Every form of prompt gets the same short questions first (sums, differences and products of one digit, where they are among the skills). Forms that are not shown to be worse than the best are asked more: short \
         questions of other skills, and longer ones where all is right. The profile is asked in the form with most right answers, of equals the first. Intervals are 95 %.",
        each(screening)?,
    );
    section("differences", "Differences that hold", "", held(profiles, comparison, &labels)?);
    section(
        "steps",
        "Success that falls in steps",
        "Skills marked with *: fewer than one in ten sets of answers simulated from smooth curves look as little smooth as theirs, and their share of right answers \
         stays between nearly all and nearly nothing over some lengths. Shares of right answers by length, with 95 % intervals.",
        stepped(profiles)?,
    );
    section("rising", "Success that does not fall with the length", "", rising(profiles)?);
    section(
        "anatomy",
        "What went wrong",
        "Wrong answers by the first class that explains them; lines are 95 % intervals. A class says what an answer is consistent \
         with: chance is the per cent of answers to the same questions that know nothing of the mistake, random numbers of the same form and right ones with one digit replaced.",
        each(anatomy_page::anatomy)?,
    );
    section(
        "positions",
        "Wrong digits by position",
        "Share of wrong answers with another digit at a position, aligned at the point: 1 is the units, .1 the first digit after the point. Of numbers with an exponent the \
         significand; fractions are left out.",
        each(anatomy_page::positions)?,
    );
    section(
        "notations",
        "The same numbers, written otherwise",
        "Paired by the operands with plain digits: difference of the shares of right answers with Tango's 95 % interval; bold holds after \
         Holm's adjustment. Without a difference that holds, a notation is alike if the interval is within 20 points, else it is not decided. \
         Boxes are the tokens that the model gets; <E0> is a byte of a character in several tokens.",
        each(notations)?,
    );
    section(
        "thinking",
        "Thinking budgets",
        "The same questions, the first length beyond the limit, under a cap on the tokens of an answer with its thinking; what a cap cuts off \
         mostly has no answer. Paired by question: what the largest cap gains over each, with Tango's 95 % interval; bold holds after Holm's \
         adjustment. Seconds are those of a request in its batch.",
        each(thinking_page::section)?,
    );
    section("numbers", "All numbers", "", numbers(profiles)?);
    let samples: usize = profiles.iter().map(|profile| profile.answers + profile.failed).sum();
    framed(&Frame {
        title: &title,
        heading: "numeracy profile",
        sections,
        appendix: false,
        style: STYLE,
        footer: &counted(samples, "sample"),
        tail: Value::from(""),
    })
}

/// The facts of each profile, and bars of all limits.
fn all_limits(profiles: &[&NumeracyProfile], comparison: &Comparison) -> Markup {
    let facts = |(index, profile): (usize, &&NumeracyProfile)| {
        let asked = || profile.skills.iter().filter(|skill| skill.asked > 0);
        let counts = format!(
            "{}, {}, {}, {:.0} s; {} as narrow as asked",
            counted(asked().count(), "skill"),
            counted(profile.answers, "question"),
            counted(profile.tokens as usize, "token"),
            profile.seconds,
            counted(asked().filter(|skill| skill.narrow).count(), "interval"),
        );
        context!(label => label(profiles, index), counts, prompt => prompt_of_page(profile), finished => profile.finished)
    };
    let drawn = |family: &Family| panel(*family, profiles, comparison, false).map(|figure| drawing(&figure));
    let panels: Value = Family::ALL.iter().filter_map(drawn).collect();
    let verdict = match profiles {
        [_, _] => comparison.verdict([0, 1].map(|index| label(profiles, index))),
        _ => String::new(),
    };
    let profiles: Value = profiles.iter().enumerate().map(facts).collect();
    // Commands stand between backticks.
    let unlike = comparison.unlike.as_ref().map(|text| text.split('`').collect::<Value>());
    html("limits.html", context!(profiles, verdict, unlike, panels))
}

/// Bounds of a skill's lengths.
fn range(skill: &SkillProfile) -> (usize, usize) {
    (skill.shortest, skill.longest)
}

/// A limit with the mark of one that a single number does not describe.
fn marked(limit: &Limit, skill: &SkillProfile) -> String {
    let text = limit_text(limit, range(skill));
    if skill.is_stepped() { text + "*" } else { text }
}

fn bar(series: usize, skill: &SkillProfile) -> LimitBar {
    let Some(half) = skill.half() else {
        let text = if skill.asked == 0 { "no answers" } else { "no limit: does not fall" };
        return LimitBar { series, limits: None, low: 0.0, high: 0.0, text: text.to_owned() };
    };
    // A bar would say more than is known.
    let estimate = |index: usize| {
        skill
            .limits
            .get(index)
            .filter(|limit| !is_open(limit, range(skill)) && !skill.is_late())
            .map_or(0.0, |limit| limit.estimate)
    };
    LimitBar {
        series,
        limits: Some([estimate(0), estimate(1), estimate(2)]),
        low: half.low,
        high: half.high,
        text: marked(half, skill),
    }
}

/// Bars of the limits of a family's skills, with keys or without; none without skills.
fn panel(family: Family, profiles: &[&NumeracyProfile], comparison: &Comparison, keys: bool) -> Option<Figure> {
    let mut rows: Vec<LimitRow> = Vec::new();
    let mut skills: Vec<&SkillProfile> = Vec::new();
    for skill in profiles.iter().flat_map(|profile| &profile.skills).filter(|skill| skill.family == family) {
        if !skills.iter().any(|known| known.task == skill.task) {
            skills.push(skill);
        }
    }
    for skill in skills {
        let found =
            profiles.iter().enumerate().filter_map(|(series, profile)| Some(bar(series, profile.skill(&skill.task)?)));
        let differs = comparison.holding().any(|one| one.task == skill.task);
        let lengths = (skill.shortest as f64, skill.longest as f64);
        rows.push(LimitRow { name: skill.title.clone(), lengths, bars: found.collect(), differs });
    }
    let shortest = rows.iter().map(|row| row.lengths.0).reduce(f64::min)?;
    let longest = rows.iter().map(|row| row.lengths.1).reduce(f64::max)?;
    let lengths = (shortest, longest);
    let name = format!("limits-{}", family.name());
    let series = (0..profiles.len()).map(|index| label(profiles, index).to_owned()).collect();
    // A page says once what a file says of itself.
    let title = if keys { format!("{}: digit limits", family.title()) } else { family.title().to_owned() };
    Some(limits(&LimitPanel { name, title, lengths, rows, series, keys }))
}

/// Draws the limits of every family, and thinking budgets if there are any, for files.
pub fn figures(profiles: &[&NumeracyProfile], comparison: &Comparison) -> Vec<Figure> {
    let limits = Family::ALL.into_iter().filter_map(|family| panel(family, profiles, comparison, true));
    let thinking = profiles.iter().enumerate().filter_map(|(index, profile)| {
        let number = if profiles.len() > 1 { format!("-{}", index + 1) } else { String::new() };
        thinking_page::figure(profile, &format!("thinking{number}"))
    });
    limits.chain(thinking).collect()
}

/// Skills that differ after Holm's adjustment, and what was compared how.
fn held(profiles: &[&NumeracyProfile], comparison: &Comparison, labels: &Value) -> Markup {
    let [first, _] = profiles else { return Ok(Value::from("")) };
    let row = |one: &LimitDifference| {
        let skill = first.skill(&one.task)?;
        let [mine, theirs] = one.limits.map(|limit| limit_text(&limit, range(skill)));
        let right = one.right.zip(one.pairs).map(|([mine, theirs], pairs)| format!("{mine}, {theirs} of {pairs}"));
        let difference = one.difference.zip(one.low).zip(one.high);
        Some(context!(
            title => &one.title,
            family => one.family.title(),
            limits => [mine, theirs],
            right,
            difference => difference.map(|((difference, low), high)| points([difference, low, high], false)),
            p => p_text(one.p_holm),
        ))
    };
    let holding: Value = comparison.holding().filter_map(row).collect();
    let (method, left_out) = (comparison.method(), comparison.left_out());
    let (compared, asked) = (comparison.differences.len(), comparison.pairs > 0);
    html("limit_differences.html", context!(compared, asked, method, left_out, holding, labels))
}

/// Steps of the skills that fall otherwise than in one smooth curve.
fn stepped(profiles: &[&NumeracyProfile]) -> Markup {
    let of = |(index, profile): (usize, &&NumeracyProfile)| -> Vec<Value> {
        let row = |skill: &SkillProfile| {
            let (label, family) = (label(profiles, index), skill.family.title());
            let each = skill.steps.iter().map(|step| {
                let [low, high] = [step.low, step.high].map(|share| 100.0 * share);
                let lengths =
                    if step.from == step.to { step.from.to_string() } else { format!("{}-{}", step.from, step.to) };
                format!("{lengths}: {}/{} [{low:.0}, {high:.0}]", step.right, step.asked)
            });
            let (said, each) = (steps_text(&skill.steps), each.collect::<Vec<_>>().join(", "));
            context!(label, title => &skill.title, family, said, each)
        };
        profile.skills.iter().filter(|skill| skill.falls && skill.is_stepped()).map(row).collect()
    };
    html("steps.html", context!(skills => profiles.iter().enumerate().flat_map(of).collect::<Value>()))
}

/// Accuracies by length of the skills that do not fall.
fn rising(profiles: &[&NumeracyProfile]) -> Markup {
    let of = |(index, profile): (usize, &&NumeracyProfile)| -> Vec<Value> {
        let rising = profile.skills.iter().filter(|skill| skill.asked > 0 && !skill.falls);
        let row = |skill: &SkillProfile| {
            let counts = skill.counts.iter().map(|one| format!("{}: {}/{}", one.length, one.right, one.asked));
            let (label, family) = (label(profiles, index), skill.family.title());
            context!(label, title => &skill.title, family, counts => counts.collect::<Vec<_>>().join(", "))
        };
        rising.map(row).collect()
    };
    html("rising.html", context!(skills => profiles.iter().enumerate().flat_map(of).collect::<Value>()))
}

/// A difference of shares in percentage points with its interval, for templates.
pub(super) fn points([difference, low, high]: [f64; 3], holds: bool) -> Value {
    let [difference, low, high] = [difference, low, high].map(|value| format!("{:+.0}", 100.0 * value));
    context!(difference, interval => format!("[{low}, {high}]"), holds)
}

/// Right answers by form of the prompts; nothing where one form was asked for.
fn screening(profile: &NumeracyProfile) -> Markup {
    let row = |one: &FormShare| {
        let [low, high] = [one.low, one.high].map(|end| format!("{:.0}", 100.0 * end));
        let failed = if one.failed > 0 { format!(", {} without an answer", one.failed) } else { String::new() };
        let first = format!("{}/{}{failed}", one.first_right, one.first_asked);
        let all = format!("{}/{}", one.right, one.asked);
        let (share, interval) = (format!("{:.0}", 100.0 * one.share), format!("[{low}, {high}]"));
        let asked = Some(&one.form) == profile.form.as_ref();
        context!(title => &one.title, first, share, interval, all, asked, worse => one.worse)
    };
    html("screening.html", context!(forms => profile.screening.iter().map(row).collect::<Value>()))
}

fn verdict_text(verdict: NotationVerdict) -> &'static str {
    match verdict {
        NotationVerdict::Differs => "differs",
        NotationVerdict::Alike => "alike",
        NotationVerdict::NotDecided => "not decided",
    }
}

fn notations(profile: &NumeracyProfile) -> Markup {
    let Some(plain) = profile.notations.first() else { return Ok(Value::from("")) };
    let row = |one: &NotationResult| {
        let difference = one.difference.zip(one.low).zip(one.high);
        context!(
            name => one.notation.title(),
            right => format!("{}/{}", one.right, one.asked),
            difference => difference.map(|((difference, low), high)| points([difference, low, high], one.holds)),
            verdict => one.verdict.map(verdict_text),
            tokens => &one.tokens,
            example => &one.example,
        )
    };
    let rows: Value = profile.notations.iter().map(row).collect();
    let few = !has_enough(plain);
    html("notations.html", context!(few, question => plain.question.title(), digits => plain.length, rows))
}

fn numbers(profiles: &[&NumeracyProfile]) -> Markup {
    let row = |skill: &SkillProfile| {
        let limit = |limit: &Limit| match skill.has_limit(limit) {
            true => marked(limit, skill),
            false => "no limit".to_owned(),
        };
        let right: usize = skill.counts.iter().map(|one| one.right).sum();
        let cells = [skill.asked.to_string(), right.to_string()].into_iter().chain(skill.limits.iter().map(limit));
        let (title, family) = (&skill.title, skill.family.title());
        context!(title, family, cells => cells.collect::<Vec<_>>(), narrow => skill.narrow)
    };
    let of = |profile: &&NumeracyProfile| {
        let skills: Value = profile.skills.iter().filter(|skill| skill.asked > 0).map(row).collect();
        let count = counted(profile.skills.len(), "skill");
        context!(model => &profile.model, count, run => &profile.run, skills)
    };
    html("skills.html", context!(profiles => profiles.iter().map(of).collect::<Value>()))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::{Anatomy, CapResult, ClassShare, FamilyErrors, Gain, PositionRow, TaskErrors, ThinkingResult};
    use super::*;
    use earnest_stats::psychometric::{Counted, Step};
    use earnest_tasks::anatomy::ErrorClass;
    use earnest_tasks::suite::profile::{Notation, NotationQuestion, ProfileOptions, ThinkingTask};

    const LIMITS: [Limit; 3] = [
        Limit { level: 0.9, estimate: 0.0, low: 0.0, high: 2.0 },
        Limit { level: 0.5, estimate: 5.0, low: 4.0, high: 6.0 },
        Limit { level: 0.1, estimate: 9.0, low: 7.0, high: f64::INFINITY },
    ];

    fn smallest(model: &str) -> NumeracyProfile {
        NumeracyProfile {
            format: 1,
            run: format!("run of {model}"),
            model: model.to_owned(),
            finished: true,
            answers: 0,
            tokens: 0,
            failed: 0,
            seconds: 0.0,
            form: Some("raw".to_owned()),
            screening: Vec::new(),
            skills: Vec::new(),
            anatomy: Anatomy::default(),
            notations: Vec::new(),
            thinking: Vec::new(),
            results: Vec::new(),
            unanswered: BTreeMap::new(),
            options: ProfileOptions::default(),
            source: String::new(),
            version: String::new(),
        }
    }

    fn skill(task: &str, falls: bool) -> SkillProfile {
        SkillProfile {
            task: task.to_owned(),
            family: Family::Integers,
            title: format!("<{task}>"),
            shortest: 1,
            longest: 20,
            chance: 0.0,
            form: None,
            asked: 4,
            limits: match falls {
                true => LIMITS.to_vec(),
                false => LIMITS.map(|limit| Limit { estimate: f64::INFINITY, high: f64::INFINITY, ..limit }).to_vec(),
            },
            falls,
            p_falls: 1.0,
            fits: falls && task != "mul",
            p_fits: 0.5,
            steps: vec![
                Step { from: 1, to: 1, right: 2, asked: 2, share: 1.0, low: 0.3, high: 1.0 },
                Step { from: 2, to: 3, right: 3, asked: 4, share: 0.75, low: 0.3, high: 0.85 },
            ],
            narrow: false,
            counts: vec![Counted { length: 1, right: 3, asked: 4 }],
        }
    }

    fn errors() -> Anatomy {
        let share =
            ClassShare { class: ErrorClass::Carry, count: 3, share: 0.75, low: 0.3, high: 0.95, chance: Some(0.021) };
        let cut =
            ClassShare { class: ErrorClass::Truncated, count: 1, share: 0.25, low: 0.05, high: 0.7, chance: None };
        let classes = vec![share, cut];
        let of_task = TaskErrors { task: "add".to_owned(), lengths: (1, 3), wrong: 4, classes: classes.clone() };
        let position = PositionRow { task: "add".to_owned(), positions: vec![(1, 2)], decimals: vec![(0, 1)] };
        Anatomy {
            wrong: 4,
            classes: classes.clone(),
            by_family: vec![FamilyErrors { family: Family::Integers, wrong: 4, classes }],
            by_task: vec![of_task.clone()],
            by_length: vec![of_task],
            missed: vec![0, 2],
            positions: vec![position],
        }
    }

    fn notation(notation: Notation, difference: Option<f64>, tokens: Option<Vec<String>>) -> NotationResult {
        NotationResult {
            notation,
            question: NotationQuestion::Sum,
            length: 4,
            right: 9,
            asked: 10,
            difference,
            low: difference,
            high: difference,
            p_holm: difference,
            holds: difference.is_some(),
            verdict: difference.map(|_| NotationVerdict::Differs),
            example: "1 2 + 3 4".to_owned(),
            tokens,
        }
    }

    fn thinking() -> ThinkingResult {
        let largest = CapResult {
            cap: Some(64),
            asked: 10,
            right: 8,
            accuracy: 0.8,
            low: 0.5,
            high: 0.9,
            cut: 1,
            tokens: 40.0,
            seconds: 0.5,
            right_per_thousand_tokens: Some(20.0),
            right_per_second: None,
            gain: None,
        };
        let gain = Gain { difference: 0.5, low: 0.2, high: 0.7, p_holm: 0.01, holds: true };
        let none = CapResult { cap: None, gain: Some(gain), ..largest.clone() };
        ThinkingResult { kind: ThinkingTask::Products, length: 2, caps: vec![none, largest], enough: 1 }
    }

    fn form(form: &str, right: usize) -> FormShare {
        let (title, share) = (format!("<{form}>"), right as f64 / 24.0);
        FormShare {
            form: form.to_owned(),
            title,
            right,
            asked: 24,
            first_right: right,
            first_asked: 24,
            share,
            low: share - 0.1,
            high: share + 0.1,
            failed: 0,
            worse: right < 10,
        }
    }

    fn fullest(model: &str) -> NumeracyProfile {
        NumeracyProfile {
            finished: false,
            form: Some("raw+3".to_owned()),
            screening: vec![form("chat", 6), form("raw+3", 17)],
            skills: vec![skill("add", true), skill("mul", true), skill("rev", false)],
            anatomy: errors(),
            notations: vec![
                notation(Notation::Plain, None, Some(vec!["<E0>".to_owned()])),
                notation(Notation::Words, Some(-0.25), None),
            ],
            thinking: vec![thinking()],
            ..smallest(model)
        }
    }

    const PARTS: [&str; 10] = [
        "limits",
        "prompt",
        "differences",
        "steps",
        "rising",
        "anatomy",
        "positions",
        "notations",
        "thinking",
        "numbers",
    ];

    fn parts(html: &str) -> Vec<&'static str> {
        PARTS.into_iter().filter(|part| html.contains(&format!("<section id=\"{part}\">"))).collect()
    }

    #[test]
    fn a_profile_without_answers_has_a_page() {
        let html = page(&[&smallest("M")], &Comparison::default()).unwrap();
        assert_eq!(parts(&html), ["limits", "anatomy", "numbers"]);
        assert!(html.contains("<p>No wrong answer.</p>") && !html.contains("<h3>"), "{html}");
    }

    #[test]
    fn two_full_profiles_have_every_part_and_their_texts_are_no_markup() {
        let limits = [LIMITS[1], LIMITS[0]];
        let (task, title) = ("add".to_owned(), "<add>".to_owned());
        let differs = LimitDifference {
            task,
            family: Family::Integers,
            title,
            limits,
            p: 0.00001,
            p_holm: 0.00001,
            holds: true,
            better: Some(0),
            p_profiles: 0.01,
            p_pairs: Some(0.001),
            pairs: Some(24),
            right: Some([20, 2]),
            difference: Some(0.75),
            low: Some(0.5),
            high: Some(0.875),
        };
        let alone = LimitDifference { pairs: None, right: None, difference: None, better: Some(1), ..differs.clone() };
        let unlike = Some("Unlike <A>: `earnest profile --model <A>` asks.".to_owned());
        let differences = vec![differs, alone];
        let comparison = Comparison { differences, pairs: 24, floor: 1, unlike, ..Comparison::default() };
        let html = page(&[&fullest("<A>"), &fullest("B")], &comparison).unwrap();
        assert_eq!(parts(&html), PARTS);
        for part in [
            "<b>&lt;A&gt;</b>: Asked as raw text with 3 worked examples. 3 skills, 0 questions, 0 tokens, 0 s; 0 intervals as narrow as asked, <b>not finished",
            "<th>&lt;chat&gt;</th><td class=\"num\">6/24</td><td class=\"num\">25 <small>[15, 35]</small></td><td class=\"num\">6/24</td><td>worse</td>",
            "<td class=\"num\">17/24</td><td class=\"num\">71 <small>[61, 81]</small></td><td class=\"num\">17/24</td><td>asked</td>",
            "≠ marks differences that hold after Holm's adjustment.</p>",
            "<p><b>Asked in unlike prompts, &lt;A&gt; is better in 1 skill, B in 1.</b></p>",
            "<p>Unlike &lt;A&gt;: <code>earnest profile --model &lt;A&gt;</code> asks.</p>",
            "<p>Both were asked 24 questions with further numbers, in 1 skill that",
            "<p>1 skill is not compared: 1 below the shortest length in both.</p>",
            "<td class=\"num\">5.0 (4-6)</td><td class=\"num\">&lt;1 (&lt;1-2)</td><td class=\"num\">20, 2 of 24</td><td class=\"num\">+75 <small>[+50, +88]</small></td><td class=\"num\">&lt;0.0001</td>",
            "<td class=\"num\">not asked</td><td class=\"num\"></td>",
            "<li><b>&lt;A&gt;</b> &lt;rev&gt; <small>Integers (NUPA)</small>: right by length 1: 3/4</li>",
            "<li><b>B</b> &lt;mul&gt; <small>Integers (NUPA)</small>: 100 % to 1 digit, 75 % beyond <small>1: 2/2 [30, 100], 2-3: 3/4 [30, 85]</small></li>",
            "<td class=\"num\">5.0 (4-6)*</td>",
            "<h3>B</h3><div class=\"anatomy\"><figure>",
            "<p>First missed carry or borrow, by position from the right: 2: 2.</p>",
            "<th>&lt;add&gt; <small>Integers (NUPA)</small>, 1-3</th><td class=\"num\">4</td>",
            "<th class=\"num\">Integers (NUPA) <small>4 wrong</small></th><th class=\"num\">all <small>4 wrong</small></th>",
            "title=\"carry missed: 3 of 4, 75 % (30-95), by chance 2 %\">75 <small>30-95; chance 2</small></td>",
            "title=\"cut by the token budget: 1 of 4, 25 % (5-70)\">25 <small>5-70</small></td>",
            "\">carry missed 75 <small>30-95; chance 2</small></span> <span class=\"shaded\"",
            "<td class=\"tokens\"><code>&lt;E0&gt;</code><wbr></td>",
            "<span class=\"holds\">-25</span> <small>[-25, -25]</small></td><td>differs</td><td class=\"num\"></td><td class=\"tokens\">1 2 + 3 4</td>",
            "<span class=\"holds\">+50</span> <small>[+20, +70]</small>",
            "<th>64 <small>enough</small></th><td class=\"num\">80 <small>[50, 90]</small></td><td class=\"num\">40</td>",
            "<td class=\"num\">no limit</td><td>budget spent</td>",
        ] {
            assert!(html.contains(part), "{part} is missing in {html}");
        }
    }
}
