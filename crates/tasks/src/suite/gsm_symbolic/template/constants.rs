//! The lists that templates name (`names`, `fractions`, ...).
//!
//! The authors' own lists are not published. Sizes and members here were inferred from their released questions; the order
//! matters only where a template cuts a list (`fraction_nums[:4]`).
use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::value::Value;

const NAMES_MALE: &str = "Alejandro Ali Andre Arash Arjun Benjamin Bodhi Carlos DeShawn Diego Esteban Faisal Gabriel \
    Hiroshi Ibrahim Jamal James Jin Kai Leon Liam Luca Luis Mateo Mohammed Noah Oliver Oscar Pavel Qasim Ravi Sanjay \
    Santiago Tariq Theo Thiago Umar Viktor Wei Xavier Yuki Yusuf";

const NAMES_FEMALE: &str = "Aisha Amelia Ananya Ava Beatriz Camila Chen Daphne Elena Emma Fatima Gabrielle Haruka \
    Isabella Jasmine Kayla Keisha Kimia Leilani Mei Mia Nadia Nia Olga Olivia Priya Quinn Rania Roya Sakura Sofia Sophia \
    Tara Uma Valentina Valeria Winnie Xena Yara Zahra";

const FRUITS: &str = "apple apricot banana grape kiwi orange pear pineapple plum pomegranate watermelon";

const COLORS: &str =
    "black blue brown cyan gray green indigo magenta orange pink purple red teal turquoise white yellow";

const SPORTS: &str = "badminton basketball cricket football hurling tennis volleyball";

const CITIES: [&str; 29] = [
    "Amsterdam",
    "Auckland",
    "Bangkok",
    "Beijing",
    "Berlin",
    "Buenos Aires",
    "Cairo",
    "Cape Town",
    "Dubai",
    "Hanoi",
    "Helsinki",
    "Istanbul",
    "Lisbon",
    "London",
    "Marrakech",
    "Mexico City",
    "Moscow",
    "Mumbai",
    "Nairobi",
    "New York City",
    "Reykjavik",
    "Seoul",
    "Singapore",
    "Stockholm",
    "Sydney",
    "São Paulo",
    "Tokyo",
    "Toronto",
    "Vienna",
];

const WEEKDAYS: &str = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday";

const CARDINALS: [&str; 11] = ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"];

/// The list with this name.
pub(super) fn constant(name: &str) -> Option<Value> {
    CONSTANTS.get(name).cloned().map(Value::List)
}

static CONSTANTS: LazyLock<BTreeMap<&'static str, Vec<Value>>> = LazyLock::new(|| {
    let alphabetic = fractions_in_words();
    let numeric = fractions_in_digits();
    let both = alphabetic.iter().chain(&numeric).cloned().collect();
    let names = words(NAMES_MALE).into_iter().chain(words(NAMES_FEMALE)).collect();
    let times = (2..=10).map(|n| number(&format!("{} times", CARDINALS[n]), n as i64)).collect();
    let decimals = (1..=9).map(|tenths| Value::Float(f64::from(tenths) / 10.0)).collect();
    BTreeMap::from([
        ("names_male", words(NAMES_MALE)),
        ("names_female", words(NAMES_FEMALE)),
        ("names", names),
        ("fruits", words(FRUITS)),
        ("colors", words(COLORS)),
        ("sports", words(SPORTS)),
        ("cities", CITIES.map(Value::text).to_vec()),
        ("weekdays", words(WEEKDAYS)),
        ("currencies_sym", words("¥ ₺ $ € ₣")),
        ("length_lg", words("mile kilometer")),
        ("weights_med", words("pound kg")),
        // Never seen in a released question: the unit of the one GSM8K question that its template was made from.
        ("weights_sm", words("ounce gram")),
        ("multi_times", times),
        ("multiple_ice", vec![number("twice", 2), number("thrice", 3)]),
        (
            "multiple",
            ["double", "triple", "quadruple", "quintuple"].iter().zip(2..).map(|(t, n)| number(t, n)).collect(),
        ),
        ("fractions", fractions()),
        ("fraction_nums", numeric),
        ("fraction_alph", alphabetic),
        ("fraction_alnum", both),
        ("fraction_decimals", decimals),
    ])
});

fn words(list: &str) -> Vec<Value> {
    list.split_whitespace().map(Value::text).collect()
}

fn number(text: &str, value: i64) -> Value {
    Value::Item(text.into(), Box::new(Value::int(value)))
}

fn fraction(text: &str, numerator: i64, denominator: i64) -> Value {
    Value::Item(text.into(), Box::new(Value::ratio(numerator, denominator)))
}

fn fractions() -> Vec<Value> {
    let digits = (2..=10).map(|d| fraction(&format!("1/{d}"), 1, d));
    let spoken = [("half", 2), ("a third", 3), ("a quarter", 4), ("a fifth", 5), ("an eighth", 8), ("a tenth", 10)];
    digits.chain(spoken.into_iter().map(|(text, d)| fraction(text, 1, d))).collect()
}

/// 1/2, 1/3, 2/3, 1/4, 2/4 (as written), ..., 4/5, then 1/6 to 1/10.
fn fractions_in_digits() -> Vec<Value> {
    let proper = (2..=5).flat_map(|d| (1..d).map(move |n| fraction(&format!("{n}/{d}"), n, d)));
    proper.chain((6..=10).map(|d| fraction(&format!("1/{d}"), 1, d))).collect()
}

fn fractions_in_words() -> Vec<Value> {
    let parts: [(&str, i64, i64); 9] = [
        ("half", 2, 1),
        ("third", 3, 2),
        ("fourth", 4, 3),
        ("fifth", 5, 4),
        ("sixth", 6, 5),
        ("seventh", 7, 1),
        ("eighth", 8, 1),
        ("ninth", 9, 1),
        ("tenth", 10, 1),
    ];
    let text = |n: i64, part: &str| {
        let plural = if n == 1 { "" } else { "s" };
        format!("{}-{part}{plural}", CARDINALS[usize::try_from(n).unwrap_or(0)])
    };
    parts.into_iter().flat_map(|(part, d, most)| (1..=most).map(move |n| fraction(&text(n, part), n, d))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_released_questions() {
        let size = |name: &str| match constant(name) {
            Some(Value::List(items)) => items.len(),
            _ => 0,
        };
        for (name, expected) in [
            ("names_male", 42),
            ("names_female", 40),
            ("names", 82),
            ("fruits", 11),
            ("colors", 16),
            ("sports", 7),
            ("weekdays", 7),
            ("currencies_sym", 5),
            ("fractions", 15),
            ("fraction_nums", 15),
            ("fraction_alph", 19),
            ("fraction_alnum", 34),
            ("fraction_decimals", 9),
            ("multi_times", 9),
            ("multiple_ice", 2),
            ("multiple", 4),
        ] {
            assert_eq!(size(name), expected, "{name}");
        }
        assert_eq!(constant("no_such_list"), None);
    }

    #[test]
    fn fractions_keep_their_text_and_their_value() {
        let Some(Value::List(numeric)) = constant("fraction_nums") else { panic!("there is such a list") };
        let shown: Vec<String> = numeric[..5].iter().map(Value::shown).collect();
        assert_eq!(shown, ["1/2", "1/3", "2/3", "1/4", "2/4"]);
        assert_eq!(numeric[4].to_string(), "1/2");
        let Some(Value::List(words)) = constant("fraction_alph") else { panic!("there is such a list") };
        let shown: Vec<String> = words.iter().map(Value::shown).collect();
        assert_eq!(shown[..4], ["one-half", "one-third", "two-thirds", "one-fourth"]);
        assert_eq!(words[17].to_string(), "1/9");
    }
}
