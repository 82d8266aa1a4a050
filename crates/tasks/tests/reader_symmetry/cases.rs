//! Questions that are answered: those of the suites, as they ask them, and some of our own.
use earnest_answer::reader::{Form, same_number};
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Lengths as BenchLengths, Options};
use earnest_tasks::suite::gsm_symbolic::{Prompt, TrailingSpace, draw, own_templates};
use earnest_tasks::suite::nupa::{Adapter, Lengths, NupaOptions, NupaSuite, Operation, TaskId};
use earnest_tasks::suite::{Item, Items, Suite};

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
    /// Noun of the counted things: `stamps`.
    pub unit: Option<String>,
    /// A sentence that states «n» as the answer to this very question.
    pub statement: Option<String>,
    /// Worked steps with «n» at their end.
    pub solution: Option<String>,
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
    /// `sum`.
    pub name: &'static str,
    /// `«a» and «b» add up to «n».`
    pub says: &'static str,
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
    (first..first + 1000)
        .map(|salt| wrong(right, binary, salt))
        .find(free)
        .unwrap_or_else(|| wrong(right, binary, first))
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
        statement: Some(words.says.to_owned()).filter(|text| !text.is_empty()),
        solution: None,
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

const ADD: Words = Words {
    sign: "+",
    latex: "+",
    doing: "Adding «a» and «b»",
    order: "add «a» and «b»",
    name: "sum",
    says: "«a» and «b» add up to «n».",
    back: "-",
};
const SUB: Words = Words {
    sign: "-",
    latex: "-",
    doing: "Subtracting «b» from «a»",
    order: "subtract «b» from «a»",
    name: "difference",
    says: "«a» minus «b» is «n».",
    back: "+",
};
const MUL: Words = Words {
    sign: "*",
    latex: "\\times",
    doing: "Multiplying «a» by «b»",
    order: "multiply «a» by «b»",
    name: "product",
    says: "«a» times «b» is «n».",
    back: "/",
};
const DIV: Words = Words {
    sign: "/",
    latex: "\\div",
    doing: "Dividing «a» by «b»",
    order: "divide «a» by «b»",
    name: "quotient",
    says: "«b» goes into «a» exactly «n» times.",
    back: "",
};

/// Words of a task that has no sign.
const fn words(doing: &'static str, order: &'static str, name: &'static str, says: &'static str) -> Words {
    Words { sign: "", latex: "", doing, order, name, says, back: "" }
}

fn nupa_words(task: TaskId) -> Words {
    use Operation as O;
    let by_digits = ("Comparing «a» and «b» digit by digit", "compare «a» and «b» digit by digit");
    match task.operation {
        O::Add | O::AddEasy => ADD,
        O::Sub => SUB,
        O::MultiplyHard | O::MultiplyEasy => MUL,
        O::TrueDiv => Words { sign: "", latex: "", says: "«a» divided by «b» is «n».", ..DIV },
        O::FloorDiv => Words { sign: "//", latex: "", ..DIV },
        O::Mod | O::ModEasy => {
            let says = "«a» divided by «b» leaves a remainder of «n».";
            Words { sign: "%", latex: "\\bmod", name: "remainder", says, ..DIV }
        }
        O::Max | O::MaxHard => {
            words("Comparing «a» and «b»", "compare «a» and «b»", "maximal number", "«n» is the larger of the two.")
        }
        O::Min | O::MinHard => {
            words("Comparing «a» and «b»", "compare «a» and «b»", "minimal number", "«n» is the smaller of the two.")
        }
        O::DigitMax => words(by_digits.0, by_digits.1, "resulting number", "The larger digits make up «n»."),
        O::DigitMin => words(by_digits.0, by_digits.1, "resulting number", "The smaller digits make up «n»."),
        O::DigitAdd => words(
            "Adding «a» and «b» digit by digit",
            "add «a» and «b» digit by digit",
            "resulting number",
            "Without any carry, the digits come to «n».",
        ),
        O::GetDigit => words(
            "Counting from the left in «a»",
            "go to position «b» in «a»",
            "digit",
            "The digit at position «b» is «n».",
        ),
        O::Length => {
            words("Counting the digits of «a»", "count the digits of «a»", "number of digits", "«a» has «n» digits.")
        }
        O::Count => words(
            "Counting the digit «b» in «a»",
            "count the digit «b» in «a»",
            "count",
            "The digit «b» occurs «n» times in «a».",
        ),
        O::ToFloat => words("Converting «a» to a float", "convert «a» to a float", "float", "As a float, «a» is «n»."),
        O::ToScient | O::Sig => words(
            "Converting «a» to scientific notation",
            "convert «a» to scientific notation",
            "number in scientific notation",
            "In scientific notation, «a» is «n».",
        ),
    }
}

fn bench_words(task: &str) -> Words {
    match task {
        "add" | "add_1" => ADD,
        "sub" | "sub_1" => SUB,
        "mul" | "mul_1" => MUL,
        "div" | "div_1" => DIV,
        "copy" => words("Copying «a»", "copy «a»", "copied number", "The number reads «n»."),
        "rev" => words("Reversing «a»", "reverse «a»", "reversed number", "Reversed, «a» becomes «n»."),
        "box" => words(
            "Putting «a» in parentheses",
            "put «a» in parentheses",
            "number in parentheses",
            "In parentheses it is «n».",
        ),
        "space" => words("Spacing out «a»", "space out «a»", "spaced number", "With the spaces it reads «n»."),
        "length" => {
            words("Counting the digits of «a»", "count the digits of «a»", "number of digits", "«a» has «n» digits.")
        }
        "count" => words(
            "Counting the zeros of «a»",
            "count the zeros of «a»",
            "number of zeros",
            "There are «n» zeros in «a».",
        ),
        "b2d" => {
            words("Converting «a» to decimal", "convert «a» to decimal", "decimal number", "In decimal, «a» is «n».")
        }
        _ => words("Converting «a» to binary", "convert «a» to binary", "binary number", "In binary, «a» is «n»."),
    }
}

/// NUPA as it asks base models, at two lengths, and as it asks chat models.
fn nupa_suites() -> Vec<NupaSuite> {
    let suite = |(adapter, lengths)| {
        let lengths = Lengths::Chosen(lengths);
        let options = NupaOptions { lengths, per_length: 1, adapter, seed: 45, ..NupaOptions::default() };
        NupaSuite::new(options).expect("the options are valid")
    };
    [(Adapter::Completion, vec![2, 9]), (Adapter::Chat, vec![5])].into_iter().map(suite).collect()
}

fn nupa() -> Vec<Case> {
    let of = |item: Item| {
        let task: TaskId = item.task.parse().expect("items are of tasks");
        // The id ends with the form of the answer.
        let form = match item.task.rsplit('_').next() {
            Some("Float") => Form::Float,
            Some("Fraction") => Form::Fraction,
            Some("ScientificNotation") => Form::Scientific,
            _ => Form::Integer,
        };
        of_item("nupa", &item, form, nupa_words(task))
    };
    nupa_suites().iter().flat_map(|suite| suite.iter().map(of).collect::<Vec<_>>()).collect()
}

fn bench_suite() -> ArithmeticBench {
    let lengths = BenchLengths::new([2, 4, 7]).expect("the lengths are valid");
    let options = Options { lengths, per_length: 1, seed: 45, ..Options::default() };
    ArithmeticBench::new(options).expect("the options are valid")
}

fn arithmetic_bench() -> Vec<Case> {
    let of = |item: Item| of_item("arithmetic-bench", &item, Form::Integer, bench_words(&item.task));
    bench_suite().iter().map(of).collect()
}

/// A suite with its items and a wrong number for each of them.
type Scored = (Suite, Vec<(Item, String)>);

/// The suites whose scores are looked at.
pub fn scored() -> Vec<Scored> {
    let mut suites: Vec<Suite> = vec![Suite::new(bench_suite())];
    suites.extend(nupa_suites().into_iter().map(Suite::new));
    let with_wrong = |item: Item| {
        let wrong = other(&item.gold, item.task == "d2b", &[&item.gold], 1);
        (item, wrong)
    };
    suites
        .into_iter()
        .map(|suite| {
            let items = suite.items.iter().map(with_wrong).collect();
            (suite, items)
        })
        .collect()
}

/// Sentences that answer the templates of `gsm-mini`.
const STATEMENTS: [&str; 16] = [
    "«n» rolls are left.",
    "«n» liters remain in the tank.",
    "That is «n» kilometers.",
    "The price to pay is «n».",
    "The three have «n» stamps together.",
    "There are «n» kilograms of books in each box.",
    "In all, one pays «n».",
    "«n» students want to see the forest.",
    "In the end, «n» pages are read.",
    "«n» passengers are on the train then.",
    "He will be «n».",
    "«n» of them grow.",
    "The journey takes «n» minutes.",
    "«n» grams are still missing.",
    "Each child gets «n».",
    "«n» customers are served on that day.",
];

/// A solution without its last line, with «n» for the answer at the end of its steps.
fn open_solution(solution: &str, right: &str) -> Option<String> {
    let (steps, _) = solution.rsplit_once("\n####")?;
    let (before, behind) = steps.rsplit_once(right)?;
    Some(format!("{before}«n»{behind}"))
}

fn gsm_mini() -> Vec<Case> {
    let templates = own_templates().expect("the templates are ours");
    let mut cases = Vec::new();
    for (number, template) in templates.iter().enumerate() {
        for (instance, drawn) in draw(template, 45, 2).expect("templates have two questions").into_iter().enumerate() {
            let question = &drawn.row.question;
            let prompt =
                if instance == 0 { question.clone() } else { Prompt::Gsm.render(question, TrailingSpace::Keep) };
            let right = drawn.row.gold();
            let given: Vec<&str> = question
                .split_whitespace()
                .map(|word| word.trim_end_matches([',', '.', '?', ';', ':']))
                .filter(|word| word.len() > 1 && word.bytes().all(|b| b.is_ascii_digit()))
                .collect();
            let operand = given.iter().find(|given| !same_number(given, &right)).map(|given| (*given).to_owned());
            let unit = question.rsplit_once("ow many ").and_then(|(_, rest)| rest.split_whitespace().next());
            let unit =
                unit.map(|unit| unit.trim_end_matches('?')).filter(|unit| unit.ends_with('s') && *unit != "times");
            let solution = open_solution(&drawn.row.answer, &right).expect("solutions end with their result");
            let mut case = word_problem("gsm-mini", "en", &prompt, ("", ""), &right, operand.as_deref());
            case.task = format!("gsm-mini/{number}");
            (case.a, case.b) = (given.first().map(|&text| text.to_owned()), given.get(1).map(|&text| text.to_owned()));
            (case.unit, case.statement, case.solution) =
                (unit.map(str::to_owned), Some(STATEMENTS[number].to_owned()), Some(solution));
            cases.push(case);
        }
    }
    cases
}

/// A question in words.
fn word_problem(
    task: &str,
    language: &'static str,
    prompt: &str,
    around: (&str, &str),
    right: &str,
    operand: Option<&str>,
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
        a: None,
        b: None,
        words: Words::default(),
        unit: None,
        statement: None,
        solution: None,
        by_spelling: false,
    }
}

/// A question of our own.
struct Own {
    name: &'static str,
    language: &'static str,
    prompt: &'static str,
    /// Signs before and behind the answer.
    around: (&'static str, &'static str),
    right: &'static str,
    /// One of the question's numbers that could be an answer.
    operand: Option<&'static str>,
    a: &'static str,
    b: &'static str,
    unit: Option<&'static str>,
    statement: &'static str,
    solution: &'static str,
}

const fn own_in(
    language: &'static str,
    name: &'static str,
    prompt: &'static str,
    right: &'static str,
    a: &'static str,
    b: &'static str,
) -> Own {
    Own {
        name,
        language,
        prompt,
        around: ("", ""),
        right,
        operand: None,
        a,
        b,
        unit: None,
        statement: "",
        solution: "",
    }
}

const fn own_en(
    name: &'static str,
    prompt: &'static str,
    right: &'static str,
    a: &'static str,
    b: &'static str,
) -> Own {
    own_in("en", name, prompt, right, a, b)
}

const OWN: &[Own] = &[
    Own {
        operand: Some("8"),
        statement: "8 divided by 2 is «n».",
        solution: "8/2 = «n»",
        ..own_en("half", "What is 8/2?", "4", "8", "2")
    },
    Own {
        operand: Some("3"),
        statement: "She's «n».",
        solution: "Ana is 3 years older than Tom, who is 2, so she is 2 + 3 = «n» years old.",
        ..own_en("age", "Tom is 2 years old. His sister Ana is 3 years older. How old is Ana?", "5", "2", "3")
    },
    Own {
        operand: Some("20"),
        unit: Some("marbles"),
        statement: "He keeps «n».",
        solution: "Ben had 50 marbles. He gave 20 away, so he has 50 - 20 = «n» marbles left.",
        ..own_en(
            "marbles",
            "Ben has 50 marbles and gives 20 of them away. How many marbles does he keep?",
            "30",
            "50",
            "20",
        )
    },
    Own {
        around: ("$", ""),
        operand: Some("4.75"),
        statement: "The bill comes to «n».",
        solution: "The teas cost 3 * $2.50 = $7.50.\nWith the cake, that's $7.50 + $4.75 = «n».",
        ..own_en(
            "bill",
            "Three teas cost $2.50 each and a cake costs $4.75. How much is the bill?",
            "12.25",
            "$2.50",
            "$4.75",
        )
    },
    Own {
        around: ("", "%"),
        statement: "The rent rises by «n».",
        solution: "The rent rises by 1000 - 800 = 200 dollars.\nThat is 200 / 800 * 100 = «n».",
        ..own_en(
            "rise",
            "A rent rises from 800 to 1000 dollars. By how many percent does it rise?",
            "25",
            "800",
            "1000",
        )
    },
    Own {
        unit: Some("degrees"),
        statement: "At midnight it was «n» degrees.",
        solution: "It was 4 degrees, and it got 11 degrees colder: 4 - 11 = «n»",
        ..own_en(
            "cold",
            "It was 4 degrees at noon. By midnight it was 11 degrees colder. What was the temperature at midnight?",
            "-7",
            "4",
            "11",
        )
    },
    Own {
        operand: Some("35"),
        unit: Some("seats"),
        statement: "The hall has «n» seats.",
        solution: "If each of the 24 rows has 35 seats, the hall has 24 * 35 = «n» seats.",
        ..own_en(
            "rows",
            "Answer with a number only.\n\nA hall has 24 rows of 35 seats. How many seats does it have?",
            "840",
            "24",
            "35",
        )
    },
    Own {
        operand: Some("150"),
        unit: Some("km"),
        statement: "It runs «n» km in an hour.",
        solution: "In 2.5 hours the train runs 150 km, so in an hour it runs 150 / 2.5 = «n» km.",
        ..own_en(
            "trip",
            "<|im_start|>user\nA train runs 150 km in 2.5 hours. How many km does it run in an hour?<|im_end|>\n<|im_start|>assistant\n",
            "60",
            "150",
            "2.5",
        )
    },
    Own {
        statement: "«n» of the cake is left.",
        solution: "12 - 9 = 3 pieces are left.\nThat is 3/12 = «n» of the cake.",
        ..own_en(
            "cake",
            "Q: A cake is cut into 12 pieces and 9 are eaten. What fraction of the cake is left, in lowest terms?\nA:",
            "1/4",
            "12",
            "9",
        )
    },
    Own {
        operand: Some("6.2"),
        statement: "Their mean is «n».",
        solution: "4.5 + 6.2 + 7.3 = 18.0\n18.0 / 3 = «n»",
        ..own_en("mean", "Find the mean of 4.5, 6.2 and 7.3.", "6.0", "4.5", "7.3")
    },
    Own {
        statement: "2 to the power of 16 is «n».",
        solution: "2^10 = 1024 and 2^6 = 64, so 2^16 = 1024 * 64 = «n»",
        ..own_en("power", "What's 2 to the power of 16?", "65536", "2", "16")
    },
    Own {
        operand: Some("5"),
        statement: "The remainder is «n».",
        solution: "5 goes into 47 nine times, which is 45.\n47 - 45 = «n»",
        ..own_en("left", "What is the remainder when 47 is divided by 5?", "2", "47", "5")
    },
    Own {
        operand: Some("18"),
        unit: Some("pages"),
        statement: "She reads «n» pages in 14 days.",
        solution: "Each day she reads 18 pages. Over 14 days, that's 14 * 18 = «n» pages.",
        ..own_en(
            "pages",
            "Solve the problem and put your answer in \\boxed{}.\n\nMia reads 18 pages a day. How many pages does she read in 14 days?",
            "252",
            "18",
            "14",
        )
    },
    Own {
        operand: Some("58"),
        statement: "Ihm bleiben «n» Birnen.",
        solution: "Er hatte 96 Birnen und verkauft 58 davon: 96 - 58 = «n»",
        ..own_in(
            "de",
            "Birnen",
            "Ein Bauer hat 96 Birnen und verkauft 58 davon. Wie viele Birnen bleiben ihm?",
            "38",
            "96",
            "58",
        )
    },
    Own {
        around: ("", " €"),
        operand: Some("38.40"),
        statement: "Eine Karte kostet «n».",
        solution: "4 Karten kosten 38,40 €, eine also 38,40 € / 4 = «n».",
        ..own_in("de", "Kino", "Vier Karten kosten zusammen 38,40 €. Was kostet eine Karte?", "9.60", "38,40 €", "4")
    },
    Own {
        operand: Some("45"),
        statement: "Elle a «n» livres.",
        solution: "Il y a 12 étagères de 45 livres, donc 12 × 45 = «n» livres.",
        ..own_in(
            "fr",
            "livres",
            "Une bibliothèque a 12 étagères de 45 livres. Combien de livres a-t-elle ?",
            "540",
            "12",
            "45",
        )
    },
    Own {
        operand: Some("15"),
        statement: "Quedan «n» huevos.",
        solution: "Había 84 huevos y se rompieron 15: 84 - 15 = «n» huevos.",
        ..own_in("es", "huevos", "Una granja recoge 84 huevos y rompe 15. ¿Cuántos huevos quedan?", "69", "84", "15")
    },
    Own {
        operand: Some("35"),
        statement: "还剩«n»个苹果。",
        solution: "小明有35个苹果,吃了8个,35 - 8 = «n»",
        ..own_in("zh", "苹果", "小明有35个苹果,吃了8个。还剩多少个苹果?", "27", "35", "8")
    },
];

fn own() -> Vec<Case> {
    let of = |own: &Own| Case {
        task: format!("own/{}", own.name),
        a: Some(own.a.to_owned()),
        b: Some(own.b.to_owned()),
        unit: own.unit.map(str::to_owned),
        statement: Some(own.statement.to_owned()),
        solution: Some(own.solution.to_owned()),
        ..word_problem("own", own.language, own.prompt, own.around, own.right, own.operand)
    };
    OWN.iter().map(of).collect()
}
