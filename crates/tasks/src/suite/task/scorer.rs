//! Scorers of a task: their options checked, and what they make of a completion.
use std::borrow::Cow;

use regex::Regex;

use crate::suite::quoted::{LONGEST_QUOTED, shortened};

use super::scorer_spec::{Scored, ScorerKind, ScorerOptions, ScorerSpec, Take};
use super::wrong::Wrong;
use super::{choice, expression, gold, program};
use crate::suite::{Answered, FINAL, FailureClass, Item, Score, read_final};
use earnest_answer::reader::{self, Reading};
use earnest_answer::{CodeRunner, split_thinking};

/// A scorer with checked options.
#[derive(Debug, Clone)]
pub(super) struct Scorer {
    /// Name of its score.
    pub name: String,
    pub method: Method,
}

/// Procedure of a scorer.
#[derive(Debug, Clone)]
pub(super) enum Method {
    /// `plain`: answers that say no number are texts, whatever digits they have.
    Final {
        texts: bool,
        plain: bool,
    },
    Number {
        tolerance: f64,
        relative: f64,
        digits: Option<usize>,
    },
    Exact(Spelling),
    Contains(Spelling),
    Regex {
        regex: Regex,
        group: usize,
        take: Take,
        spelling: Spelling,
    },
    Choice,
    Python {
        function: Option<String>,
    },
    Expression,
    Likelihood {
        delimiter: Option<String>,
        of: Scored,
    },
    Perplexity {
        delimiter: Option<String>,
    },
}

/// Differences of texts that do not matter.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Spelling {
    case: bool,
    punctuation: bool,
}

impl Spelling {
    /// A text in the spelling that is compared.
    pub(super) fn of(self, text: &str) -> String {
        let text: String = if self.case { text.to_lowercase() } else { text.to_owned() };
        let text: String = if self.punctuation { without_punctuation(&text) } else { text };
        text.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    /// Case and punctuation do not matter.
    pub(super) const LOOSE: Spelling = Spelling { case: true, punctuation: true };
}

/// A text without the punctuation of sentences; a sign, decimal point or separator before a digit stays.
fn without_punctuation(text: &str) -> String {
    let mut kept = String::with_capacity(text.len());
    let mut rest = text.chars().peekable();
    while let Some(one) = rest.next() {
        let mark = matches!(
            one,
            '.' | ',' | ';' | ':' | '!' | '?' | '"' | '\'' | '(' | ')' | '[' | ']' | '{' | '}' | '*' | '`'
        ) || matches!(one, '\u{2018}' | '\u{2019}' | '\u{201c}' | '\u{201d}');
        let of_number = matches!(one, '.' | ',') && rest.peek().is_some_and(char::is_ascii_digit);
        if !mark || of_number {
            kept.push(one);
        }
    }
    kept
}

/// Result of a scorer on a completion.
struct Judged {
    right: bool,
    read: Option<String>,
    failure: FailureClass,
    reason: Option<String>,
}

impl Judged {
    fn of(right: bool, read: Option<String>) -> Self {
        let failure = if read.is_some() { FailureClass::Wrong } else { FailureClass::Unparsed };
        Judged { right, read, failure, reason: None }
    }
}

/// The kind that a scorer names.
fn kind(options: &ScorerOptions) -> Result<ScorerKind, Wrong> {
    let word = options.kind.as_deref().or(options.name.as_deref()).unwrap_or_default();
    ScorerKind::ALL.into_iter().find(|kind| kind.name() == word).ok_or_else(|| {
        let all = ScorerKind::ALL.map(ScorerKind::name);
        let near = crate::nearest(word, all).map(|near| format!(" (did you mean {near}?)")).unwrap_or_default();
        let shown = shortened(word, LONGEST_QUOTED);
        Wrong::new(word, format!("there is no kind of scorer {shown:?}{near}; the kinds are {}", all.join(", ")))
    })
}

/// Refuses options that belong to other kinds.
fn check_owners(kind: ScorerKind, options: &ScorerOptions) -> Result<(), Wrong> {
    use ScorerKind as Kind;
    let texts: &[Kind] = &[Kind::Exact, Kind::Contains, Kind::Regex];
    let given: [(&str, bool, &[Kind]); 13] = [
        ("texts", options.texts.is_some(), &[Kind::Final]),
        ("plain", options.plain.is_some(), &[Kind::Final]),
        ("tolerance", options.tolerance.is_some(), &[Kind::Number]),
        ("relative", options.relative.is_some(), &[Kind::Number]),
        ("digits", options.digits.is_some(), &[Kind::Number]),
        ("ignore_case", options.ignore_case.is_some(), texts),
        ("ignore_punctuation", options.ignore_punctuation.is_some(), texts),
        ("pattern", options.pattern.is_some(), &[Kind::Regex]),
        ("group", options.group.is_some(), &[Kind::Regex]),
        ("take", options.take.is_some(), &[Kind::Regex]),
        ("function", options.function.is_some(), &[Kind::Python]),
        ("delimiter", options.delimiter.is_some(), &[Kind::Likelihood, Kind::Perplexity]),
        ("of", options.of.is_some(), &[Kind::Likelihood]),
    ];
    for (option, is_given, kinds) in given {
        if is_given && !kinds.contains(&kind) {
            let owners = kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().join(", ");
            return Err(Wrong::new(option, format!("{option} is an option of {owners}, not of {}", kind.name())));
        }
    }
    Ok(())
}

impl Method {
    /// The method of a kind with its options.
    fn new(kind: ScorerKind, options: &ScorerOptions) -> Result<Self, Wrong> {
        let spelling = Spelling {
            case: options.ignore_case.unwrap_or_default(),
            punctuation: options.ignore_punctuation.unwrap_or_default(),
        };
        Ok(match kind {
            ScorerKind::Final => {
                let (texts, plain) = (options.texts.unwrap_or_default(), options.plain.unwrap_or_default());
                if plain && !texts {
                    let message = "plain is for answers that are compared as texts: write texts = true beside it";
                    return Err(Wrong::new("plain", message));
                }
                Method::Final { texts, plain }
            }
            ScorerKind::Number => Method::number(options)?,
            ScorerKind::Exact => Method::Exact(spelling),
            ScorerKind::Contains => Method::Contains(spelling),
            ScorerKind::Regex => Method::regex(options, spelling)?,
            ScorerKind::Choice => Method::Choice,
            ScorerKind::Python => Method::Python { function: options.function.clone() },
            ScorerKind::Expression => Method::Expression,
            ScorerKind::Likelihood => {
                if let Some(name) = options.name.as_ref().filter(|name| *name != kind.name()) {
                    let message =
                        "a likelihood scorer gives the scores acc, acc_norm_bytes and acc_norm_tokens, and no name";
                    return Err(Wrong::new(name.as_str(), message));
                }
                Method::Likelihood { delimiter: options.delimiter.clone(), of: options.of.unwrap_or_default() }
            }
            ScorerKind::Perplexity => Method::Perplexity { delimiter: options.delimiter.clone() },
        })
    }

    fn number(options: &ScorerOptions) -> Result<Self, Wrong> {
        let (tolerance, relative) = (options.tolerance.unwrap_or(0.0), options.relative.unwrap_or(0.0));
        let fits = |value: f64| value.is_finite() && value >= 0.0;
        if relative >= 1.0 {
            let message = format!("relative = {relative} is a tolerance of {} %; 0.01 is 1 %", 100.0 * relative);
            return Err(Wrong::new("relative", message));
        }
        if !fits(tolerance) || !fits(relative) || options.digits == Some(0) || options.digits > Some(17) {
            return Err(Wrong::new("tolerance", "tolerance and relative are numbers from 0, digits is 1 to 17"));
        }
        if options.digits.is_some() && (options.tolerance.is_some() || options.relative.is_some()) {
            return Err(Wrong::new("digits", "digits excludes tolerance and relative"));
        }
        Ok(Method::Number { tolerance, relative, digits: options.digits })
    }

    fn regex(options: &ScorerOptions, spelling: Spelling) -> Result<Self, Wrong> {
        let Some(pattern) = &options.pattern else {
            return Err(Wrong::new("regex", "a regex scorer needs a pattern"));
        };
        let regex = Regex::new(pattern).map_err(|error| {
            let reason = error.to_string();
            let last = reason.lines().last().unwrap_or_default().trim_start_matches("error: ");
            let shown = shortened(pattern, LONGEST_QUOTED);
            Wrong::new(pattern.as_str(), format!("the pattern {shown:?} does not compile: {last}"))
        })?;
        let group = options.group.unwrap_or(usize::from(regex.captures_len() > 1));
        if group >= regex.captures_len() {
            let most = regex.captures_len() - 1;
            return Err(Wrong::new(pattern.as_str(), format!("group {group}: the pattern has groups 0 to {most}")));
        }
        Ok(Method::Regex { regex, group, take: options.take.unwrap_or_default(), spelling })
    }
}

impl Scorer {
    /// Checks the options of a scorer.
    ///
    /// # Errors
    /// The value that is wrong, and why.
    pub(super) fn new(spec: &ScorerSpec) -> Result<Self, Wrong> {
        let options = &spec.0;
        let kind = kind(options)?;
        let name = options.name.clone().unwrap_or_else(|| kind.name().to_owned());
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || !name.chars().all(plain) {
            let shown = shortened(&name, LONGEST_QUOTED);
            let message = format!("the scorer name {shown:?} is not made of letters, digits, - and _");
            return Err(Wrong::new(name, message));
        }
        check_owners(kind, options)?;
        let method = Method::new(kind, options)?;
        Ok(Scorer { name, method })
    }

    /// Names of its scores.
    pub(super) fn names(&self) -> Vec<&str> {
        match self.method {
            Method::Likelihood { .. } => super::likelihood::NAMES.to_vec(),
            Method::Perplexity { .. } => Vec::new(),
            _ => vec![&self.name],
        }
    }

    /// True if it needs a number as the expected answer.
    pub(super) fn needs_number(&self) -> bool {
        matches!(self.method, Method::Final { .. } | Method::Number { .. } | Method::Python { .. } | Method::Expression)
    }

    /// True if it compares expected answers that are no numbers as texts.
    pub(super) fn takes_texts(&self) -> bool {
        matches!(self.method, Method::Final { texts: true, .. })
    }

    /// The number of an expected answer, as this scorer compares it; none of one that it compares as a text.
    pub(super) fn number(&self, answer: &str, question: &str) -> Option<String> {
        let is_text = matches!(self.method, Method::Final { plain: true, .. }) && !gold::says_number(answer);
        if is_text { None } else { gold::from(answer, question) }
    }

    /// True if it needs choices.
    pub(super) fn needs_choices(&self) -> bool {
        matches!(self.method, Method::Choice | Method::Likelihood { .. })
    }

    /// True if it scores log-likelihoods.
    pub(super) fn is_likelihood(&self) -> bool {
        matches!(self.method, Method::Likelihood { .. } | Method::Perplexity { .. })
    }
}

/// Scores a generated completion by all scorers.
pub(super) fn score(
    scorers: &[Scorer],
    chosen: &str,
    item: &Item,
    answered: &Answered<'_>,
    runner: &dyn CodeRunner,
) -> Score {
    let mut score = Score::default();
    let parts = split_thinking(answered.completion);
    let visible = parts.visible.as_ref();
    let number = gold::from(&item.gold, &item.segments.question);
    let needs_reading = |scorer: &Scorer| matches!(scorer.method, Method::Final { .. } | Method::Number { .. });
    let reading = scorers.iter().any(needs_reading).then(|| read_number(item, answered));
    for scorer in scorers {
        let judged = match (&scorer.method, &reading) {
            (Method::Final { texts: true, plain }, _)
                if scorer.number(&item.gold, &item.segments.question).is_none() =>
            {
                let spelling = Spelling { case: true, punctuation: *plain };
                let said = visible.trim().trim_end_matches('.');
                let read = (!said.is_empty()).then(|| said.to_owned());
                Judged::of(spelling.of(said) == spelling.of(&item.gold), read)
            }
            (Method::Final { .. }, Some(reading)) => {
                let judged = by_reading(reading, |text| number.as_deref().is_some_and(|gold| same_number(text, gold)));
                if scorer.name == FINAL {
                    score.add_final(chosen, judged.right, reading);
                    fail(&mut score, chosen, scorer, judged);
                    continue;
                }
                judged
            }
            (Method::Number { tolerance, relative, digits }, Some(reading)) => by_reading(reading, |text| {
                let (Some(gold), Some(found)) = (number.as_deref().and_then(float), float(text)) else { return false };
                match digits {
                    Some(digits) => rounded(found, *digits) == rounded(gold, *digits),
                    None => (found - gold).abs() <= tolerance.max(relative * gold.abs()),
                }
            }),
            (Method::Exact(spelling), _) => {
                let said = (!visible.trim().is_empty()).then(|| visible.trim().to_owned());
                Judged::of(agree(visible, &item.gold, *spelling), said)
            }
            (Method::Contains(spelling), _) => {
                let found = contains(&spelling.of(visible), &spelling.of(&item.gold));
                Judged::of(found, found.then(|| item.gold.clone()).or_else(|| Some(visible.trim().to_owned())))
            }
            (Method::Regex { regex, group, take, spelling }, _) => {
                let taken = |found: regex::Captures<'_>| found.get(*group).map(|part| part.as_str().trim().to_owned());
                let mut all = regex.captures_iter(visible).filter_map(taken);
                let read = match take {
                    Take::First => all.next(),
                    Take::Last => all.last(),
                };
                Judged::of(read.as_deref().is_some_and(|read| agree(read, &item.gold, *spelling)), read)
            }
            (Method::Choice, _) => {
                let read = choice::read(visible, &choice::texts(item));
                Judged::of(read.as_deref() == Some(&item.gold), read)
            }
            (Method::Python { function }, _) => {
                let run = program::run(visible, function.as_deref(), runner);
                let right = run.number.as_deref().is_some_and(|found| program::agrees(found, number.as_deref()));
                Judged { right, read: run.number, failure: run.failure, reason: run.reason }
            }
            (Method::Expression, _) => {
                let found = expression::value(visible);
                let right = found
                    .as_ref()
                    .is_ok_and(|(_, value)| number.as_deref().is_some_and(|gold| expression::agrees(value, gold)));
                match found {
                    Ok((written, _)) => Judged::of(right, Some(written)),
                    Err(reason) => Judged { reason: Some(reason.to_string()), ..Judged::of(false, None) },
                }
            }
            (
                Method::Final { .. } | Method::Number { .. } | Method::Likelihood { .. } | Method::Perplexity { .. },
                _,
            ) => {
                continue;
            }
        };
        score.add_scorer(chosen, &scorer.name, judged.right, judged.read.clone());
        fail(&mut score, chosen, scorer, judged);
    }
    if !score.correct && parts.visible.trim().is_empty() {
        score.failure = Some(if parts.has_thinking { FailureClass::OnlyThinking } else { FailureClass::Empty });
    }
    score
}

/// Keeps why the deciding scorer does not accept an answer.
fn fail(score: &mut Score, chosen: &str, scorer: &Scorer, judged: Judged) {
    if scorer.name == chosen {
        score.evidence.reason = judged.reason;
        score.failure = (!judged.right).then_some(judged.failure);
    }
}

fn by_reading(reading: &Reading, right: impl Fn(&str) -> bool) -> Judged {
    match &reading.answer {
        Ok(answer) => Judged::of(right(&answer.text), Some(answer.text.clone())),
        Err(none) => Judged { failure: (*none).into(), ..Judged::of(false, None) },
    }
}

/// True if two spellings denote one number, whatever zeros stand before its digits: 073 is 73.
pub(super) fn same_number(text: &str, gold: &str) -> bool {
    reader::same_number(&without_padding(text), &without_padding(gold))
}

/// An integer without the zeros before its digits; any other text as it is.
fn without_padding(text: &str) -> Cow<'_, str> {
    let text = text.trim();
    let (sign, digits) = match text.strip_prefix(['-', '+']) {
        Some(digits) => (&text[..1], digits),
        None => ("", text),
    };
    let significant = digits.trim_start_matches('0');
    if significant.len() == digits.len() || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Cow::Borrowed(text);
    }
    // Zeros alone are one zero.
    Cow::Owned(format!("{sign}{}", if significant.is_empty() { "0" } else { significant }))
}

/// Numbers by value, except that zeros before the digits count, and other texts by their spelling.
fn agree(read: &str, gold: &str, spelling: Spelling) -> bool {
    match (gold::plain(read), gold::plain(gold)) {
        (Some(read), Some(gold)) => reader::same_number(&read, &gold) && padding(&read).eq(padding(&gold)),
        _ => spelling.of(read) == spelling.of(gold),
    }
}

/// The numbers of zeros before the digits of a number, or of a fraction's numerator and denominator, where there are any: 2 of 007.50.
/// Exponents have none: programs write 1e-05 for 1e-5.
fn padding(text: &str) -> impl Iterator<Item = usize> {
    text.split('/')
        .map(whole_part)
        .map(|digits| digits.len().saturating_sub(digits.trim_start_matches('0').len().max(1)))
        .filter(|&zeros| zeros > 0)
}

/// The digits of a number before its decimal point and its exponent.
fn whole_part(number: &str) -> &str {
    let digits = number.trim_start_matches(['-', '+', ' ']);
    &digits[..digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len())]
}

/// True if a text stands in another one as whole words.
fn contains(text: &str, wanted: &str) -> bool {
    let number = |c: Option<char>| c.is_some_and(|c| c.is_ascii_digit());
    // A number is not a part of another one: 5 is in neither -5, 0.5, 5.2 nor 1,500.
    let before = |text: &str| {
        let mut back = text.chars().rev();
        let (last, other) = (back.next(), back.next());
        let part = number(wanted.chars().next())
            && (matches!(last, Some('.'))
                || (last == Some(',') && number(other))
                || (last == Some('-') && !number(other)));
        !part && last.is_none_or(|c| !c.is_alphanumeric())
    };
    let after = |text: &str| {
        let mut next = text.chars();
        let (first, other) = (next.next(), next.next());
        let part = number(wanted.chars().next_back()) && matches!(first, Some('.' | ',')) && number(other);
        !part && first.is_none_or(|c| !c.is_alphanumeric())
    };
    !wanted.is_empty()
        && text
            .match_indices(wanted)
            .any(|(start, found)| before(&text[..start]) && after(&text[start + found.len()..]))
}

pub(super) fn float(text: &str) -> Option<f64> {
    match text.split_once('/') {
        Some((top, bottom)) => {
            let (top, bottom): (f64, f64) = (top.parse().ok()?, bottom.parse().ok()?);
            (bottom != 0.0).then(|| top / bottom)
        }
        None => text.parse().ok(),
    }
}

/// A number in as many significant digits.
fn rounded(value: f64, digits: usize) -> String {
    // Zero has no sign here.
    format!("{:.*e}", digits - 1, if value == 0.0 { 0.0 } else { value })
}

/// The number that the reader of final answers takes from a completion.
pub(super) fn read_number(item: &Item, answered: &Answered<'_>) -> Reading {
    read_final(item, earnest_answer::reader::Form::Number, answered)
}
