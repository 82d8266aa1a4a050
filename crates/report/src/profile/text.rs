//! The profile as text for a terminal: one screen of at most 40 lines with the page and the next commands.
use earnest_tasks::{agreeing, counted};

use earnest_stats::psychometric::{Limit, Step};
use earnest_tasks::anatomy::ErrorClass;
use earnest_tasks::suite::profile::{Family, PromptForm, cap_text};

use super::compare::label;
use super::notations::has_enough;
use super::{Comparison, LimitDifference, NotationResult, NotationVerdict, NumeracyProfile, SkillProfile};
use crate::{Table, text_width, wrap};
use earnest_results::p_decimals;

/// Classes of errors that a text names that is not brief.
const CLASSES: usize = 3;

/// Lines of the text; the page and the next commands make them 40.
const HEIGHT: usize = 37;

/// Columns from which the next commands take a line each.
const WIDE_SCREEN: usize = 100;

/// Skills whose steps a text has that is not brief.
const STEPPED: usize = 3;

/// Lines of a comparison's table.
const LINES: usize = 30;

/// A length: `6.3`, `<1` or `>100`.
fn length(value: f64, skill: (usize, usize)) -> String {
    match value {
        value if value < skill.0 as f64 => format!("<{}", skill.0),
        value if !value.is_finite() => format!(">{}", skill.1),
        value if value < 9.95 => format!("{value:.1}"),
        value => format!("{value:.0}"),
    }
}

/// Sign in place of a limit that is not known.
const UNKNOWN: &str = "?";

/// A limit with its interval: `6.3 (5-7)`, or `? (<1-38)` where the interval says that the number is not known.
pub fn limit_text(limit: &Limit, lengths: (usize, usize)) -> String {
    let estimate = if is_open(limit, lengths) { UNKNOWN.to_owned() } else { length(limit.estimate, lengths) };
    // Ends are mostly lengths that were asked.
    let [low, high] = [limit.low, limit.high].map(|value| {
        let text = length(value, lengths);
        text.strip_suffix(".0").map_or_else(|| text.clone(), str::to_owned)
    });
    let is_outside = estimate.starts_with(['<', '>']);
    // Nothing is known but that it is outside the range.
    if is_outside && estimate == low && low == high { estimate } else { format!("{estimate} ({low}-{high})") }
}

/// A p value with four digits after the point.
pub(super) fn p_text(p: f64) -> String {
    if p < 0.0001 { "<0.0001".to_owned() } else { p_decimals(p, 4) }
}

/// Shares of right answers by length: `95 % to 3 digits, 60 % to 12, 0 % beyond`.
pub(super) fn steps_text(steps: &[Step]) -> String {
    let last = steps.len().saturating_sub(1);
    let part = |(index, step): (usize, &Step)| {
        let share = format!("{:.0} %", 100.0 * step.share);
        match index {
            0 if last == 0 => format!("{share} at every length"),
            0 => format!("{share} to {}", counted(step.to, "digit")),
            index if index == last => format!("{share} beyond"),
            _ => format!("{share} to {}", step.to),
        }
    };
    steps.iter().enumerate().map(part).collect::<Vec<_>>().join(", ")
}

/// Mark of a limit that a single number does not describe.
fn mark(skill: &SkillProfile) -> &'static str {
    if skill.is_stepped() { "*" } else { "" }
}

fn cell(skill: &SkillProfile) -> String {
    match skill.half() {
        Some(_) if skill.is_late() => UNKNOWN.to_owned(),
        Some(limit) => limit_text(limit, (skill.shortest, skill.longest)) + mark(skill),
        None if skill.asked == 0 => "no answers".to_owned(),
        None => "no limit".to_owned(),
    }
}

/// Ratio of the ends of an interval from which its estimate says nothing.
const WIDE: f64 = 8.0;

/// True if the interval goes from below the shortest length to lengths many times as long: a number would say more than is known.
pub(super) fn is_open(limit: &Limit, lengths: (usize, usize)) -> bool {
    let shortest = lengths.0 as f64;
    limit.low < shortest && limit.high >= WIDE * shortest
}

/// Degree of folding: the skills and remarks that have no line of their own.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Fold {
    /// Skills below their shortest length without doubt.
    Sure,
    /// Skills whose estimate is below their shortest length; remarks are one paragraph.
    Likely,
    /// As `Likely`, with the one most frequent class of errors, and without what the page says of intervals and marks.
    Brief,
    /// As `Brief`, and limits have no intervals.
    Intervals,
}

impl Fold {
    fn is_brief(self) -> bool {
        matches!(self, Fold::Brief | Fold::Intervals)
    }

    /// Skills whose steps the text has.
    fn stepped(self) -> usize {
        if self.is_brief() { 0 } else { STEPPED }
    }

    /// Classes of errors that the text names.
    fn classes(self) -> usize {
        if self.is_brief() { 1 } else { CLASSES }
    }

    fn hides(self, skill: &SkillProfile) -> bool {
        let below = |limit: &Limit| if self == Fold::Sure { limit.high } else { limit.estimate };
        let is_known = |limit: &&Limit| !is_open(limit, (skill.shortest, skill.longest)) && !skill.is_late();
        // An estimate just below the shortest length is not "below" for a reader who does not see its interval.
        if self != Fold::Sure && skill.is_half_right_at_first() {
            return false;
        }
        skill.half().filter(is_known).is_some_and(|limit| below(limit) < skill.shortest as f64)
    }
}

/// Renders the profile in at most `width` columns: with as much as fits a screen.
pub fn text(profile: &NumeracyProfile, width: usize) -> String {
    let mut texts = [Fold::Sure, Fold::Likely, Fold::Brief].into_iter().map(|fold| folded(profile, width, fold));
    let height = HEIGHT - usize::from(width < WIDE_SCREEN);
    let fitting = texts.find(|text| text.lines().count() <= height);
    fitting.unwrap_or_else(|| folded(profile, width, Fold::Intervals))
}

fn folded(profile: &NumeracyProfile, width: usize, fold: Fold) -> String {
    let mut text = String::new();
    let finished = if profile.finished { "" } else { " (unfinished)" };
    let asked: Vec<&SkillProfile> = profile.skills.iter().filter(|skill| skill.asked > 0).collect();
    let heading = format!(
        "Numeracy profile of {}{finished}: {}, {}, {:.0} s",
        profile.model,
        counted(profile.answers, "question"),
        counted(profile.tokens as usize, "token"),
        profile.seconds
    );
    text += &wrap(&heading, width, "");
    text += &wrap(&prompt(profile), width, "");
    let (mut rows, mut tasks): (Vec<String>, Vec<String>) = Default::default();
    let tables = nupa(&asked, width, fold, &mut rows) + &bench(&asked, width, fold, &mut tasks);
    if !asked.is_empty() {
        text += &wrap(&meaning(&asked, &tables), width, "");
    }
    text += &tables;
    let words = asked.iter().filter(|skill| matches!(skill.family, Family::WordProblems | Family::Text));
    let limit = if fold == Fold::Intervals { estimate } else { cell };
    let words: Vec<String> =
        words.map(|skill| format!("{}{} {}", name(skill), of_chance(skill), limit(skill))).collect();
    if !words.is_empty() {
        text += &wrap(&format!("Words: {}", words.join(", ")), width, "");
    }
    // The two suites have tasks of the same names.
    let hidden =
        [("NUPA", rows, 10), ("Arithmetic-Bench", tasks, 5)].into_iter().filter(|(_, names, _)| !names.is_empty());
    let hidden: Vec<String> = hidden.map(|(suite, names, most)| format!("{suite} {}", listed(&names, most))).collect();
    if !hidden.is_empty() {
        let sure = if fold == Fold::Sure {
            "Below the shortest length throughout"
        } else {
            "Probably below the shortest length"
        };
        text += &wrap(&format!("{sure}: {}.", hidden.join("; ")), width, "");
    }
    let mut sentences: Vec<String> = stepped(&asked, fold).into_iter().collect();
    if asked.iter().any(|skill| skill.half().is_none()) {
        sentences.push("No limit: success does not fall with the length; the page has it by length.".to_owned());
    }
    let wide = asked.iter().filter(|skill| !skill.narrow).count();
    let mut remarks = Vec::new();
    if wide > 0 && profile.finished && !fold.is_brief() {
        remarks.push(format!(
            "{wide} of {} spent {} questions before the interval was narrow",
            counted(asked.len(), "skill"),
            agreeing(wide, "its", "their")
        ));
    }
    if profile.failed > 0 {
        remarks.push(format!("{} without an answer", counted(profile.failed, "question")));
    }
    if !remarks.is_empty() {
        sentences.push(format!("{}.", remarks.join("; ")));
    }
    if !asked.is_empty() {
        sentences.push(errors(profile, fold.classes()));
    }
    sentences.extend(notations(profile));
    for found in &profile.thinking {
        let shares: Vec<String> = found
            .caps
            .iter()
            .map(|row| format!("{} {:.0} % ({:.0})", cap_text(row.cap), 100.0 * row.accuracy, row.tokens))
            .collect();
        sentences.push(format!(
            "Thinking, {} by cap (tokens used): {}; {}.",
            found.name(),
            shares.join(", "),
            found.verdict()
        ));
    }
    let paragraphs = if fold == Fold::Sure { sentences } else { vec![sentences.join(" ")] };
    text.extend(paragraphs.iter().filter(|one| !one.is_empty()).map(|one| wrap(one, width, "")));
    text
}

/// Meaning of the mark: the steps of the first skills that have it and that the text shows, then those that do not fall.
fn stepped(skills: &[&SkillProfile], fold: Fold) -> Option<String> {
    let marked = skills.iter().filter(|skill| skill.is_stepped() && skill.half().is_some() && !fold.hides(skill));
    let (falling, rising): (Vec<&&SkillProfile>, Vec<&&SkillProfile>) = marked.partition(|skill| skill.falls);
    let mut parts = Vec::new();
    if !falling.is_empty() {
        let said = |skill: &&&SkillProfile| format!("{} {}", titled(skill), steps_text(&skill.steps));
        let count = fold.stepped();
        let shown: Vec<String> = falling.iter().take(count).map(said).collect();
        let rest = match falling.len().saturating_sub(count) {
            0 => String::new(),
            _ if shown.is_empty() => {
                let names: Vec<String> = falling.iter().map(|skill| titled(skill)).collect();
                format!("{}; the page has them", listed(&names, 4))
            }
            more => format!("; the page has {more} more"),
        };
        parts.push(format!(
            "Success seems to change in steps, which no single number says: {}{rest}.",
            shown.join("; ")
        ));
    }
    if !rising.is_empty() {
        let names: Vec<String> = rising.into_iter().map(|skill| titled(skill)).collect();
        parts.push(format!("Success does not fall with the length: {}; the page has it by length.", listed(&names, 4)));
    }
    (!parts.is_empty()).then(|| format!("* {}", parts.join(" ")))
}

/// Chance from which the meaning of a limit names skills: half of the answers are less than half way to certainty.
const HIGH: f64 = 0.5;

/// Meaning of the limits in the tables, and the skills for which chance makes it another share.
fn meaning(skills: &[&SkillProfile], tables: &str) -> String {
    // By chance, the names without what follows the first word (`max, min`), of skills whose chance is that of one notation alone with it.
    let mut others: Vec<(f64, Vec<String>)> = Vec::new();
    for skill in skills.iter().filter(|skill| skill.chance >= HIGH) {
        let is_of_one = skills.iter().any(|other| other.title == skill.title && other.chance != skill.chance);
        let of = if is_of_one { format!("{} ", skill.family.name().trim_end_matches('s')) } else { String::new() };
        let name = of + skill.title.split(' ').next().unwrap_or_default();
        match others.iter_mut().find(|(chance, _)| *chance == skill.chance) {
            Some((_, names)) if names.contains(&name) => {}
            Some((_, names)) => names.push(name),
            None => others.push((skill.chance, vec![name])),
        }
    }
    let others: Vec<String> =
        others.iter().map(|(chance, names)| format!("{} {:.0} %", names.join(", "), half_way(*chance))).collect();
    let others = if others.is_empty() { String::new() } else { format!(" ({})", others.join(", ")) };
    let intervals = if tables.contains(" (") { ", 95 % intervals" } else { "; the page has 95 % intervals" };
    let unknown = if tables.contains(" ?") { ", ? unknown" } else { "" };
    format!("Digits up to which half is right{others}{intervals}{unknown}:")
}

/// The share that a limit of a skill in words means, where chance makes it another one than half.
fn of_chance(skill: &SkillProfile) -> String {
    if skill.chance > 0.0 { format!(" ({:.0} %)", half_way(skill.chance)) } else { String::new() }
}

/// Per cent of right answers half way from chance to certainty.
fn half_way(chance: f64) -> f64 {
    50.0 * (1.0 + chance)
}

/// Form of the prompts, and right answers to the screening in each, the one that is asked first.
pub(super) fn prompt(profile: &NumeracyProfile) -> String {
    let first = |one: &super::FormShare| {
        let failed = match one.failed {
            0 => String::new(),
            count if count == one.first_asked => " (no answers)".to_owned(),
            count => format!(" ({count} without an answer)"),
        };
        format!("{} {}/{}{failed}", one.form, one.first_right, one.first_asked)
    };
    let Some(form) = profile.asked_form() else {
        let found: Vec<String> = profile.screening.iter().map(first).collect();
        return match found.is_empty() {
            true => "The screening of prompts is not over.".to_owned(),
            false => format!("The screening of prompts is not over: {} right.", found.join(", ")),
        };
    };
    if profile.screening.is_empty() {
        return format!("Asked {}; no other form of prompts was tried.", form.title());
    }
    if profile.screening.iter().all(|one| one.right == 0) {
        return format!("Asked {}: no form of prompts had a short question right.", form.title());
    }
    let mut forms: Vec<&super::FormShare> = profile.screening.iter().collect();
    forms.sort_by_key(|one| (Some(&one.form) != profile.form.as_ref(), std::cmp::Reverse(one.right)));
    let shares: Vec<String> = forms.iter().map(|one| first(one)).collect();
    let more = forms.iter().filter(|one| one.asked > one.first_asked);
    let more: Vec<String> = more.map(|one| format!("{} {}/{}", one.form, one.right, one.asked)).collect();
    let more = if more.is_empty() { String::new() } else { format!("; of all asked: {}", more.join(", ")) };
    let examples = forms.iter().filter_map(|one| one.form.parse::<PromptForm>().ok()).map(|form| form.shots).max();
    let examples = match examples {
        None | Some(0) => String::new(),
        Some(count) => format!(" (+{count}: examples)"),
    };
    format!("{} Short questions right: {}{examples}{more}.", chosen(profile, &form), shares.join(", "))
}

/// Form of the prompts for the page, which has the right answers to the screening in a section of its own.
pub(super) fn prompt_of_page(profile: &NumeracyProfile) -> String {
    match profile.asked_form() {
        Some(form) if profile.screening.iter().any(|one| one.right > 0) => chosen(profile, &form),
        _ => prompt(profile),
    }
}

/// Skills that are asked in a form of their own and are named.
const OWN_FORM: usize = 4;

/// The form that is asked, those that it is not shown to be better than, and the skills that are asked in another one.
fn chosen(profile: &NumeracyProfile, form: &PromptForm) -> String {
    let others = profile.screening.iter().filter(|one| Some(&one.form) != profile.form.as_ref() && !one.worse);
    let tied: Vec<&str> = others.map(|one| one.form.as_str()).collect();
    let tied =
        if tied.is_empty() { String::new() } else { format!(", not shown to be better than {}", tied.join(", ")) };
    let own: Vec<&SkillProfile> = profile.skills.iter().filter(|skill| skill.form.is_some()).collect();
    let own = match own.first().and_then(|skill| skill.form.as_ref()) {
        None => String::new(),
        Some(other) => {
            let names: Vec<String> = own.iter().map(|skill| name(skill)).collect();
            format!(
                "; {} {other}, which had more of a few questions right there: {}",
                counted(own.len(), "skill"),
                listed(&names, OWN_FORM)
            )
        }
    };
    format!("Asked {}{tied}{own}.", form.title())
}

/// Verdicts on notations: differences that hold, then those that are alike, then those that are not decided.
fn notations(profile: &NumeracyProfile) -> Option<String> {
    let plain = profile.notations.first()?;
    let share = |right: usize, asked: usize| 100.0 * right as f64 / asked.max(1) as f64;
    let name = |one: &NotationResult| one.notation.title().to_owned();
    // The notations of a difference stand together, the largest loss first.
    let mut differences: Vec<(i64, Vec<String>)> = Vec::new();
    let differing = profile.notations.iter().filter(|one| one.verdict == Some(NotationVerdict::Differs));
    let (lost, differing): (Vec<_>, Vec<_>) = differing.partition(|one| one.right == 0);
    for one in differing {
        let points = (100.0 * one.difference.unwrap_or_default()).round() as i64;
        match differences.iter_mut().find(|(known, _)| *known == points) {
            Some((_, names)) => names.push(name(one)),
            None => differences.push((points, vec![name(one)])),
        }
    }
    differences.sort_by_key(|(points, _)| *points);
    let mut parts: Vec<String> = Vec::new();
    if !lost.is_empty() {
        parts.push(format!("none right in {}", lost.into_iter().map(name).collect::<Vec<_>>().join(", ")));
    }
    parts.extend(differences.iter().map(|(points, names)| format!("{} {points:+} points", names.join(", "))));
    let of = |verdict: NotationVerdict| -> Vec<String> {
        profile.notations.iter().filter(|one| one.verdict == Some(verdict)).map(name).collect()
    };
    let (alike, open) = (of(NotationVerdict::Alike), of(NotationVerdict::NotDecided));
    if !alike.is_empty() {
        parts.push(format!("no loss shown, and none of 20 points, in {}", alike.join(", ")));
    }
    if !open.is_empty() && has_enough(plain) {
        parts.push(format!("{} not decided", open.join(", ")));
    } else if !open.is_empty() {
        let which = if parts.is_empty() { "" } else { " about the rest" };
        parts.push(format!("too little is right to decide{which}"));
    }
    Some(format!(
        "Notations: {} of {} digits are {:.0} % right in plain digits; others: {}.",
        plain.question.title(),
        plain.length,
        share(plain.right, plain.asked),
        parts.join("; ")
    ))
}

/// The most frequent classes of wrong answers, and the share that fits none.
fn errors(profile: &NumeracyProfile, most: usize) -> String {
    let anatomy = &profile.anatomy;
    if anatomy.wrong == 0 {
        return "No wrong answer.".to_owned();
    }
    let share = |share: &super::ClassShare| {
        let [value, low, high] = [share.share, share.low, share.high].map(|part| 100.0 * part);
        // Of what fits no class, chance would read as if it were to be expected.
        let chance = share.chance.filter(|_| share.class != ErrorClass::Other);
        let chance = chance.map_or_else(String::new, |chance| format!("; {:.0} by chance", 100.0 * chance));
        format!("{} {value:.0} % ({low:.0}-{high:.0}{chance})", share.class.title())
    };
    let (other, classes): (Vec<_>, Vec<_>) = anatomy.classes.iter().partition(|one| one.class == ErrorClass::Other);
    let shown: Vec<String> = classes.into_iter().take(most).chain(other).map(share).collect();
    format!("Of {}: {}.", counted(anatomy.wrong, "wrong answer"), shown.join(", "))
}

/// NUPA's notations, by the headings of its table.
const NOTATIONS: [(Family, &str); 4] = [
    (Family::Integers, "integers"),
    (Family::Floats, "decimals"),
    (Family::Fractions, "fractions"),
    (Family::Scientific, "scientific"),
];

/// Name of a skill in a list of all.
pub(super) fn name(skill: &SkillProfile) -> String {
    match skill.family {
        Family::Integers | Family::Floats | Family::Fractions | Family::Scientific => {
            let of = NOTATIONS.iter().find(|(family, _)| *family == skill.family).map_or("", |(_, title)| title);
            format!("{} ({of})", skill.title)
        }
        Family::ArithmeticBench => skill.task.clone(),
        Family::WordProblems => "word problems".to_owned(),
        Family::Text => skill.title.clone(),
    }
}

/// Name of a skill where it stands alone: the two suites have tasks of the same names.
fn titled(skill: &SkillProfile) -> String {
    match skill.family {
        Family::ArithmeticBench => format!("{} (Arithmetic-Bench)", skill.task),
        _ => name(skill),
    }
}

/// A list of names; one that is longer than `most` is cut.
pub(super) fn listed(names: &[String], most: usize) -> String {
    let more = names.len().saturating_sub(most);
    let shown = names[..names.len().min(most)].join(", ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

/// The limit of a skill without its interval.
fn estimate(skill: &SkillProfile) -> String {
    let text = cell(skill);
    text.split_once(" (").map_or(text.clone(), |(estimate, _)| format!("{estimate}{}", mark(skill)))
}

/// NUPA's tasks, without the intervals where they do not fit.
fn nupa(skills: &[&SkillProfile], width: usize, fold: Fold, hidden: &mut Vec<String>) -> String {
    let mut below = Vec::new();
    let mut table = nupa_table(skills, cell, fold, &mut below);
    if fold == Fold::Intervals || table.lines().any(|line| text_width(line) > width) {
        table = nupa_table(skills, estimate, fold, &mut Vec::new());
    }
    hidden.extend(below);
    table
}

/// A row an operation, a column a notation. Rows where all is below the range are left out, and their names added to `hidden`.
fn nupa_table(
    skills: &[&SkillProfile],
    shown: impl Fn(&SkillProfile) -> String,
    fold: Fold,
    hidden: &mut Vec<String>,
) -> String {
    let of = |family: Family| skills.iter().filter(move |skill| skill.family == family);
    let mut titles: Vec<&str> = Vec::new();
    for skill in NOTATIONS.iter().flat_map(|(family, _)| of(*family)) {
        if !titles.contains(&skill.title.as_str()) {
            titles.push(&skill.title);
        }
    }
    let columns: Vec<(Family, &str)> =
        NOTATIONS.into_iter().filter(|(family, _)| of(*family).next().is_some()).collect();
    // A row for the headings: a rule would cost a line.
    let mut table = Table::without_headings(columns.len() + 1);
    table
        .row(std::iter::once("NUPA:".to_owned()).chain(columns.iter().map(|(_, title)| (*title).to_owned())).collect());
    let mut rows = 0;
    for title in titles {
        let row: Vec<Option<&&SkillProfile>> =
            columns.iter().map(|(family, _)| of(*family).find(|skill| skill.title == title)).collect();
        if row.iter().flatten().all(|skill| fold.hides(skill)) {
            hidden.push(title.to_owned());
            continue;
        }
        rows += 1;
        let cells = row.into_iter().map(|skill| skill.map_or_else(String::new, |skill| shown(skill)));
        table.row(std::iter::once(title.to_owned()).chain(cells).collect());
    }
    if rows > 0 { table.render() } else { String::new() }
}

/// Columns below which limits stand without their intervals, so that the profile stays one screen.
const NARROW: usize = 80;

/// The tasks of Arithmetic-Bench: as many beside each other as fit.
fn bench(skills: &[&SkillProfile], width: usize, fold: Fold, hidden: &mut Vec<String>) -> String {
    let of = skills.iter().filter(|skill| skill.family == Family::ArithmeticBench);
    let (floor, shown): (Vec<&&SkillProfile>, Vec<&&SkillProfile>) = of.partition(|skill| fold.hides(skill));
    hidden.extend(floor.into_iter().map(|skill| name(skill)));
    let limit = if width < NARROW || fold == Fold::Intervals { estimate } else { cell };
    let entries: Vec<String> = shown.into_iter().map(|skill| format!("{} {}", name(skill), limit(skill))).collect();
    let Some(widest) = entries.iter().map(|entry| text_width(entry)).max() else { return String::new() };
    let columns = ((width + 2) / (widest + 2)).clamp(1, 5);
    let mut text = String::from("Arithmetic-Bench:\n");
    for line in entries.chunks(columns) {
        let cells: Vec<String> = line.iter().map(|entry| format!("{entry:<widest$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// The table of differences that hold, with the names of the profiles as headings, or with A and B (and true) where they have no room.
fn held(names: [&str; 2], rows: &[Vec<String>], width: usize) -> (String, bool) {
    let is_asked = rows.iter().any(|row| row.len() > 4);
    let table = |names: [&str; 2]| {
        let asked = is_asked.then_some("right, shared");
        let mut table = Table::with_left(1, ["skill", names[0], names[1]].into_iter().chain(asked).chain(["p (Holm)"]));
        rows.iter().for_each(|row| table.row(row.clone()));
        table
    };
    let named = table(names);
    match named.width() <= width {
        true => (named.render(), false),
        false => (table(["A", "B"]).render_within(width), true),
    }
}

/// Cells of a difference: the skill, both limits, right answers to shared questions where any skill has some, and p.
fn difference_row(one: &LimitDifference, profile: &NumeracyProfile, is_asked: bool) -> Option<Vec<String>> {
    let skill = profile.skill(&one.task)?;
    let [first, second] = one.limits.map(|limit| limit_text(&limit, (skill.shortest, skill.longest)));
    let right = one.right.zip(one.pairs).map(|([mine, theirs], pairs)| format!("{mine}, {theirs} of {pairs}"));
    let right = is_asked.then(|| right.unwrap_or_else(|| "not asked".to_owned()));
    // The verdict counts those that differ without a direction.
    let mark = if one.better.is_none() { " ~" } else { "" };
    Some([name(skill) + mark, first, second].into_iter().chain(right).chain([p_text(one.p_holm)]).collect())
}

/// Renders a comparison: the verdict, the differences that hold, and how they were found.
pub fn comparison_text(profiles: [&NumeracyProfile; 2], comparison: &Comparison, width: usize) -> String {
    let names = [0, 1].map(|index| label(&profiles, index));
    let is_asked = comparison.pairs > 0;
    let holding = comparison.holding().take(LINES);
    let rows: Vec<Vec<String>> = holding.filter_map(|one| difference_row(one, profiles[0], is_asked)).collect();
    let (table, lettered) = held(names, &rows, width);
    let letters = if lettered && !rows.is_empty() { [" (A)", " (B)"] } else { ["", ""] };
    let said = [0, 1].map(|index| {
        let unfinished = if profiles[index].finished { "" } else { " (unfinished)" };
        format!("{}{}{unfinished}", names[index], letters[index])
    });
    let mut text = wrap(&comparison.verdict([&said[0], &said[1]]), width, "");
    text.extend(comparison.unlike.iter().map(|unlike| wrap(unlike, width, "")));
    if !rows.is_empty() {
        text += "\n50 % limits in digits:\n";
        text += &table;
        if table.contains(" ~ ") {
            text += &wrap("~ They differ, but the intervals overlap, so that no direction is shown.", width, "");
        }
    }
    let more = comparison.holding().count().saturating_sub(LINES);
    if more > 0 {
        let differences = counted(more, "more difference");
        text +=
            &wrap(&format!("{differences} {}; the page has all of them.", agreeing(more, "holds", "hold")), width, "");
    }
    if !comparison.differences.is_empty() {
        text.push('\n');
        text += &wrap(&comparison.method(), width, "");
    }
    text.extend(comparison.left_out().map(|left_out| wrap(&left_out, width, "")));
    text
}

#[cfg(test)]
mod tests {
    use super::super::comparison;
    use super::super::document::tests::measured;
    use super::*;

    #[test]
    fn limits_are_short() {
        let limit = |estimate, low, high| limit_text(&Limit { level: 0.5, estimate, low, high }, (1, 20));
        assert_eq!(limit(6.32, 5.44, 12.4), "6.3 (5.4-12)");
        assert_eq!(limit(6.0, 5.0, 7.0), "6.0 (5-7)");
        assert_eq!(limit(6.0, 6.0, 6.0), "6.0 (6-6)");
        assert_eq!(limit(0.0, 0.0, 0.0), "<1");
        assert_eq!(limit(0.0, 0.0, 1.5), "<1 (<1-1.5)");
        assert_eq!(limit(f64::INFINITY, 18.0, f64::INFINITY), ">20 (18->20)");
    }

    #[test]
    fn steps_are_said_from_the_shortest_length_on() {
        let step = |from, to, share| Step { from, to, right: 0, asked: 1, share, low: 0.0, high: 1.0 };
        let plateau = [step(1, 3, 0.95), step(4, 12, 0.6), step(13, 19, 0.0)];
        assert_eq!(steps_text(&plateau), "95 % to 3 digits, 60 % to 12, 0 % beyond");
        assert_eq!(steps_text(&[step(1, 1, 1.0), step(2, 20, 0.1)]), "100 % to 1 digit, 10 % beyond");
        assert_eq!(steps_text(&[step(1, 20, 0.4)]), "40 % at every length");
    }

    #[test]
    fn limits_of_other_shapes_are_marked_and_explained() {
        let step = |from, to, share| {
            let (low, high) = (f64::max(share - 0.2, 0.0), f64::min(share + 0.2, 1.0));
            Step { from, to, right: 3, asked: 6, share, low, high }
        };
        let skill = |task: &str, fits| SkillProfile {
            task: task.to_owned(),
            family: Family::ArithmeticBench,
            title: task.to_owned(),
            shortest: 1,
            longest: 20,
            chance: 0.0,
            form: None,
            asked: 48,
            limits: vec![Limit { level: 0.5, estimate: 5.0, low: 4.0, high: 6.5 }; 3],
            falls: true,
            fits,
            p_falls: 1.0,
            p_fits: if fits { 0.6 } else { 0.01 },
            steps: if fits { Vec::new() } else { vec![step(1, 3, 0.95), step(4, 12, 0.6), step(13, 20, 0.0)] },
            narrow: true,
            counts: Vec::new(),
        };
        let skills: Vec<SkillProfile> =
            ["add", "sub", "mul", "copy", "rev"].iter().map(|task| skill(task, *task == "add")).collect();
        let shown: Vec<&SkillProfile> = skills.iter().collect();
        assert_eq!((cell(shown[0]), cell(shown[1])), ("5.0 (4-6.5)".to_owned(), "5.0 (4-6.5)*".to_owned()));
        assert_eq!(estimate(shown[1]), "5.0*");
        let said = stepped(&shown, Fold::Sure).unwrap();
        assert!(said.contains("says: sub (Arithmetic-Bench) 95 % to 3 digits, 60 % to 12, 0 % beyond; mul "), "{said}");
        assert!(said.ends_with("; the page has 1 more."), "{said}");
        assert_eq!(stepped(&shown[..1], Fold::Sure), None);
        // A share between nearly all and nearly nothing may be chance where its interval is not.
        let of = |steps: &[Step]| SkillProfile { steps: steps.to_vec(), ..skills[1].clone() };
        let (all, none) = (step(1, 3, 0.95), step(13, 20, 0.0));
        assert_eq!(mark(&of(&[all, Step { high: 0.95, ..step(4, 12, 0.6) }, none])), "");
        assert_eq!(mark(&of(&[all, step(4, 12, 0.6), none])), "*");
        // One limit describes a sharp end, after lapses too.
        assert_eq!(mark(&of(&[step(1, 12, 0.6), none])), "");
        // What grows to the end has no limit; what grows and falls for good has one.
        let rising = |estimate| SkillProfile {
            falls: false,
            limits: vec![Limit { level: 0.5, estimate, low: 7.0, high: f64::INFINITY }; 3],
            ..skill("box", false)
        };
        assert_eq!((cell(&rising(f64::INFINITY)), cell(&rising(9.0))), ("no limit".into(), "9.0 (7->20)*".into()));
        let both = [shown[1], &rising(9.0)];
        let said = stepped(&both, Fold::Sure).unwrap();
        assert!(
            said.ends_with(
                " Success does not fall with the length: box (Arithmetic-Bench); the page has it by length."
            ),
            "{said}"
        );
        for fold in [Fold::Brief, Fold::Intervals] {
            let said = stepped(&both, fold).unwrap();
            assert!(
                said.contains("says: sub (Arithmetic-Bench); the page has them.") && !said.contains("95 %"),
                "{said}"
            );
        }
    }

    #[test]
    fn the_table_of_differences_fits_whatever_the_profiles_are_called() {
        let row = ["count digits (integer)", "12.5 (11.9-13.0)", "<1 (<1-1.1)", "24, 0 of 24", "<0.0001"];
        let rows = vec![row.map(str::to_owned).to_vec(); 3];
        let long = ["profile-earnest-abacus-1.4m-48-8d3c9f01", "profile-earnest-abacus-1.4m-48-2e7a90bc"];
        for width in [80, 100, 140] {
            let (table, lettered) = held(long, &rows, width);
            assert!(table.lines().all(|line| line.chars().count() <= width), "{width}: {table}");
            assert_eq!(lettered, width < 140, "{width}: {table}");
            assert_eq!(held(["small", "large"], &rows, width), (held(["small", "large"], &rows, 140).0, false));
        }
    }

    #[test]
    fn a_comparison_says_its_verdict_first_and_fits() {
        let skills = [("add_Integer", 9), ("sub_Integer", 9), ("multiply_hard_Integer", 2), ("copy", 0)];
        let (one, other) = (
            measured("a-model-with-a-long-name-q4_k_m-int8", &skills),
            measured("B", &skills.map(|(name, limit)| (name, limit.min(2)))),
        );
        let found = comparison(&one, &other, None);
        for width in [60, 80, 140] {
            let text = comparison_text([&one, &other], &found, width);
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}: {text}");
            assert!(text.starts_with("a-model-with-a-long-name-q4_k_m-int8"), "{text}");
            let words = text.replace(" (A)", "").replace(" (B)", "").split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(
                words.contains("is better in 2 skills, B in none; in the other one no difference holds."),
                "{text}"
            );
            assert!(words.contains("1 skill is not compared: 1 below the shortest length in both."), "{text}");
            assert!(
                words.contains("by the answers of the numeracy profiles alone, after Holm's adjustment over 3 skills"),
                "{text}"
            );
        }
        let unfinished = NumeracyProfile { finished: false, ..measured("C", &skills[3..]) };
        let text = comparison_text([&one, &unfinished], &comparison(&one, &unfinished, None), 140);
        assert!(text.contains("C (unfinished) have no skill that can be compared."), "{text}");
    }
}
