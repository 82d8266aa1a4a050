//! Numbers in words, as the templates write them: `thirty five`, without a hyphen.

const SMALL: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];

const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];

/// A number up to 999 in words.
pub(super) fn word(number: u32) -> String {
    let (hundreds, rest) = (number / 100, number % 100);
    let small = |number: u32| SMALL.get(number as usize).copied().unwrap_or_default();
    let below_hundred = match (rest / 10, rest % 10) {
        (0 | 1, _) => small(rest).to_owned(),
        (tens, ones) => {
            let tens = TENS.get(tens as usize).copied().unwrap_or_default();
            if ones == 0 { tens.to_owned() } else { format!("{tens} {}", small(ones)) }
        }
    };
    match (hundreds, rest) {
        (0, _) => below_hundred,
        (hundreds, 0) => format!("{} hundred", small(hundreds)),
        (hundreds, _) => format!("{} hundred {below_hundred}", small(hundreds)),
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn words() {
        let words = [0, 7, 19, 20, 35, 100, 340, 999].map(super::word);
        let expected = [
            "zero",
            "seven",
            "nineteen",
            "twenty",
            "thirty five",
            "one hundred",
            "three hundred forty",
            "nine hundred ninety nine",
        ];
        assert_eq!(words, expected);
    }
}
