//! The profile as a page: limits of all skills on one screen, then what went wrong.
use earnest_tasks::counted;
use minijinja::Value;
use std::fmt::Write;

use earnest_stats::psychometric::Limit;
use earnest_tasks::suite::profile::Family;

use super::compare::label;
use super::notations::can_tell;
use super::text::{limit_text, p_text};
use super::{LimitDifference, NumeracyProfile, SkillProfile, anatomy_page, thinking_page};
use crate::markup::safe;
use crate::page::{Frame, Sections, framed};
use crate::plot::{Figure, LimitBar, LimitPanel, LimitRow, STYLES, escape, limits};

const STYLE: &str = include_str!("page.css");
const WRITES: &str = "writing to a String cannot fail";

/// Renders the page of one profile, or of two side by side with their differences. It opens no connection and needs no script.
pub fn page(profiles: &[&NumeracyProfile], differences: &[LimitDifference]) -> String {
    let labels: Vec<&str> = (0..profiles.len()).map(|place| label(profiles, place)).collect();
    let title = format!("earnest: numeracy of {}", labels.join(" and "));
    // A heading a profile where there are several; a profile without the part has none.
    let each = |part: fn(&NumeracyProfile) -> String| -> String {
        let shown = profiles.iter().zip(&labels).map(|(profile, label)| match part(profile) {
            html if html.is_empty() || profiles.len() == 1 => html,
            html => format!("<h3>{}</h3>{html}", escape(label)),
        });
        shown.collect()
    };
    let mut sections = Sections::default();
    let mut section =
        |id: &str, title: &str, lead: &str, content: String| sections.section(id, title, lead, safe(content));
    section("limits", "Digit limits", "", facts(profiles, &labels) + &panels(profiles, differences));
    section("differences", "Differences that hold", "", held(profiles, differences));
    section("rising", "Success that does not fall with the length", "", rising(profiles));
    section(
        "anatomy",
        "What went wrong",
        "Wrong answers by the first class that explains them exactly; lines are 95 % intervals. A class says what an answer is consistent \
         with: the last rows of the table have its chance, the per cent of wrong answers that know nothing of the mistake: random numbers by the digits of the operands, and right ones with one digit replaced.",
        each(anatomy_page::anatomy),
    );
    section(
        "positions",
        "Wrong digits by position",
        "Share of wrong answers with another digit at a position, aligned at the point: 1 is the units, .1 the first digit after the point. Of numbers with an exponent the \
         significand; fractions are left out.",
        each(anatomy_page::positions),
    );
    section(
        "notations",
        "The same numbers, written otherwise",
        "Paired by the operands with plain digits: difference of the shares of right answers with Tango's 95 % interval; bold holds after \
         Holm's adjustment. Boxes are the tokens that the model gets; <E0> is a byte of a character in several tokens.",
        each(notations),
    );
    section(
        "thinking",
        "Thinking budgets",
        "The same questions, the first length beyond the limit, under a cap on the tokens of an answer with its thinking; what a cap cuts off \
         mostly has no answer. Paired by question: what the largest cap gains over each, with Tango's 95 % interval; bold holds after Holm's \
         adjustment. Seconds are those of a request in its batch.",
        each(thinking_page::section),
    );
    section("numbers", "All numbers", "", profiles.iter().map(|profile| numbers(profile)).collect());
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

fn facts(profiles: &[&NumeracyProfile], labels: &[&str]) -> String {
    let mut html = String::from("<p class=\"facts\">");
    for (index, profile) in profiles.iter().enumerate() {
        let asked: Vec<&SkillProfile> = profile.skills.iter().filter(|skill| skill.asked > 0).collect();
        let narrow = asked.iter().filter(|skill| skill.narrow).count();
        let unfinished = if profile.finished { "" } else { ", <b>not finished: numbers will change</b>" };
        write!(
            html,
            "<span class=\"swatch s{}\"></span><b>{}</b>: {}, {}, {}, {:.0} s; {} as narrow as asked{unfinished}<br>",
            index % STYLES,
            escape(labels[index]),
            counted(asked.len(), "skill"),
            counted(profile.answers, "question"),
            counted(profile.tokens as usize, "token"),
            profile.seconds,
            counted(narrow, "interval"),
        )
        .expect(WRITES);
    }
    html += "<span class=\"dim\">Full bars end where success has fallen half of the way from certainty to chance, faint ones where it is down to a \
             tenth, gaps are at nine tenths; lines are 95 % credible intervals of the half. Lengths in digits, each panel with an axis of its own";
    html += if profiles.len() > 1 {
        "; ≠ marks differences that hold after Holm's adjustment.</span></p>"
    } else {
        ".</span></p>"
    };
    html
}

/// Bounds of a skill's lengths.
fn range(skill: &SkillProfile) -> (usize, usize) {
    (skill.shortest, skill.longest)
}

fn bar(series: usize, skill: &SkillProfile) -> LimitBar {
    let Some(half) = skill.half() else {
        let text = if skill.asked == 0 { "no answers" } else { "no limit: does not fall" };
        return LimitBar { series, limits: None, low: 0.0, high: 0.0, text: text.to_owned() };
    };
    let estimate = |index: usize| skill.limits.get(index).map_or(0.0, |limit| limit.estimate);
    LimitBar {
        series,
        limits: Some([estimate(0), half.estimate, estimate(2)]),
        low: half.low,
        high: half.high,
        text: limit_text(half, range(skill)),
    }
}

/// Families that stand below each other, because they are short.
const STACKS: [&[Family]; 4] = [
    &[Family::Integers],
    &[Family::Floats],
    &[Family::Fractions, Family::Scientific],
    &[Family::ArithmeticBench, Family::WordProblems, Family::Text],
];

/// Bars of the limits of a family's skills; none without skills.
fn panel(family: Family, profiles: &[&NumeracyProfile], differences: &[LimitDifference]) -> Option<Figure> {
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
        let differs = differences.iter().any(|one| one.task == skill.task && one.holds);
        let lengths = (skill.shortest as f64, skill.longest as f64);
        rows.push(LimitRow { name: skill.title.clone(), lengths, bars: found.collect(), differs });
    }
    let shortest = rows.iter().map(|row| row.lengths.0).reduce(f64::min)?;
    let longest = rows.iter().map(|row| row.lengths.1).reduce(f64::max)?;
    let lengths = (shortest, longest);
    let name = format!("limits-{}", family.name());
    Some(limits(&LimitPanel { name, title: family.title().to_owned(), lengths, rows }))
}

/// Draws the limits of every family, and thinking budgets if there are any, for files.
pub fn figures(profiles: &[&NumeracyProfile], differences: &[LimitDifference]) -> Vec<Figure> {
    let limits = Family::ALL.into_iter().filter_map(|family| panel(family, profiles, differences));
    let thinking = profiles.iter().enumerate().filter_map(|(index, profile)| {
        let number = if profiles.len() > 1 { format!("-{}", index + 1) } else { String::new() };
        thinking_page::figure(profile, &format!("thinking{number}"))
    });
    limits.chain(thinking).collect()
}

fn panels(profiles: &[&NumeracyProfile], differences: &[LimitDifference]) -> String {
    let panel = |family: &Family| {
        let figure = panel(*family, profiles, differences);
        figure.map_or_else(String::new, |figure| {
            format!("<figure><figcaption>{}</figcaption>{}</figure>", escape(&figure.title), figure.inline())
        })
    };
    let stack = |families: &&[Family]| {
        let panels: String = families.iter().map(panel).collect();
        if panels.is_empty() { String::new() } else { format!("<div class=\"stack\">{panels}</div>") }
    };
    format!("<div class=\"limits\">{}</div>", STACKS.iter().map(stack).collect::<String>())
}

fn held(profiles: &[&NumeracyProfile], differences: &[LimitDifference]) -> String {
    let [first, _] = profiles else { return String::new() };
    let holding: Vec<&LimitDifference> = differences.iter().filter(|one| one.holds).collect();
    let mut html = format!(
        "<p>{} of {} skills differ after Holm's adjustment; p is of the likelihood ratio of one curve of success by length for both models.</p>",
        holding.len(),
        differences.len()
    );
    if holding.is_empty() {
        return html;
    }
    write!(
        html,
        "<div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>skill</th><th class=\"num\">{}</th><th class=\"num\">{}</th><th class=\"num\">p (Holm)</th></tr></thead><tbody>",
        escape(label(profiles, 0)),
        escape(label(profiles, 1))
    )
    .expect(WRITES);
    for one in holding {
        let Some(skill) = first.skill(&one.task) else { continue };
        let [mine, theirs] = one.limits.map(|limit| limit_text(&limit, range(skill)));
        write!(
            html,
            "<tr><th>{} <small>{}</small></th><td class=\"num\">{mine}</td><td class=\"num\">{theirs}</td><td class=\"num\">{}</td></tr>",
            escape(&one.title),
            one.family.title(),
            escape(&p_text(one.p_holm))
        )
        .expect(WRITES);
    }
    html + "</tbody></table></div>"
}

/// Accuracies by length of the skills without a limit.
fn rising(profiles: &[&NumeracyProfile]) -> String {
    let mut html = String::new();
    for (index, profile) in profiles.iter().enumerate() {
        for skill in profile.skills.iter().filter(|skill| skill.asked > 0 && !skill.falls) {
            let counts: Vec<String> =
                skill.counts.iter().map(|one| format!("{}: {}/{}", one.length, one.right, one.asked)).collect();
            write!(
                html,
                "<li><b>{}</b> {} <small>{}</small>: right by length {}</li>",
                escape(label(profiles, index)),
                escape(&skill.title),
                skill.family.title(),
                counts.join(", ")
            )
            .expect(WRITES);
        }
    }
    if html.is_empty() { html } else { format!("<ul class=\"notes\">{html}</ul>") }
}

fn notations(profile: &NumeracyProfile) -> String {
    let mut rows = String::new();
    for one in &profile.notations {
        let difference = match (one.difference, one.low, one.high) {
            (Some(difference), Some(low), Some(high)) => {
                let [difference, low, high] = [difference, low, high].map(|value| 100.0 * value);
                let class = if one.holds { " class=\"holds\"" } else { "" };
                format!("<span{class}>{difference:+.0}</span> <small>[{low:+.0}, {high:+.0}]</small>")
            }
            _ => String::new(),
        };
        let tokens = match &one.tokens {
            Some(tokens) => tokens.iter().map(|token| format!("<code>{}</code><wbr>", escape(token))).collect(),
            None => escape(&one.example),
        };
        let count = one.tokens.as_ref().map_or_else(String::new, |tokens| tokens.len().to_string());
        write!(
            rows,
            "<tr><th>{}</th><td class=\"num\">{}/{}</td><td class=\"num\">{difference}</td><td class=\"num\">{count}</td><td class=\"tokens\">{tokens}</td></tr>",
            one.notation.name().replace('_', " "),
            one.right,
            one.asked
        )
        .expect(WRITES);
    }
    if rows.is_empty() {
        return rows;
    }
    let Some(plain) = profile.notations.first() else { return rows };
    let compared = profile.notations.iter().filter(|one| one.difference.is_some()).count();
    let few = match can_tell(plain, compared) {
        true => "",
        false => "<p>Too few are right in plain digits to tell what other notations do.</p>",
    };
    let (what, digits) = (plain.question.title(), plain.length);
    format!(
        "{few}<div class=\"scroll\"><table><thead><tr><th>{what} of {digits} digits</th><th class=\"num\">right</th><th class=\"num\">difference, points</th><th class=\"num\">tokens</th>\
         <th>an example</th></tr></thead><tbody>{rows}</tbody></table></div>"
    )
}

fn numbers(profile: &NumeracyProfile) -> String {
    let mut rows = String::new();
    for skill in profile.skills.iter().filter(|skill| skill.asked > 0) {
        let limit = |limit: &Limit| match skill.falls {
            true => limit_text(limit, range(skill)),
            false => "no limit".to_owned(),
        };
        let cells: String = skill.limits.iter().map(|one| format!("<td class=\"num\">{}</td>", limit(one))).collect();
        let right: usize = skill.counts.iter().map(|one| one.right).sum();
        write!(
            rows,
            "<tr><th>{} <small>{}</small></th><td class=\"num\">{}</td><td class=\"num\">{right}</td>{cells}<td>{}</td></tr>",
            escape(&skill.title),
            skill.family.title(),
            skill.asked,
            if skill.narrow { "" } else { "budget spent" }
        )
        .expect(WRITES);
    }
    format!(
        "<details class=\"part\"><summary>{}: {}, run {}</summary><div class=\"scroll\"><table class=\"sortable\"><thead><tr><th>skill</th><th class=\"num\">asked</th><th class=\"num\">right</th>\
         <th class=\"num\">90 % limit</th><th class=\"num\">50 %</th><th class=\"num\">10 %</th><th></th></tr></thead><tbody>{rows}</tbody></table></div></details>",
        escape(&profile.model),
        counted(profile.skills.len(), "skill"),
        escape(&profile.run)
    )
}
