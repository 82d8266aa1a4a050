//! Questions that are answered: those of the suites, as they ask them, and some of our own.
use earnest_answer::reader::{Form, same_number};
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Lengths as BenchLengths, Options};
use earnest_tasks::suite::gsm_symbolic::{Prompt, TrailingSpace, draw, own_templates};
use earnest_tasks::suite::nupa::{Adapter, Lengths, NupaOptions, NupaSuite, Operation, TaskId};
use earnest_tasks::suite::{Item, Suite};

use super::wrong::wrong;

/// A number as it is said, and what it is.
#[derive(Debug, Clone)]
pub struct Number {
    /// As it stands in a sentence: `$12.25`.
    pub said: String,
    /// As it is compared: `12.25`.
    pub value: String,
}

/// A question with the numbers that are stated as its answer.
#[derive(Debug, Clone)]
pub struct Case {
    /// `nupa/add_Integer_Integer_Integer`.
    pub task: String,
    /// Language of the question: `en`.
    pub language: &'static str,
    pub prompt: String,
    pub form: Form,
    pub right: Number,
    pub wrong: Number,
    /// A number of the question, where one has the answer's shape.
    pub operand: Option<Number>,
    /// A number that is offered and withdrawn.
    pub rival: Number,
    /// Two numbers of the question.
    pub a: Option<String>,
    pub b: Option<String>,
    pub words: Words,
    /// What is counted: `stamps`.
    pub unit: Option<String>,
    /// Digits are compared, not values.
    pub by_spelling: bool,
}

/// Words for an operation; empty where it has none.
#[derive(Debug, Clone, Copy, Default)]
pub struct Words {
    /// Sign of the operation, plain and in LaTeX.
    pub sign: &'static str,
    pub latex: &'static str,
    /// `Adding «a» and «b»`.
    pub doing: &'static str,
    /// `add «a» and «b»`.
    pub order: &'static str,
    /// `the sum`.
    pub name: &'static str,
    /// Sign of the operation that takes it back.
    pub back: &'static str,
}

/// All cases.
pub fn all() -> Vec<Case> {
    [nupa(), arithmetic_bench(), gsm_mini(), own()].concat()
}

/// Numbers that prompts give as an example of a form; where one of them is the answer is another question.
const EXAMPLES: [&str; 4] = ["123", "10.4", "7/13", "1.23e4"];

/// A number of the right one's shape that is none of the others.
fn other(right: &str, binary: bool, taken: &[&str], first: u64) -> String {
    let free = |text: &String| !taken.iter().chain(&EXAMPLES).any(|taken| same_number(taken, text) || taken == text);
    (first..first + 1000).map(|salt| wrong(right, binary, salt)).find(free).unwrap_or_else(|| wrong(right, binary, first))
}

/// The case of a suite's item.
fn of_item(suite: &str, item: &Item, form: Form, words: Words) -> Case {
    let text = |name: &str| item.covariates.get(name).and_then(|value| value.as_str()).map(str::to_owned);
    let (a, b) = (text("a"), text("b"));
    let binary = item.task == "d2b";
    let right = item.gold.clone();
    let operand = [&b, &a].into_iter().flatten().find_map(|operand| as_answer(operand, &right, &item.task));
    let first = other(&right, binary, &[&right, operand.as_deref().unwrap_or(&right)], 1);
    let rival = other(&right, binary, &[&right, &first, operand.as_deref().unwrap_or(&right)], 5000);
    let number = |text: String| Number { value: text.clone(), said: text };
    Case {
        task: format!("{suite}/{}", item.task),
        language: "en",
        prompt: item.segments.asked().into_owned(),
        form,
        right: number(right),
        wrong: number(first),
        operand: operand.map(number),
        rival: number(rival),
        by_spelling: ["copy", "rev", "space"].contains(&item.task.as_str()) || item.task.starts_with("digit_"),
        a,
        b,
        words,
        unit: None,
    }
}

/// A number of the question in the shape of an answer; none where it has another, or is the answer.
fn as_answer(operand: &str, right: &str, task: &str) -> Option<String> {
    let shape = |text: &str| -> String { text.chars().filter(|c| !c.is_ascii_digit() && *c != '-').collect() };
    let shaped = match task {
        "box" | "length" | "count" => format!("({operand})"),
        "space" => operand.chars().map(String::from).collect::<Vec<_>>().join(" "),
        _ => operand.to_owned(),
    };
    let alike = shape(&shaped) == shape(right) || task == "space";
    let bare = |text: &str| text.trim_matches(['(', ')']).to_owned();
    (alike && !same_number(&bare(&shaped), &bare(right)) && !EXAMPLES.contains(&operand)).then_some(shaped)
}

const ADD: Words =
    Words { sign: "+", latex: "+", doing: "Adding «a» and «b»", order: "add «a» and «b»", name: "sum", back: "-" };
const SUB: Words = Words {
    sign: "-",
    latex: "-",
    doing: "Subtracting «b» from «a»",
    order: "subtract «b» from «a»",
    name: "difference",
    back: "+",
};
const MUL: Words = Words {
    sign: "*",
    latex: "\\times",
    doing: "Multiplying «a» by «b»",
    order: "multiply «a» by «b»",
    name: "product",
    back: "/",
};
const DIV: Words = Words {
    sign: "/",
    latex: "\\div",
    doing: "Dividing «a» by «b»",
    order: "divide «a» by «b»",
    name: "quotient",
    back: "",
};

fn nupa_words(task: TaskId) -> Words {
    use Operation as O;
    let none = Words::default();
    match task.operation {
        O::Add | O::AddEasy => ADD,
        O::Sub => SUB,
        O::MultiplyHard | O::MultiplyEasy => MUL,
        O::TrueDiv => Words { sign: "", latex: "", ..DIV },
        O::FloorDiv => Words { sign: "//", latex: "", ..DIV },
        O::Mod | O::ModEasy => Words { sign: "%", latex: "\\bmod", name: "remainder", back: "", ..DIV },
        O::Max | O::MaxHard => Words { doing: "Comparing «a» and «b»", order: "compare «a» and «b»", name: "maximal number", ..none },
        O::Min | O::MinHard => Words { doing: "Comparing «a» and «b»", order: "compare «a» and «b»", name: "minimal number", ..none },
        O::DigitMax | O::DigitMin => Words {
            doing: "Comparing «a» and «b» digit by digit",
            order: "compare «a» and «b» digit by digit",
            name: "resulting number",
            ..none
        },
        O::DigitAdd => Words {
            doing: "Adding «a» and «b» digit by digit without carrying",
            order: "add «a» and «b» digit by digit without carrying",
            name: "resulting number",
            ..none
        },
        O::GetDigit => Words { doing: "Counting from 0 up to position «b» in «a»", order: "go to position «b» in «a»", name: "digit", ..none },
        O::Length => Words { doing: "Counting the digits of «a»", order: "count the digits of «a»", name: "number of digits", ..none },
        O::Count => Words { doing: "Counting the digit «b» in «a»", order: "count the digit «b» in «a»", name: "count", ..none },
        O::ToFloat => Words { doing: "Converting «a» to a float", order: "convert «a» to a float", name: "float", ..none },
        O::ToScient | O::Sig => Words {
            doing: "Converting «a» to scientific notation",
            order: "convert «a» to scientific notation",
            name: "number in scientific notation",
            ..none
        },
    }
}

fn nupa() -> Vec<Case> {
    let mut cases = Vec::new();
    for (adapter, length) in [(Adapter::Completion, 3), (Adapter::Chat, 5)] {
        let options = NupaOptions { lengths: Lengths::Chosen(vec![length]), per_length: 1, adapter, seed: 45, ..NupaOptions::default() };
        let suite = NupaSuite::new(options).expect("the options are valid");
        for item in suite.items() {
            let task: TaskId = item.task.parse().expect("items are of tasks");
            // The id ends with the form of the answer.
            let form = match item.task.rsplit('_').next() {
                Some("Float") => Form::Float,
                Some("Fraction") => Form::Fraction,
                Some("ScientificNotation") => Form::Scientific,
                _ => Form::Integer,
            };
            cases.push(of_item("nupa", &item, form, nupa_words(task)));
        }
    }
    cases
}

fn arithmetic_bench() -> Vec<Case> {
    let options = Options {
        lengths: BenchLengths::new([2, 4, 7]).expect("the lengths are valid"),
        per_length: 1,
        seed: 45,
        ..Options::default()
    };
    let suite = ArithmeticBench::new(options).expect("the options are valid");
    suite
        .items()
        .map(|item| {
            let none = Words::default();
            let words = match item.task.as_str() {
                "add" | "add_1" => ADD,
                "sub" | "sub_1" => SUB,
                "mul" | "mul_1" => MUL,
                "div" | "div_1" => DIV,
                "copy" => Words { doing: "Copying «a»", order: "copy «a»", name: "copied number", ..none },
                "rev" => Words { doing: "Reversing «a»", order: "reverse «a»", name: "reversed number", ..none },
                "box" => Words { doing: "Putting «a» in parentheses", order: "put «a» in parentheses", name: "number in parentheses", ..none },
                "space" => Words { doing: "Spacing out «a»", order: "space out «a»", name: "spaced number", ..none },
                "length" => Words { doing: "Counting the digits of «a»", order: "count the digits of «a»", name: "number of digits", ..none },
                "count" => Words { doing: "Counting the zeros of «a»", order: "count the zeros of «a»", name: "number of zeros", ..none },
                "b2d" => Words { doing: "Converting «a» to decimal", order: "convert «a» to decimal", name: "decimal number", ..none },
                _ => Words { doing: "Converting «a» to binary", order: "convert «a» to binary", name: "binary number", ..none },
            };
            of_item("arithmetic-bench", &item, Form::Integer, words)
        })
        .collect()
}

fn gsm_mini() -> Vec<Case> {
    let templates = own_templates().expect("the templates are ours");
    let mut cases = Vec::new();
    for (number, template) in templates.iter().enumerate() {
        for (instance, drawn) in draw(template, 45, 2).expect("templates have two questions").into_iter().enumerate() {
            let question = &drawn.row.question;
            let prompt = if instance == 0 { question.clone() } else { Prompt::Gsm.render(question, TrailingSpace::Keep) };
            let right = drawn.row.gold();
            let given: Vec<&str> = question
                .split_whitespace()
                .map(|word| word.trim_end_matches([',', '.', '?', ';', ':']))
                .filter(|word| word.len() > 1 && word.bytes().all(|b| b.is_ascii_digit()))
                .collect();
            let operand = given.iter().find(|given| !same_number(given, &right)).map(|given| (*given).to_owned());
            let unit = question.rsplit_once("ow many ").and_then(|(_, rest)| rest.split_whitespace().next());
            let unit = unit.map(|unit| unit.trim_end_matches('?')).filter(|unit| unit.ends_with('s') && *unit != "times");
            cases.push(word_problem(&format!("gsm-mini/{number}"), "en", &prompt, ("", ""), &right, operand.as_deref(), (given.first(), given.get(1)), unit));
        }
    }
    cases
}

#[expect(clippy::too_many_arguments, reason = "the columns of a table")]
fn word_problem(
    task: &str,
    language: &'static str,
    prompt: &str,
    around: (&str, &str),
    right: &str,
    operand: Option<&str>,
    given: (Option<&&str>, Option<&&str>),
    unit: Option<&str>,
) -> Case {
    let number = |text: &str| {
        let comma = ["de", "fr", "es"].contains(&language);
        let spelled = if comma { text.replace('.', ",") } else { text.to_owned() };
        let (sign, digits) = match spelled.strip_prefix('-') {
            Some(digits) => ("-", digits),
            None => ("", spelled.as_str()),
        };
        Number { said: format!("{sign}{}{digits}{}", around.0, around.1), value: text.to_owned() }
    };
    let operand = operand.filter(|operand| !same_number(operand, right));
    let first = other(right, false, &[right, operand.unwrap_or(right)], 1);
    let rival = other(right, false, &[right, &first, operand.unwrap_or(right)], 5000);
    Case {
        task: task.to_owned(),
        language,
        prompt: prompt.to_owned(),
        form: Form::Number,
        right: number(right),
        wrong: number(&first),
        operand: operand.map(number),
        rival: number(&rival),
        a: given.0.map(|text| (*text).to_owned()),
        b: given.1.map(|text| (*text).to_owned()),
        words: Words::default(),
        unit: unit.map(str::to_owned),
        by_spelling: false,
    }
}

/// Questions of our own: name, language, question, sign before and behind the answer, answer, number of the question, two of them, unit.
type Own = (&'static str, &'static str, &'static str, (&'static str, &'static str), &'static str, Option<&'static str>, (&'static str, &'static str), Option<&'static str>);

const OWN: &[Own] = &[
    ("half", "en", "What is 8/2?", ("", ""), "4", Some("8"), ("8", "2"), None),
    ("age", "en", "Tom is 2 years old. His sister Ana is 3 years older. How old is Ana?", ("", ""), "5", Some("3"), ("2", "3"), None),
    ("marbles", "en", "Ben has 50 marbles and gives 20 of them away. How many marbles does he keep?", ("", ""), "30", Some("20"), ("50", "20"), Some("marbles")),
    ("bill", "en", "Three teas cost $2.50 each and a cake costs $4.75. How much is the bill?", ("$", ""), "12.25", Some("4.75"), ("$2.50", "$4.75"), None),
    ("rise", "en", "A rent rises from 800 to 1000 dollars. By how many percent does it rise?", ("", "%"), "25", None, ("800", "1000"), None),
    ("cold", "en", "It was 4 degrees at noon. By midnight it was 11 degrees colder. What was the temperature at midnight?", ("", ""), "-7", None, ("4", "11"), Some("degrees")),
    ("rows", "en", "Answer with a number only.\n\nA hall has 24 rows of 35 seats. How many seats does it have?", ("", ""), "840", Some("35"), ("24", "35"), Some("seats")),
    ("trip", "en", "<|im_start|>user\nA train runs 150 km in 2.5 hours. How many km does it run in an hour?<|im_end|>\n<|im_start|>assistant\n", ("", ""), "60", Some("150"), ("150", "2.5"), Some("km")),
    ("cake", "en", "Q: A cake is cut into 12 pieces and 9 are eaten. What fraction of the cake is left, in lowest terms?\nA:", ("", ""), "1/4", None, ("12", "9"), None),
    ("mean", "en", "Find the mean of 4.5, 6.2 and 7.3.", ("", ""), "6.0", Some("6.2"), ("4.5", "7.3"), None),
    ("power", "en", "What's 2 to the power of 16?", ("", ""), "65536", None, ("2", "16"), None),
    ("left", "en", "What is the remainder when 47 is divided by 5?", ("", ""), "2", Some("5"), ("47", "5"), None),
    ("pages", "en", "Solve the problem and put your answer in \\boxed{}.\n\nMia reads 18 pages a day. How many pages does she read in 14 days?", ("", ""), "252", Some("18"), ("18", "14"), Some("pages")),
    ("Birnen", "de", "Ein Bauer hat 96 Birnen und verkauft 58 davon. Wie viele Birnen bleiben ihm?", ("", ""), "38", Some("58"), ("96", "58"), None),
    ("Kino", "de", "Vier Karten kosten zusammen 38,40 €. Was kostet eine Karte?", ("", " €"), "9.60", Some("38.40"), ("38,40 €", "4"), None),
    ("livres", "fr", "Une bibliothèque a 12 étagères de 45 livres. Combien de livres a-t-elle ?", ("", ""), "540", Some("45"), ("12", "45"), None),
    ("huevos", "es", "Una granja recoge 84 huevos y rompe 15. ¿Cuántos huevos quedan?", ("", ""), "69", Some("15"), ("84", "15"), None),
    ("苹果", "zh", "小明有35个苹果,吃了8个。还剩多少个苹果?", ("", ""), "27", Some("35"), ("35", "8"), None),
];

fn own() -> Vec<Case> {
    OWN.iter()
        .map(|(name, language, prompt, around, right, operand, (a, b), unit)| {
            word_problem(&format!("own/{name}"), language, prompt, *around, right, *operand, (Some(a), Some(b)), *unit)
        })
        .collect()
}
