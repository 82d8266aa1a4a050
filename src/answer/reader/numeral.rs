//! Numbers in digits, as people and models write them: scripts, digit groups, decimals, powers of ten, fractions.

/// How numbers are written where this one stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Style {
    /// The language writes decimals with a comma and groups with a point.
    pub decimal_comma: bool,
    /// A whole number was asked for, so that three digits behind one separator are a group.
    pub integer: bool,
    /// A number with decimals was asked for, so that a comma before three last digits is a decimal sign.
    pub decimals: bool,
    /// The question is about digits with spaces between them.
    pub spaced: bool,
    /// Whole numbers of several groups were given and nothing is divided, so that `99.999` is a whole number.
    pub point_groups: bool,
    /// `0b` before digits is a prefix.
    pub binary: bool,
    /// A number of things was asked for, so that "none" and "twice" are numbers.
    pub counts: bool,
}

/// How a number is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spelling {
    Integer,
    Decimal,
    Fraction,
    Scientific,
    /// Digits with spaces between them.
    Spaced,
    /// In words.
    Words,
    /// A date, a time of day, a version: digits that are no number.
    None,
}

/// A number without its sign.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Scanned {
    /// Canonical: ASCII digits, `.`, `/` or `e`.
    pub text: String,
    pub spelling: Spelling,
    /// First byte behind it.
    pub end: usize,
}

/// Zeros of the scripts whose decimal digits stand in a row, but for ASCII.
const ZEROS: [u32; 38] = [
    0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66, 0xde6, 0xe50, 0xed0, 0xf20,
    0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90, 0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0,
    0xa900, 0xff10, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1fbf0,
];

/// Single characters that are fractions.
const FRACTIONS: [(char, &str); 19] = [
    ('½', "1/2"),
    ('⅓', "1/3"),
    ('⅔', "2/3"),
    ('¼', "1/4"),
    ('¾', "3/4"),
    ('⅕', "1/5"),
    ('⅖', "2/5"),
    ('⅗', "3/5"),
    ('⅘', "4/5"),
    ('⅙', "1/6"),
    ('⅚', "5/6"),
    ('⅐', "1/7"),
    ('⅛', "1/8"),
    ('⅜', "3/8"),
    ('⅝', "5/8"),
    ('⅞', "7/8"),
    ('⅑', "1/9"),
    ('⅒', "1/10"),
    ('↉', "0/3"),
];

/// The value of a decimal digit of any script.
pub fn digit(c: char) -> Option<u8> {
    if c.is_ascii() {
        return c.is_ascii_digit().then(|| c as u8 - b'0');
    }
    let code = c as u32;
    ZEROS.iter().find(|&&zero| (zero..zero + 10).contains(&code)).map(|zero| (code - zero) as u8)
}

/// The value of a superscript digit.
pub fn superscript(c: char) -> Option<u8> {
    "⁰¹²³⁴⁵⁶⁷⁸⁹".chars().position(|digit| digit == c).map(|value| value as u8)
}

/// True for glyphs of a minus sign.
pub fn is_minus(c: char) -> bool {
    matches!(c, '-' | '\u{2212}' | '\u{2013}' | '\u{2010}' | '\u{2011}' | '\u{fe63}' | '\u{ff0d}')
}

fn char_at(text: &str, at: usize) -> Option<char> {
    match text.as_bytes().get(at) {
        Some(byte) if byte.is_ascii() => Some(*byte as char),
        Some(_) => text[at..].chars().next(),
        None => None,
    }
}

/// Appends the digits that stand at `at`, and returns the first byte behind them.
fn digits(text: &str, mut at: usize, into: &mut String) -> usize {
    while let Some(c) = char_at(text, at)
        && let Some(value) = digit(c)
    {
        into.push((b'0' + value) as char);
        at += c.len_utf8();
        // Keycaps.
        while text[at..].starts_with(['\u{fe0f}', '\u{20e3}']) {
            at += 3;
        }
    }
    at
}

/// What stands between two runs of digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Separator {
    Comma,
    Point,
    /// Groups only: underscore, apostrophe, thin and no-break space, LaTeX.
    Group,
    Space,
}

fn separator(text: &str, at: usize) -> Option<(Separator, usize)> {
    let rest = &text[at..];
    for (latex, length) in [("{,}", 3), (",\\!", 3), ("\\,", 2), ("\\!", 2), ("{.}", 3)] {
        if rest.starts_with(latex) {
            return Some((Separator::Group, length));
        }
    }
    let c = rest.chars().next()?;
    let separator = match c {
        ',' | '，' => Separator::Comma,
        '.' | '．' | '٫' => Separator::Point,
        '_' | '\'' | '’' | '٬' | '\u{2009}' | '\u{202f}' | '\u{a0}' | '\u{2008}' | '\u{200a}' | '˙' => {
            Separator::Group
        }
        ' ' => Separator::Space,
        _ => return None,
    };
    Some((separator, c.len_utf8()))
}

/// A run of digits and what stands before it.
struct Group {
    before: Separator,
    digits: String,
    end: usize,
}

/// Most groups of two digits that are looked at: a lakh of crores needs fewer.
const MOST_PAIRS: usize = 10;

/// The runs of digits behind a number, as far as they can belong to it and one further. They are few unless they do belong to it,
/// so that a long list costs no more than its length.
fn groups(text: &str, mut at: usize) -> Vec<Group> {
    let mut found: Vec<Group> = Vec::new();
    let mut pairs = 0;
    let mut ending = false;
    while let Some((before, length)) = separator(text, at) {
        let mut run = String::new();
        let end = digits(text, at + length, &mut run);
        if run.is_empty() {
            break;
        }
        pairs += usize::from(run.len() == 2);
        let other = run.len() != 3 && run.len() != 2 || pairs > MOST_PAIRS;
        let changes = found.first().is_some_and(|first| first.before != before);
        found.push(Group { before, digits: run, end });
        if ending {
            break;
        }
        ending = other || changes;
        at = end;
    }
    found
}

/// The number whose first digit (or whose decimal point) stands at `at`.
pub fn scan(text: &str, at: usize, style: Style) -> Option<Scanned> {
    let first = char_at(text, at)?;
    if let Some(&(_, fraction)) = FRACTIONS.iter().find(|(c, _)| *c == first) {
        let end = at + first.len_utf8();
        return Some(Scanned { text: fraction.to_owned(), spelling: Spelling::Fraction, end });
    }
    let mut whole = String::new();
    if first == '.' {
        whole.push('0');
        let end = digits(text, at + 1, &mut String::new());
        if end == at + 1 {
            return None;
        }
        return Some(finish(text, plain(text, whole, at, groups(text, at), style), style));
    }
    if style.binary && first == '0' && matches!(text.as_bytes().get(at + 1), Some(b'b' | b'B')) {
        let mut run = String::new();
        let end = digits(text, at + 2, &mut run);
        if !run.is_empty() {
            return Some(Scanned { text: run, spelling: Spelling::Integer, end });
        }
    }
    let end = digits(text, at, &mut whole);
    if whole.is_empty() {
        return None;
    }
    if let Some(spaced) = spaced(text, &whole, end, style) {
        return Some(spaced);
    }
    Some(finish(text, plain(text, whole, end, groups(text, end), style), style))
}

/// Single digits with one space between them.
fn spaced(text: &str, whole: &str, end: usize, style: Style) -> Option<Scanned> {
    if whole.len() != 1 {
        return None;
    }
    let mut spaced = whole.to_owned();
    let mut at = end;
    let mut count = 1;
    while text.as_bytes().get(at) == Some(&b' ') {
        let mut run = String::new();
        let next = digits(text, at + 1, &mut run);
        if run.len() != 1 {
            break;
        }
        spaced.push(' ');
        spaced.push_str(&run);
        at = next;
        count += 1;
    }
    // Elsewhere digits with spaces are a number only where nobody would write a list like that.
    let enough = if style.spaced { 2 } else { 4 };
    (count >= enough).then(|| {
        let text = if style.spaced { spaced } else { spaced.replace(' ', "") };
        let spelling = if style.spaced { Spelling::Spaced } else { Spelling::Integer };
        Scanned { text, spelling, end: at }
    })
}

/// Digits with their groups and decimals: the longest beginning of `groups` that is one number.
fn plain(text: &str, whole: String, end: usize, groups: Vec<Group>, style: Style) -> Scanned {
    let first = whole.len();
    let can_group = (1..=3).contains(&first) && (!whole.starts_with('0') || first == 1 && style.integer);
    let mut number = Scanned { text: whole, spelling: Spelling::Integer, end };
    let mut grouped: Option<Separator> = None;
    for (place, group) in groups.iter().enumerate() {
        let next = groups.get(place + 1);
        let three = group.digits.len() == 3;
        let joins = |grouped: Option<Separator>| three && can_group && grouped.is_none_or(|by| by == group.before);
        // What follows is more of the same: one group of several.
        let more = |by: Separator| next.is_some_and(|next| next.before == by && next.digits.len() == 3);
        let decimal = match group.before {
            Separator::Group => {
                if !(three || grouped == Some(Separator::Group) || indian(&groups[place..])) {
                    break;
                }
                false
            }
            Separator::Space => {
                let room = !style.spaced
                    && joins(grouped)
                    && first <= 3
                    && (first < 3 || next.is_none() || more(Separator::Space));
                if !room {
                    break;
                }
                false
            }
            Separator::Comma => match grouped {
                Some(Separator::Point | Separator::Space) => true,
                Some(Separator::Comma) if three || indian(&groups[place..]) => false,
                Some(_) => break,
                None if indian(&groups[place..]) && can_group => false,
                None if three && can_group => {
                    let several = more(Separator::Comma) || next.is_some_and(|next| next.before == Separator::Point);
                    !several && (style.decimals || (style.decimal_comma && !style.integer))
                }
                // `1,2` is a list where nobody writes decimals with a comma.
                None if style.decimals || style.decimal_comma || (!style.integer && group.digits.len() == 2) => {
                    if next.is_some_and(|next| next.before == Separator::Comma) {
                        break;
                    }
                    true
                }
                None => break,
            },
            Separator::Point => match grouped {
                Some(Separator::Point) if three => false,
                Some(Separator::Point) => return not_a_number(number, group.end),
                None if joins(None) && first > 0 && number.text != "0" => {
                    let before_comma =
                        next.is_some_and(|next| next.before == Separator::Comma && next.digits.len() != 3);
                    let language = (style.decimal_comma || style.point_groups) && !style.decimals;
                    !(more(Separator::Point) || before_comma || language)
                }
                _ => true,
            },
        };
        if decimal {
            number.text.push('.');
            number.text.push_str(&group.digits);
            number.spelling = Spelling::Decimal;
            number.end = group.end;
            // A second point makes it a version, a date or an address.
            if group.before == Separator::Point
                && let Some(next) = next
                && next.before == Separator::Point
            {
                let end = groups[place..].iter().take_while(|group| group.before == Separator::Point).last();
                return not_a_number(number, end.map_or(next.end, |last| last.end));
            }
            break;
        }
        number.text.push_str(&group.digits);
        number.end = group.end;
        grouped = Some(group.before);
    }
    // Digits of a repeating decimal in brackets: `0.1(6)`, `0.(27)`.
    if number.spelling == Spelling::Integer && text[number.end..].starts_with(".(") {
        let mut period = String::new();
        let end = digits(text, number.end + 2, &mut period);
        if !period.is_empty() && text[end..].starts_with(')') {
            number.text = format!("{}.{period}", number.text);
            return Scanned { spelling: Spelling::Decimal, end: end + 1, ..number };
        }
    }
    if number.spelling == Spelling::Decimal && text[number.end..].starts_with('(') {
        let mut period = String::new();
        let end = digits(text, number.end + 1, &mut period);
        if !period.is_empty() && text[end..].starts_with(')') {
            number.text.push_str(&period);
            number.end = end + 1;
        }
    }
    number
}

/// Groups of two digits up to a last one of three: `12,43,567`.
fn indian(groups: &[Group]) -> bool {
    let by = groups[0].before;
    let run = groups.iter().take_while(|group| group.before == by);
    let mut twos = 0;
    for group in run {
        match group.digits.len() {
            2 => twos += 1,
            3 => return twos > 0,
            _ => return false,
        }
    }
    false
}

fn not_a_number(number: Scanned, end: usize) -> Scanned {
    Scanned { spelling: Spelling::None, end, ..number }
}

/// Adds what follows the digits: a power of ten, a denominator; tells dates and times from numbers.
fn finish(text: &str, mut number: Scanned, style: Style) -> Scanned {
    if number.spelling == Spelling::None {
        return number;
    }
    if let Some((power, end)) = power_of_ten(text, &number) {
        let ten = number.text == "10"
            && number.spelling == Spelling::Integer
            && text[number.end..end].starts_with(['^', '⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹', '⁻', '*']);
        let significand = if ten { "1".to_owned() } else { number.text };
        return Scanned { text: format!("{significand}e{power}"), spelling: Spelling::Scientific, end };
    }
    let rest = &text[number.end..];
    // A time of day or a ratio: digits on both sides of a colon.
    if number.spelling == Spelling::Integer && rest.starts_with(':') {
        let end = digits(text, number.end + 1, &mut String::new());
        if end > number.end + 1 && number.text.len() <= 2 {
            return not_a_number(number, end);
        }
    }
    if number.spelling == Spelling::Integer {
        if let Some(fraction) = mixed(text, &number) {
            return fraction;
        }
        for slash in ["/", "\u{2044}", " / "] {
            // With spaces it is a division, unless a fraction was asked for.
            if slash == " / " && style != Style::default() {
                continue;
            }
            if let Some(behind) = rest.strip_prefix(slash) {
                let start = text.len() - behind.len();
                let mut bottom = String::new();
                let end = digits(text, start, &mut bottom);
                let after = &text[end..];
                if bottom.is_empty()
                    || after
                        .strip_prefix(['.', ','])
                        .is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit()) && !next.starts_with("000"))
                {
                    break;
                }
                if after.strip_prefix('/').is_some_and(|next| next.starts_with(|c: char| c.is_ascii_digit())) {
                    let end = digits(text, end + 1, &mut String::new());
                    return not_a_number(number, end);
                }
                number.text = format!("{}/{bottom}", number.text);
                number.spelling = Spelling::Fraction;
                number.end = end;
                break;
            }
        }
    }
    number
}

/// `2½`, `2 1/4`, `2 \frac{1}{4}`, `2 and 1/4` as one improper fraction.
fn mixed(text: &str, number: &Scanned) -> Option<Scanned> {
    if number.text.len() > 9 {
        return None;
    }
    let rest = &text[number.end..];
    let mut part = rest.strip_prefix(" and ").unwrap_or(rest);
    // Spaces of LaTeX too.
    while let Some(behind) =
        [" ", "\u{a0}", "\u{2009}", "\\,", "\\;", "\\ ", "~"].iter().find_map(|space| part.strip_prefix(space))
    {
        part = behind;
    }
    let start = text.len() - part.len();
    let first = part.chars().next()?;
    let (fraction, end) = if let Some(&(_, fraction)) = FRACTIONS.iter().find(|(c, _)| *c == first) {
        (fraction.to_owned(), start + first.len_utf8())
    } else if let Some((top, bottom, end)) = latex_fraction(text, start) {
        (format!("{top}/{bottom}"), end)
    } else {
        // Without a space it would be another number's digits.
        if start == number.end {
            return None;
        }
        let mut top = String::new();
        let slash = digits(text, start, &mut top);
        let bottom_at = text[slash..].strip_prefix(['/', '\u{2044}']).map(|rest| text.len() - rest.len())?;
        let mut bottom = String::new();
        let end = digits(text, bottom_at, &mut bottom);
        (format!("{top}/{bottom}"), end)
    };
    let (top, bottom) = fraction.split_once('/')?;
    if top.len() > 4 || bottom.len() > 4 {
        return None;
    }
    let (whole, top, bottom): (u64, u64, u64) = (number.text.parse().ok()?, top.parse().ok()?, bottom.parse().ok()?);
    (top < bottom && bottom > 0).then(|| Scanned {
        text: format!("{}/{bottom}", whole * bottom + top),
        spelling: Spelling::Fraction,
        end,
    })
}

/// `\frac{7}{15}`, `\dfrac715` and the like with whole numbers: numerator, denominator and the first byte behind.
pub fn latex_fraction(text: &str, at: usize) -> Option<(String, String, usize)> {
    let rest = &text[at..];
    let name = ["\\frac", "\\dfrac", "\\tfrac", "\\cfrac", "\\sfrac", "\\nicefrac"]
        .into_iter()
        .find(|name| rest.starts_with(name))?;
    let mut at = at + name.len();
    let mut parts = [String::new(), String::new()];
    for part in &mut parts {
        at = skip_spaces(text, at);
        if text[at..].starts_with('{') {
            let inside = skip_spaces(text, at + 1);
            let end = skip_spaces(text, digits_grouped(text, inside, part));
            if part.is_empty() || !text[end..].starts_with('}') {
                return None;
            }
            at = end + 1;
        } else {
            let c = char_at(text, at)?;
            part.push((b'0' + digit(c)?) as char);
            at += c.len_utf8();
        }
    }
    let [top, bottom] = parts;
    Some((top, bottom, at))
}

/// Digits that LaTeX or commas may group.
fn digits_grouped(text: &str, at: usize, into: &mut String) -> usize {
    let mut end = digits(text, at, into);
    for group in groups(text, end) {
        if group.digits.len() != 3 || group.before == Separator::Point {
            break;
        }
        into.push_str(&group.digits);
        end = group.end;
    }
    end
}

fn skip_spaces(text: &str, mut at: usize) -> usize {
    while text.as_bytes().get(at) == Some(&b' ') {
        at += 1;
    }
    at
}

/// The power of ten that stands behind a number: `e16`, `E+16`, `× 10^{16}`, `·10³`, `\times 10^4`; of `10^16` itself too.
fn power_of_ten(text: &str, number: &Scanned) -> Option<(String, usize)> {
    let at = number.end;
    let rest = &text[at..];
    let upright = ["\\mathrm{e}", "\\text{e}", "\\mathrm{E}", "\\text{E}"];
    let letter = rest.strip_prefix(['e', 'E']).or_else(|| upright.iter().find_map(|letter| rest.strip_prefix(letter)));
    if let Some(behind) = letter {
        let (power, end) = exponent(text, text.len() - behind.len())?;
        let letter = char_at(text, end).is_some_and(|c| c.is_alphabetic() && c.is_ascii());
        return (!letter).then_some((power, end));
    }
    if number.spelling == Spelling::Integer
        && number.text == "10"
        && let Some(power) = raised(text, at)
    {
        return Some(power);
    }
    if let Some(power) = in_words(text, at) {
        return Some(power);
    }
    let times = rest.trim_start_matches([' ', '\u{a0}', '\u{2009}']);
    let sign = ["×", "\\times", "\\cdot", "·", "⋅", "∙", "•", "x", "X", "*", "∗", "✕"]
        .into_iter()
        .find(|sign| times.starts_with(sign))?;
    let ten = times[sign.len()..].trim_start_matches([' ', '\u{a0}', '\u{2009}', '{']);
    let mut run = String::new();
    let ten_at = text.len() - ten.len();
    let end = digits(text, ten_at, &mut run);
    if run != "10" {
        return None;
    }
    raised(text, end)
}

/// "times ten to the power of 15"
fn in_words(text: &str, at: usize) -> Option<(String, usize)> {
    let rest = text[at..].strip_prefix(" times ")?;
    let rest = rest.strip_prefix("ten to the ").or_else(|| rest.strip_prefix("10 to the "))?;
    let rest = rest.strip_prefix("power of ").or_else(|| rest.strip_prefix("power ")).unwrap_or(rest);
    exponent(text, text.len() - rest.len())
}

/// `^{16}`, `**16`, superscripts: the exponent and the first byte behind it.
fn raised(text: &str, at: usize) -> Option<(String, usize)> {
    let rest = &text[at..];
    let first = rest.chars().next()?;
    if first == '⁻' || superscript(first).is_some() {
        let mut power = String::new();
        let mut end = at;
        for c in rest.chars() {
            match (c, superscript(c)) {
                ('⁻', _) if power.is_empty() => power.push('-'),
                (_, Some(value)) => power.push((b'0' + value) as char),
                _ => break,
            }
            end += c.len_utf8();
        }
        return (power != "-").then_some((power, end));
    }
    let behind = rest.strip_prefix("**").or_else(|| rest.strip_prefix('^')).or_else(|| rest.strip_prefix("<sup>"))?;
    let inner = behind.trim_start_matches([' ', '{', '(']);
    let (power, mut end) = exponent(text, text.len() - inner.len())?;
    for close in ["}", ")", "</sup>"] {
        if text[end..].starts_with(close) && inner.len() < behind.len() + usize::from(close == "</sup>") {
            end += close.len();
            break;
        }
    }
    Some((power, end))
}

/// A signed whole number: canonical, without a plus sign and leading zeros.
fn exponent(text: &str, at: usize) -> Option<(String, usize)> {
    let mut written = String::new();
    let sign = char_at(text, at)?;
    let negative = is_minus(sign);
    let start = if negative || sign == '+' { at + sign.len_utf8() } else { at };
    let end = digits(text, start, &mut written);
    if !(1..=6).contains(&written.len()) {
        return None;
    }
    let power = written.trim_start_matches('0');
    Some(match (power, negative) {
        ("", _) => ("0".to_owned(), end),
        (power, true) => (format!("-{power}"), end),
        (power, false) => (power.to_owned(), end),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, style: Style) -> (String, Spelling, String) {
        let found = scan(text, 0, style).unwrap();
        (found.text, found.spelling, text[found.end..].to_owned())
    }

    fn integer(text: &str) -> String {
        read(text, Style { integer: true, ..Style::default() }).0
    }

    #[test]
    fn groups_of_every_kind() {
        for text in [
            "1234567",
            "1,234,567",
            "1{,}234{,}567",
            "1\\,234\\,567",
            "1,\\!234,\\!567",
            "1_234_567",
            "1'234'567",
            "1’234’567",
            "1 234 567",
            "1\u{202f}234\u{202f}567",
            "1.234.567",
            "12,34,567",
            "１２３４５６７",
            "١٢٣٤٥٦٧",
            "१२,३४,५६७",
        ] {
            assert_eq!(integer(text), "1234567", "{text}");
        }
        assert_eq!(integer("1,23"), "1");
        assert_eq!(integer("1, 234"), "1");
        assert_eq!(integer("2019 100"), "2019");
        assert_eq!(integer("05608"), "05608");
    }

    #[test]
    fn decimal_signs_by_language_and_question() {
        let comma = Style { decimal_comma: true, ..Style::default() };
        let float = Style { decimals: true, ..Style::default() };
        assert_eq!(read("3,625", float).0, "3.625");
        assert_eq!(read("3,625", comma).0, "3.625");
        assert_eq!(read("3,625", Style::default()).0, "3625");
        assert_eq!(read("12.450,50 EUR", comma), ("12450.50".into(), Spelling::Decimal, " EUR".into()));
        assert_eq!(read("1.284,5", float).0, "1284.5");
        assert_eq!(read("1,284.5", float).0, "1284.5");
        assert_eq!(read("4.318", Style { integer: true, ..comma }).0, "4318");
        assert_eq!(read("4.318", Style::default()).0, "4.318");
        assert_eq!(read("0,375", float).0, "0.375");
        assert_eq!(read(".5 l", Style::default()).0, "0.5");
        assert_eq!(read("5. Next", Style::default()), ("5".into(), Spelling::Integer, ". Next".into()));
    }

    #[test]
    fn powers_of_ten() {
        for text in [
            "1.287e3",
            "1.287E+03",
            "1.287 × 10^3",
            "1.287×10³",
            "1.287·10^{3}",
            "1.287 \\times 10^{3}",
            "1.287 x 10^3",
            "1.287*10**3",
            "1.287 \\cdot 10^3",
        ] {
            let (found, spelling, rest) = read(text, Style::default());
            assert_eq!((found.as_str(), spelling, rest.as_str()), ("1.287e3", Spelling::Scientific, ""), "{text}");
        }
        assert_eq!(read("10^{16}", Style::default()).0, "1e16");
        assert_eq!(read("3.1 × 10⁻⁶ m", Style::default()).0, "3.1e-6");
        assert_eq!(read("3 × 100", Style::default()).0, "3");
        assert_eq!(read("5eggs", Style::default()).0, "5");
    }

    #[test]
    fn fractions() {
        for (text, expected) in [
            ("7/15", "7/15"),
            ("½", "1/2"),
            ("2½", "5/2"),
            ("3 1/2", "7/2"),
            ("2 \\frac{1}{4}", "9/4"),
            ("1 and 3/4 cups", "7/4"),
        ] {
            let (found, spelling, _) = read(text, Style::default());
            assert_eq!((found.as_str(), spelling), (expected, Spelling::Fraction), "{text}");
        }
        assert_eq!(latex_fraction("\\dfrac{3}{10}", 0), Some(("3".into(), "10".into(), 13)));
        assert_eq!(latex_fraction("\\frac12", 0), Some(("1".into(), "2".into(), 7)));
        assert_eq!(latex_fraction("\\frac{a}{2}", 0), None);
    }

    #[test]
    fn what_is_no_number() {
        for text in ["1.11.7", "12/05/2024", "12:30", "192.168.0.1"] {
            let (_, spelling, rest) = read(text, Style::default());
            assert_eq!((spelling, rest.as_str()), (Spelling::None, ""), "{text}");
        }
    }

    #[test]
    fn spaced_digits() {
        let spaced = Style { spaced: true, ..Style::default() };
        assert_eq!(read("4 8 2 1", spaced), ("4 8 2 1".into(), Spelling::Spaced, "".into()));
        assert_eq!(integer("4 8 2 1"), "4821");
        assert_eq!(integer("4 8"), "4");
    }
}
