//! Sentences in which an answer is stated, in the manner of models of today.
use super::cases::{Case, Number};

/// A text with places for numbers and words; a case that has not all of them is not answered in it.
///
/// | place | filled with |
/// |---|---|
/// | `«n»` | the stated number; `«l»` in LaTeX, `«j»` as a JSON value |
/// | `«m»` | another number of its shape |
/// | `«a»`, `«b»` | two numbers of the question |
/// | `«x»` | the operation: `12 + 7`; `«lx»` in LaTeX |
/// | `«doing»`, `«order»`, `«name»` | `Adding 12 and 7`, `add 12 and 7`, `sum` |
/// | `«back»` | the operation on the stated number that gives the first operand back |
/// | `«unit»` | what is counted |
pub struct Frame {
    pub name: &'static str,
    /// Language of the sentence; none for marks and signs alone.
    pub language: Option<&'static str>,
    pub text: &'static str,
}

const fn en(name: &'static str, text: &'static str) -> Frame {
    Frame { name, language: Some("en"), text }
}

const fn any(name: &'static str, text: &'static str) -> Frame {
    Frame { name, language: None, text }
}

const fn of(language: &'static str, name: &'static str, text: &'static str) -> Frame {
    Frame { name, language: Some(language), text }
}

/// The frames.
pub const FRAMES: &[Frame] = &[
    // The number alone, and marks.
    any("bare", "«n»"),
    any("bare, space before", " «n»"),
    any("bare with a stop", "«n»."),
    any("equals sign first", "= «n»"),
    any("arrow first", "→ «n»"),
    any("bold line", "**«n»**"),
    any("boxed", "\\boxed{«l»}"),
    any("boxed in dollars", "$\\boxed{«l»}$"),
    any("boxed on display", "\\[\n\\boxed{«l»}\n\\]"),
    any("hashes", "#### «n»"),
    any("tag", "<answer>«n»</answer>"),
    any("JSON", "{\"answer\": «j»}"),
    any("JSON in a fence", "```json\n{\n  \"answer\": «j»\n}\n```"),
    any("JSON with operands", "{\"a\": \"«a»\", \"b\": \"«b»\", \"result\": «j»}"),
    any("code span", "`«n»`"),
    // A sentence.
    en("it is", "It is «n»."),
    en("it's", "It's «n»."),
    en("we get", "We get «n»."),
    en("you get", "You get «n»."),
    en("I get", "I get «n»."),
    en("the result is", "The result is «n»."),
    en("the result comes to", "The result comes to «n»."),
    en("that makes", "That makes «n»."),
    en("that gives us", "That gives us «n»."),
    en("that leaves us with", "This leaves us with «n»."),
    en("works out to", "This works out to «n»."),
    en("is the answer", "«n» is the answer."),
    en("is what you get", "«n» is what you get."),
    en("the answer is", "The answer is «n»."),
    en("the answer would be", "The answer would be «n»."),
    en("so the answer is, bold", "So the answer is **«n»**."),
    en("therefore we have", "Therefore, we have «n»."),
    en("hence", "Hence «n»."),
    en("so", "So, «n»."),
    en("my answer", "My answer is «n»."),
    en("ended up with", "After working through it, I ended up with «n»."),
    en("colon", "Working it out: «n»"),
    en("should be", "It should be «n»."),
    en("final answer, colon", "Final answer: «n»"),
    en("bold heading", "**Final Answer**\n\n«n»"),
    en("heading", "## Answer\n\n«n»"),
    en("bold label", "**Answer:** «n»"),
    en("sure", "Sure! The answer is «n»."),
    en("chatty", "Great question! It comes to «n». 😊"),
    en("I hope it is correct", "Therefore, the final answer is: $\\boxed{«l»}$. I hope it is correct."),
    en("line of its own, bold", "Here is the result:\n\n**«n»**"),
    en("display", "We obtain\n\\[\n«l»\n\\]"),
    // The operation.
    any("equation", "«x» = «n»"),
    any("equation in LaTeX", "$«lx» = «l»$"),
    any("equation on display", "\\[\n«lx» = «l»\n\\]"),
    any("equation, bold result", "«x» = **«n»**"),
    en("equals", "«x» equals «n»."),
    en("name is", "The «name» is «n»."),
    en("doing gives", "«doing» gives «n»."),
    en("doing, we get", "«doing», we get «n»."),
    en("if you do it", "If you «order», you get «n»."),
    en("to do it", "To solve this, we «order». The result is «n»."),
    en("you asked", "You asked me to «order»: that's «n»."),
    en("equation, then sentence", "Let's compute it step by step.\n\n«x» = «n»\n\nSo the result is «n»."),
    // Premises, checks, offers.
    en("given", "Given «a» and «b», the result is «n»."),
    en("since", "Since the two numbers are «a» and «b», it is «n»."),
    en("because", "It is «n», because the two numbers were «a» and «b»."),
    en("answer first", "«n»\n\nExplanation: the first number is «a» and the second one is «b»."),
    en("check", "The result is «n».\n\nCheck: «back»"),
    en("offer", "It is «n». Let me know if you need anything else!"),
    en("offer to show steps", "The answer is «n».\n\nWould you like me to show the steps?"),
    en("offer with numbers", "It is «n». Shall we try another one, for example with 64 and 81?"),
    // Steps.
    en("steps", "1. Take «a».\n2. Take «b».\n3. «doing» gives «n»."),
    en("steps, bold", "**Step 1:** Write down «a».\n\n**Step 2:** Write down «b».\n\n**Step 3:** Work it out.\n\n**Answer:** «n»"),
    en("start and end", "We start with «a». Then we take «b» into account. We end up with «n»."),
    any("table", "| | |\n|---|---|\n| a | «a» |\n| b | «b» |\n| = | «n» |"),
    en("table with words", "| Step | Value |\n|---|---|\n| First number | «a» |\n| Second number | «b» |\n| Result | «n» |"),
    en("lines", "First number: «a»\nSecond number: «b»\nResult: «n»"),
    en("corrected", "I get «m». Wait, that's not right. It is «n»."),
    en("not but", "The answer is not «m» but «n»."),
    // Thinking.
    any("thinking, bare", "<think>\nTake «a» first. Perhaps it is «m»? No, let me do that again.\n</think>\n\n«n»"),
    en("thinking, sentence", "<think>\nThey want «m» or so. Let me see.\n</think>\n\nThe result is «n»."),
    // Units.
    en("there are", "There are «n» «unit»."),
    en("number and unit", "«n» «unit»"),
    en("that makes, unit", "That makes «n» «unit» in total."),
    en("bold with unit", "So in the end it is **«n» «unit»**."),
    // Other languages.
    of("de", "de: Ergebnis", "Das Ergebnis ist «n»."),
    of("de", "de: ergibt", "Das ergibt «n»."),
    of("de", "de: es sind", "Also sind es «n»."),
    of("fr", "fr: résultat", "Le résultat est «n»."),
    of("fr", "fr: on obtient", "On obtient donc «n»."),
    of("es", "es: resultado", "El resultado es «n»."),
    of("es", "es: por lo tanto", "Por lo tanto, obtenemos «n»."),
    of("zh", "zh: 答案", "答案是«n»。"),
    of("zh", "zh: 所以", "所以结果是 «n»。"),
    of("pt", "pt: resultado", "O resultado é «n»."),
    of("it", "it: quindi", "Quindi il risultato è «n»."),
    of("ja", "ja: 答え", "答えは«n»です。"),
];

impl Frame {
    /// The completion that states a number; none where the frame does not fit the case.
    pub fn fill(&self, case: &Case, number: &Number) -> Option<String> {
        let fits = match self.language {
            None | Some("en") if case.language == "en" => true,
            None => true,
            // A question in English is answered in any language, others in their own.
            Some(language) => language == case.language || case.language == "en",
        };
        if !fits {
            return None;
        }
        let mut text = String::new();
        let mut rest = self.text;
        while let Some((before, after)) = rest.split_once('«') {
            let (place, behind) = after.split_once('»')?;
            text.push_str(before);
            text.push_str(&filled(place, case, number)?);
            rest = behind;
        }
        text.push_str(rest);
        Some(text)
    }
}

fn filled(place: &str, case: &Case, number: &Number) -> Option<String> {
    let words = &case.words;
    let operands = |text: &str| -> Option<String> {
        let mut text = text.to_owned();
        for (place, operand) in [("«a»", &case.a), ("«b»", &case.b)] {
            if text.contains(place) {
                text = text.replace(place, operand.as_ref()?);
            }
        }
        Some(text).filter(|text| !text.is_empty())
    };
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    match place {
        "n" => Some(number.said.clone()),
        "l" => Some(latex(&number.said)),
        "j" => {
            let plain = serde_json::from_str::<serde_json::Number>(&number.said).is_ok();
            Some(if plain { number.said.clone() } else { format!("\"{}\"", number.said) })
        }
        "m" => Some(case.rival.said.clone()),
        "a" => case.a.clone(),
        "b" => case.b.clone(),
        "x" => operation(some(words.sign)?, &case.a, &case.b, str::to_owned),
        "lx" => operation(some(words.latex)?, &case.a, &case.b, latex),
        "doing" => operands(words.doing),
        "order" => operands(words.order),
        "name" => some(words.name),
        "back" => {
            let (a, b) = (case.a.as_ref()?, case.b.as_ref()?);
            some(words.back).map(|sign| format!("{} {sign} {b} = {a}", number.said))
        }
        "unit" => case.unit.clone(),
        _ => None,
    }
}

fn operation(sign: String, a: &Option<String>, b: &Option<String>, spelled: fn(&str) -> String) -> Option<String> {
    Some(format!("{} {sign} {}", spelled(a.as_ref()?), spelled(b.as_ref()?)))
}

/// A number in LaTeX.
fn latex(said: &str) -> String {
    if let Some((above, below)) = said.split_once('/') {
        return match above.strip_prefix('-') {
            Some(above) => format!("-\\frac{{{above}}}{{{below}}}"),
            None => format!("\\frac{{{above}}}{{{below}}}"),
        };
    }
    if let Some((mantissa, power)) = said.split_once('e') {
        return format!("{mantissa} \\times 10^{{{power}}}");
    }
    said.replace('$', "\\$").replace('%', "\\%").replace(" €", "\\,€")
}
