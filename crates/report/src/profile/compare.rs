//! Comparison of two models, skill by skill: by the answers of their profiles, and by those to shared questions where there are any.
use std::collections::{BTreeMap, HashMap};

use serde::Serialize;

use earnest_results::store::{RunRecord, Store};
use earnest_stats::psychometric::{DIFFERENCE_LEVEL, Limit, with_shared};
use earnest_stats::{PairedCounts, holm, mcnemar, paired_score_interval};
use earnest_tasks::suite::profile::{ComparedSkill, Family, PromptForm, SharedQuestions, compared_skills};
use earnest_tasks::suite::registry::Mode;
use earnest_tasks::{agreeing, counted};

use super::NumeracyProfile;
use super::text::{listed, name};
use crate::ReportError;

/// Two models in a skill.
#[derive(Debug, Clone, Serialize)]
pub struct LimitDifference {
    pub task: String,
    pub family: Family,
    pub title: String,
    /// 50 % limits of the first and the second model.
    pub limits: [Limit; 2],
    /// p value of the likelihood ratio test of one curve of success by length for both; where shared questions were asked in any skill, combined with their
    /// answers in this one.
    pub p: f64,
    /// The same after Holm's adjustment over all skills that are compared.
    pub p_holm: f64,
    /// True if it is below 5 %.
    pub holds: bool,
    /// The model that is better if the difference holds, 0 for the first: the one with the longer limit whose interval is beyond that of the other, or with more right
    /// answers to the shared questions. None where neither says so: curves may differ otherwise than in their limits.
    pub better: Option<usize>,
    /// p value by the answers of the profiles alone, and that of McNemar's exact test of the pairs, two-sided.
    pub p_profiles: f64,
    pub p_pairs: Option<f64>,
    /// Shared questions that both have answered; null here and below where there are none.
    pub pairs: Option<usize>,
    /// Right answers of each.
    pub right: Option<[usize; 2]>,
    /// Difference of the shares of right answers, the first model's less the second's, with Tango's 95 % interval.
    pub difference: Option<f64>,
    pub low: Option<f64>,
    pub high: Option<f64>,
}

/// All differences of two models, and what is not compared.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Comparison {
    /// The family of tests, in the order of skills.
    pub differences: Vec<LimitDifference>,
    /// Skills at the floor of both models, at all lengths of both, and without a limit in one.
    pub floor: usize,
    pub ceiling: usize,
    pub no_limit: usize,
    /// Skills that one of the two was not asked.
    pub one_only: usize,
    /// Shared questions that both have answered.
    pub pairs: usize,
    /// Difference of the two besides their models, with the command that asks alike.
    pub unlike: Option<String>,
}

/// Answers of two models to the same questions, by task: whether each is right.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct SharedAnswers(BTreeMap<String, Vec<(bool, bool)>>);

impl SharedAnswers {
    /// Reads them from the two runs that asked them. Questions that one has not answered are left out.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn read(store: &Store, runs: [&RunRecord; 2]) -> Result<Self, ReportError> {
        let [one, other] = runs;
        let mut first: HashMap<String, bool> = HashMap::new();
        store.check_seal(one)?;
        store.outcomes(one, |outcome| -> Result<(), ReportError> {
            first.extend(outcome.score.map(|score| (outcome.item, score.correct)));
            Ok(())
        })?;
        let mut pairs: BTreeMap<String, Vec<(bool, bool)>> = BTreeMap::new();
        store.check_seal(other)?;
        store.outcomes(other, |outcome| -> Result<(), ReportError> {
            if let (Some(score), Some(&right)) = (&outcome.score, first.get(&outcome.item)) {
                pairs.entry(outcome.task).or_default().push((right, score.correct));
            }
            Ok(())
        })?;
        Ok(SharedAnswers(pairs))
    }
}

/// Name of one of several profiles: its model, or its run where another is of the same model.
pub(super) fn label<'a>(profiles: &[&'a NumeracyProfile], index: usize) -> &'a str {
    let profile = profiles[index];
    let is_same = |(other, one): (usize, &&NumeracyProfile)| other != index && one.model == profile.model;
    if profiles.iter().enumerate().any(is_same) { &profile.run } else { &profile.model }
}

/// Questions to ask both models, so many in all, with the seed of their numbers. They are the same in either order of the two.
pub fn shared_questions(
    one: &NumeracyProfile,
    other: &NumeracyProfile,
    questions: usize,
) -> (u64, Vec<SharedQuestions>) {
    let compared = compared_skills(&one.results, &other.results);
    let seed = one.options.seed.min(other.options.seed);
    let unanswered = |task: &str, length| {
        let of = |profile: &NumeracyProfile| profile.unanswered.get(&(task.to_owned(), length)).copied();
        of(one).max(of(other)).unwrap_or_default()
    };
    (seed, compared.questions(questions, unanswered, [&one.options, &other.options]))
}

/// Compares all skills that have a limit in both, in the order of skills.
pub fn comparison(one: &NumeracyProfile, other: &NumeracyProfile, shared: Option<&SharedAnswers>) -> Comparison {
    let compared = compared_skills(&one.results, &other.results);
    let shared = shared.filter(|answers| !answers.0.is_empty());
    let pairs = |task: &str| Some(shared?.0.get(task).map_or(&[][..], Vec::as_slice));
    let mut differences: Vec<LimitDifference> =
        compared.skills.iter().map(|skill| difference(skill, pairs(&skill.skill.task), [one, other])).collect();
    let p_values: Vec<f64> = differences.iter().map(|one| one.p).collect();
    // Probabilities are between 0 and 1.
    let adjusted = holm(&p_values).unwrap_or(p_values);
    for (one, p_holm) in differences.iter_mut().zip(adjusted) {
        (one.p_holm, one.holds) = (p_holm, p_holm < DIFFERENCE_LEVEL);
    }
    Comparison {
        pairs: differences.iter().filter_map(|one| one.pairs).sum(),
        differences,
        floor: compared.floor,
        ceiling: compared.ceiling,
        no_limit: compared.no_limit,
        one_only: compared.one_only,
        unlike: unlike(one, other, &compared.skills),
    }
}

/// The difference of a skill before adjustment. `shared` are the answers of both to its shared questions, and none where no skill was asked.
fn difference(
    compared: &ComparedSkill,
    shared: Option<&[(bool, bool)]>,
    profiles: [&NumeracyProfile; 2],
) -> LimitDifference {
    let pairs = shared.unwrap_or_default();
    let ComparedSkill { skill, limits, p, .. } = compared;
    let longer = match limits[0].estimate.total_cmp(&limits[1].estimate) {
        std::cmp::Ordering::Greater => 0,
        std::cmp::Ordering::Less => 1,
        std::cmp::Ordering::Equal => {
            let share = profiles.map(|profile| profile.skill(&skill.task).map_or(0.0, |skill| skill.right_share()));
            usize::from(share[1] > share[0])
        }
    };
    let longer_first =
        PairedCounts::of(pairs.iter().map(|&(one, other)| if longer == 0 { (one, other) } else { (other, one) }));
    // The interval is that of the second less the first.
    let turned = PairedCounts::of(pairs.iter().map(|&(one, other)| (other, one)));
    let asked = (!pairs.is_empty()).then_some(pairs.len());
    let right = [pairs.iter().filter(|pair| pair.0).count(), pairs.iter().filter(|pair| pair.1).count()];
    let interval = paired_score_interval(&turned, 0.95);
    let together = shared.map_or(*p, |_| with_shared(*p, &longer_first));
    let is_apart = limits[longer].low > limits[1 - longer].high;
    let better = Some(longer).filter(|_| is_apart || right[longer] > right[1 - longer]);
    LimitDifference {
        task: skill.task.clone(),
        family: skill.family,
        title: skill.title.clone(),
        limits: *limits,
        p: together,
        p_holm: together,
        holds: false,
        better,
        p_profiles: *p,
        p_pairs: asked.map(|_| mcnemar(&turned).exact_p),
        pairs: asked,
        right: asked.map(|_| right),
        difference: asked.map(|asked| (right[0] as f64 - right[1] as f64) / asked as f64),
        low: interval.map(|(low, _)| low),
        high: interval.map(|(_, high)| high),
    }
}

/// Skills that a sentence names.
const NAMED: usize = 4;

/// A sentence on what was asked unlike in two profiles, with the command that asks alike; none where the models alone differ.
fn unlike(one: &NumeracyProfile, other: &NumeracyProfile, compared: &[ComparedSkill]) -> Option<String> {
    let profiles = [one, other];
    let labels = [0, 1].map(|index| label(&profiles, index));
    if !one.asks_as(other) {
        let older = profiles.into_iter().min_by_key(|profile| profile.major())?;
        return Some(format!(
            "The prompts are unlike: {} is a profile of version {} and {} one of version {}, which choose their prompts otherwise. `earnest profile {}`, with the other options of that run, measures the older one again.",
            labels[0], one.version, labels[1], other.version, older.source
        ));
    }
    let forms = [one.asked_form()?, other.asked_form()?];
    let is_unlike = |skill: &&ComparedSkill| one.form_of(&skill.skill.task) != other.form_of(&skill.skill.task);
    let skills = compared.iter().filter(is_unlike).filter_map(|skill| one.skill(&skill.skill.task));
    let skills: Vec<String> = skills.map(name).collect();
    if skills.is_empty() && (forms[0] == forms[1] || !compared.is_empty()) {
        return None;
    }
    let is_best = profiles.iter().all(|profile| !profile.screening.is_empty());
    let best = if is_best { ", each as it is best," } else { "," };
    let all = skills.len() == compared.len();
    if forms[0] == forms[1] || !all {
        let own = if is_best { ", where each model was asked as it is best" } else { "" };
        return Some(format!(
            "The prompts are unlike in {}{own} ({}), and a difference there may be one of prompts. `earnest profile --model MODEL --prompt {} --shots {}` for each of the two models asks alike.",
            counted(skills.len(), "skill"),
            listed(&skills, NAMED),
            forms[1].mode,
            forms[1].shots
        ));
    }
    // The model that was screened in the form of the other one can be asked so; raw text is what most take.
    let ways = [(one, forms[1]), (other, forms[0])];
    let is_taken = |(again, form): &(&NumeracyProfile, PromptForm)| again.options.forms.contains(form);
    let &(again, form) = ways.iter().max_by_key(|way| (is_taken(way), way.1.mode == Mode::Raw))?;
    Some(format!(
        "The prompts are unlike: {} was asked {} and {} {}{best} and a difference may be one of prompts. `earnest profile {} --prompt {} --shots {}`, with the other options of that run, asks alike.",
        labels[0],
        forms[0].title(),
        labels[1],
        forms[1].title(),
        again.source,
        form.mode,
        form.shots
    ))
}

impl NumeracyProfile {
    /// True if the other one is of a version that chooses its prompts as this one does.
    pub fn asks_as(&self, other: &NumeracyProfile) -> bool {
        self.major() == other.major()
    }

    /// The first number of the version of the suite, which changes with the prompts.
    fn major(&self) -> u32 {
        self.version.split('.').next().and_then(|number| number.parse().ok()).unwrap_or_default()
    }
}

impl Comparison {
    /// Differences that hold.
    pub fn holding(&self) -> impl Iterator<Item = &LimitDifference> {
        self.differences.iter().filter(|one| one.holds)
    }

    /// Verdict in a sentence, with the names of the two models.
    pub fn verdict(&self, names: [&str; 2]) -> String {
        let better = [0, 1].map(|model| self.holding().filter(|one| one.better == Some(model)).count());
        let open = self.differences.len() - self.holding().count();
        let otherwise = self.holding().filter(|one| one.better.is_none()).count();
        if self.differences.is_empty() {
            return format!("{} and {} have no skill that can be compared.", names[0], names[1]);
        }
        // The first words of a verdict say what it may come from.
        let prompts = if self.unlike.is_some() { "Asked in unlike prompts, " } else { "" };
        let differ = match otherwise {
            0 => String::new(),
            count => format!("; in {count} they differ, but not shown in which direction"),
        };
        if better == [0, 0] {
            let neither = if prompts.is_empty() { "Neither" } else { "neither" };
            let open =
                if open > 0 { format!("; no difference holds in {}", counted(open, "skill")) } else { String::new() };
            return format!("{prompts}{neither} {} nor {} is shown to be better{differ}{open}.", names[0], names[1]);
        }
        // The one that is better in more skills comes first.
        let [more, fewer] = if better[1] > better[0] { [1, 0] } else { [0, 1] };
        let second = match better[fewer] {
            0 => format!("{} in none", names[fewer]),
            count => format!("{} in {count}", names[fewer]),
        };
        let rest = match open {
            0 => String::new(),
            1 => "; in the other one no difference holds".to_owned(),
            open => format!("; in the other {open} no difference holds"),
        };
        format!("{prompts}{} is better in {}, {second}{differ}{rest}.", names[more], counted(better[more], "skill"))
    }

    /// Skills that are not compared, in a sentence; none if all are.
    pub fn left_out(&self) -> Option<String> {
        let parts = [
            (self.floor, "below the shortest length in both"),
            (self.ceiling, "beyond the longest length in both"),
            (self.no_limit, "not falling with the length in one of them"),
            (self.one_only, "asked of one of them alone"),
        ];
        let said: Vec<String> =
            parts.iter().filter(|one| one.0 > 0).map(|(count, what)| format!("{count} {what}")).collect();
        let count = self.floor + self.ceiling + self.no_limit + self.one_only;
        let are = agreeing(count, "is", "are");
        (count > 0).then(|| format!("{} {are} not compared: {}.", counted(count, "skill"), said.join(", ")))
    }

    /// The way of the tests, in sentences.
    pub fn method(&self) -> String {
        let family = format!("Holm's adjustment over {}", counted(self.differences.len(), "skill"));
        let asked = self.differences.iter().filter(|one| one.pairs.is_some()).count();
        if asked == 0 {
            return format!(
                "p is of the likelihood ratio of one curve of success by length for both, by the answers of the numeracy profiles alone, after {family}."
            );
        }
        let open = self.differences.iter().filter(|one| !one.holds && one.pairs.is_none()).count();
        let more = match open {
            0 => String::new(),
            open => {
                format!(
                    " {} had no question: the number of shared questions did not reach, or too few of these lengths were left to ask.",
                    counted(open, "open skill")
                )
            }
        };
        format!(
            "Both were asked {} with further numbers, in {} that the numeracy profiles left open, at lengths between the limits. p combines them (McNemar's exact test, one-sided; 1 \
             where none was asked) with the earlier answers (likelihood ratio of one curve), after {family}.{more}",
            counted(self.pairs, "question"),
            counted(asked, "skill"),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::document::tests::measured;
    use earnest_tasks::suite::profile::ProfileOptions;

    fn answers(task: &str, pairs: &[(bool, bool)]) -> SharedAnswers {
        SharedAnswers(BTreeMap::from([(task.to_owned(), pairs.to_vec())]))
    }

    #[test]
    fn shared_answers_decide_what_the_profiles_leave_open() {
        let one = measured("A", &[("add_Integer", 5), ("sub_Integer", 0), ("copy", 3)]);
        let other = measured("B", &[("add_Integer", 4), ("sub_Integer", 0), ("copy", 3)]);
        let alone = comparison(&one, &other, None);
        assert_eq!((alone.differences.len(), alone.floor, alone.pairs), (2, 1, 0));
        assert!(alone.holding().next().is_none(), "{:?}", alone.differences);
        assert_eq!(
            alone.verdict(["A", "B"]),
            "Neither A nor B is shown to be better; no difference holds in 2 skills."
        );
        assert_eq!(alone.left_out().unwrap(), "1 skill is not compared: 1 below the shortest length in both.");
        let task = alone.differences[0].task.clone();
        let (seed, questions) = shared_questions(&one, &other, 24);
        assert_eq!((seed, &questions[0].task), (0, &task), "the skill that differs most is asked");
        assert_eq!(shared_questions(&other, &one, 24), (seed, questions));

        let shared = answers(&task, &[[(true, false); 11], [(true, true); 11]].concat());
        let found = comparison(&one, &other, Some(&shared));
        let first = &found.differences[0];
        assert!(first.holds && first.better == Some(0) && first.p < first.p_profiles, "{first:?}");
        assert_eq!((first.pairs, first.right, first.difference), (Some(22), Some([22, 11]), Some(0.5)));
        assert!(first.low.unwrap() > 0.2 && first.high.unwrap() < 0.75, "{first:?}");
        assert_eq!(found.differences[1].pairs, None);
        assert_eq!(
            found.verdict(["A", "B"]),
            "A is better in 1 skill, B in none; in the other one no difference holds."
        );
        // Turned round, the same.
        let turned = answers(&task, &[[(false, true); 11], [(true, true); 11]].concat());
        let turned = &comparison(&other, &one, Some(&turned)).differences[0];
        assert_eq!((turned.better, turned.p, turned.right), (Some(1), first.p, Some([11, 22])));
        assert!((turned.low.unwrap() + first.high.unwrap()).abs() < 1e-9);
        // Answers against the limits are no evidence for them.
        let against = answers(&task, &[(false, true); 22]);
        assert!(!comparison(&one, &other, Some(&against)).differences[0].holds);
    }

    #[test]
    fn unlike_prompts_are_said_with_the_command() {
        let one = measured("A", &[("add_Integer", 6)]);
        let mut other = measured("B", &[("add_Integer", 6)]);
        assert_eq!(comparison(&one, &other, None).unlike, None);
        other.form = Some("chat+3".to_owned());
        let said = comparison(&one, &other, None).unlike.unwrap();
        assert!(said.contains("A was asked as raw text and B by chat with 3 worked examples"), "{said}");
        let verdict = comparison(&one, &other, None).verdict(["A", "B"]);
        assert!(verdict.starts_with("Asked in unlike prompts, neither A nor B"), "{verdict}");
        assert!(
            said.contains("`earnest profile --model B.gguf --prompt raw --shots 0`, with the other options"),
            "{said}"
        );
        // A model behind a chat API has no raw text.
        let mut chat = measured("C", &[("add_Integer", 6)]);
        (chat.form, chat.options.forms) = (Some("chat".to_owned()), vec!["chat".parse().unwrap()]);
        let forms = ["chat", "raw"].map(|form| form.parse().unwrap()).to_vec();
        let both = NumeracyProfile { options: ProfileOptions { forms, ..one.options.clone() }, ..one.clone() };
        for pair in [[&both, &chat], [&chat, &both]] {
            let said = comparison(pair[0], pair[1], None).unlike.unwrap();
            assert!(said.contains("`earnest profile --model A.gguf --prompt chat --shots 0`"), "{said}");
        }
        other.version = "3.2".to_owned();
        let said = comparison(&one, &other, None).unlike.unwrap();
        assert!(said.contains("A is a profile of version 4.1 and B one of version 3.2"), "{said}");
        assert!(said.contains("`earnest profile --model B.gguf`, with the other options"), "{said}");
    }
}
