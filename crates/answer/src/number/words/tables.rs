//! Number words of the languages that models answer in.
use super::english::{self, GROUPS, TENS, UNITS, Word};
use super::language::Language;

/// Share of a word in the number that it stands in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// 0 to 99.
    Small(u64),
    /// Multiplies what stands before it (hundred, thousand): a power of ten.
    Power(u32),
    /// `dozen`
    Dozen,
    /// Joins parts and begins none (and).
    Joint,
    /// `point`
    Point,
    /// A denominator: half, third, quarter.
    Over(u64),
}

/// Powers of a thousand that English texts name: further names are no numbers to a reader of answers.
const ENGLISH_GROUPS: usize = 5;

/// English words beside those of cardinals: a common misspelling, Indian powers of ten, denominators.
const ENGLISH_BESIDE: &[(&str, Part)] = &[
    ("fourty", Part::Small(40)),
    ("lakh", Part::Power(5)),
    ("crore", Part::Power(7)),
    ("dozen", Part::Dozen),
    ("half", Part::Over(2)),
    ("halves", Part::Over(2)),
    ("third", Part::Over(3)),
    ("thirds", Part::Over(3)),
    ("quarter", Part::Over(4)),
    ("quarters", Part::Over(4)),
    ("fourth", Part::Over(4)),
    ("fourths", Part::Over(4)),
    ("fifth", Part::Over(5)),
    ("fifths", Part::Over(5)),
    ("sixth", Part::Over(6)),
    ("sixths", Part::Over(6)),
    ("seventh", Part::Over(7)),
    ("sevenths", Part::Over(7)),
    ("eighth", Part::Over(8)),
    ("eighths", Part::Over(8)),
    ("ninth", Part::Over(9)),
    ("ninths", Part::Over(9)),
    ("tenth", Part::Over(10)),
    ("tenths", Part::Over(10)),
    ("eleventh", Part::Over(11)),
    ("elevenths", Part::Over(11)),
    ("twelfth", Part::Over(12)),
    ("twelfths", Part::Over(12)),
    ("thirteenths", Part::Over(13)),
    ("fourteenths", Part::Over(14)),
    ("fifteenth", Part::Over(15)),
    ("fifteenths", Part::Over(15)),
    ("sixteenth", Part::Over(16)),
    ("sixteenths", Part::Over(16)),
    ("twentieth", Part::Over(20)),
    ("twentieths", Part::Over(20)),
    ("hundredth", Part::Over(100)),
    ("hundredths", Part::Over(100)),
    ("thousandths", Part::Over(1000)),
];

const FRENCH: &[(&str, Part)] = &[
    ("zéro", Part::Small(0)),
    ("deux", Part::Small(2)),
    ("trois", Part::Small(3)),
    ("quatre", Part::Small(4)),
    ("cinq", Part::Small(5)),
    ("six", Part::Small(6)),
    ("sept", Part::Small(7)),
    ("huit", Part::Small(8)),
    ("neuf", Part::Small(9)),
    ("dix", Part::Small(10)),
    ("onze", Part::Small(11)),
    ("douze", Part::Small(12)),
    ("treize", Part::Small(13)),
    ("quatorze", Part::Small(14)),
    ("quinze", Part::Small(15)),
    ("seize", Part::Small(16)),
    ("vingt", Part::Small(20)),
    ("vingts", Part::Small(20)),
    ("trente", Part::Small(30)),
    ("quarante", Part::Small(40)),
    ("cinquante", Part::Small(50)),
    ("soixante", Part::Small(60)),
    ("septante", Part::Small(70)),
    ("huitante", Part::Small(80)),
    ("nonante", Part::Small(90)),
    ("cent", Part::Power(2)),
    ("cents", Part::Power(2)),
    ("mille", Part::Power(3)),
    ("million", Part::Power(6)),
    ("millions", Part::Power(6)),
    ("milliard", Part::Power(9)),
    ("milliards", Part::Power(9)),
    ("et", Part::Joint),
];

const SPANISH: &[(&str, Part)] = &[
    ("cero", Part::Small(0)),
    ("uno", Part::Small(1)),
    ("dos", Part::Small(2)),
    ("tres", Part::Small(3)),
    ("cuatro", Part::Small(4)),
    ("cinco", Part::Small(5)),
    ("seis", Part::Small(6)),
    ("siete", Part::Small(7)),
    ("ocho", Part::Small(8)),
    ("nueve", Part::Small(9)),
    ("diez", Part::Small(10)),
    ("once", Part::Small(11)),
    ("doce", Part::Small(12)),
    ("trece", Part::Small(13)),
    ("catorce", Part::Small(14)),
    ("quince", Part::Small(15)),
    ("dieciséis", Part::Small(16)),
    ("diecisiete", Part::Small(17)),
    ("dieciocho", Part::Small(18)),
    ("diecinueve", Part::Small(19)),
    ("veinte", Part::Small(20)),
    ("veintiuno", Part::Small(21)),
    ("veintidós", Part::Small(22)),
    ("veintitrés", Part::Small(23)),
    ("veinticuatro", Part::Small(24)),
    ("veinticinco", Part::Small(25)),
    ("veintiséis", Part::Small(26)),
    ("veintisiete", Part::Small(27)),
    ("veintiocho", Part::Small(28)),
    ("veintinueve", Part::Small(29)),
    ("treinta", Part::Small(30)),
    ("cuarenta", Part::Small(40)),
    ("cincuenta", Part::Small(50)),
    ("sesenta", Part::Small(60)),
    ("setenta", Part::Small(70)),
    ("ochenta", Part::Small(80)),
    ("noventa", Part::Small(90)),
    ("cien", Part::Power(2)),
    ("ciento", Part::Power(2)),
    ("doscientos", Part::Small(200)),
    ("trescientos", Part::Small(300)),
    ("cuatrocientos", Part::Small(400)),
    ("quinientos", Part::Small(500)),
    ("seiscientos", Part::Small(600)),
    ("setecientos", Part::Small(700)),
    ("ochocientos", Part::Small(800)),
    ("novecientos", Part::Small(900)),
    ("mil", Part::Power(3)),
    ("millón", Part::Power(6)),
    ("millones", Part::Power(6)),
    ("y", Part::Joint),
];

const PORTUGUESE: &[(&str, Part)] = &[
    ("zero", Part::Small(0)),
    ("dois", Part::Small(2)),
    ("duas", Part::Small(2)),
    ("três", Part::Small(3)),
    ("quatro", Part::Small(4)),
    ("cinco", Part::Small(5)),
    ("seis", Part::Small(6)),
    ("sete", Part::Small(7)),
    ("oito", Part::Small(8)),
    ("nove", Part::Small(9)),
    ("dez", Part::Small(10)),
    ("onze", Part::Small(11)),
    ("doze", Part::Small(12)),
    ("treze", Part::Small(13)),
    ("catorze", Part::Small(14)),
    ("quatorze", Part::Small(14)),
    ("quinze", Part::Small(15)),
    ("dezesseis", Part::Small(16)),
    ("dezessete", Part::Small(17)),
    ("dezoito", Part::Small(18)),
    ("dezenove", Part::Small(19)),
    ("vinte", Part::Small(20)),
    ("trinta", Part::Small(30)),
    ("quarenta", Part::Small(40)),
    ("cinquenta", Part::Small(50)),
    ("sessenta", Part::Small(60)),
    ("setenta", Part::Small(70)),
    ("oitenta", Part::Small(80)),
    ("noventa", Part::Small(90)),
    ("cem", Part::Power(2)),
    ("cento", Part::Power(2)),
    ("duzentos", Part::Small(200)),
    ("trezentos", Part::Small(300)),
    ("mil", Part::Power(3)),
    ("milhão", Part::Power(6)),
    ("milhões", Part::Power(6)),
    ("e", Part::Joint),
];

/// Units and tens of German and Italian, whose numbers are written in one word.
const GERMAN: &[(&str, u64)] = &[
    ("null", 0),
    ("eins", 1),
    ("ein", 1),
    ("zwei", 2),
    ("drei", 3),
    ("vier", 4),
    ("fünf", 5),
    ("sechzehn", 16),
    ("siebzehn", 17),
    ("sechzig", 60),
    ("siebzig", 70),
    ("sechs", 6),
    ("sieben", 7),
    ("acht", 8),
    ("neun", 9),
    ("zehn", 10),
    ("elf", 11),
    ("zwölf", 12),
    ("dreizehn", 13),
    ("vierzehn", 14),
    ("fünfzehn", 15),
    ("achtzehn", 18),
    ("neunzehn", 19),
    ("zwanzig", 20),
    ("dreißig", 30),
    ("dreissig", 30),
    ("vierzig", 40),
    ("fünfzig", 50),
    ("achtzig", 80),
    ("neunzig", 90),
];

const ITALIAN: &[(&str, u64)] = &[
    ("zero", 0),
    ("due", 2),
    ("tre", 3),
    ("tré", 3),
    ("quattro", 4),
    ("cinque", 5),
    ("sei", 6),
    ("sette", 7),
    ("otto", 8),
    ("nove", 9),
    ("dieci", 10),
    ("undici", 11),
    ("dodici", 12),
    ("tredici", 13),
    ("quattordici", 14),
    ("quindici", 15),
    ("sedici", 16),
    ("diciassette", 17),
    ("diciotto", 18),
    ("diciannove", 19),
    ("venti", 20),
    ("vent", 20),
    ("trenta", 30),
    ("trent", 30),
    ("quaranta", 40),
    ("quarant", 40),
    ("cinquanta", 50),
    ("cinquant", 50),
    ("sessanta", 60),
    ("sessant", 60),
    ("settanta", 70),
    ("settant", 70),
    ("ottanta", 80),
    ("ottant", 80),
    ("novanta", 90),
    ("novant", 90),
];

/// Share of a lower-case word in a number of a language.
pub fn part(word: &str, language: Language) -> Option<Part> {
    let of = |table: &[(&str, Part)]| table.iter().find(|(name, _)| *name == word).map(|(_, part)| *part);
    match language {
        Language::French => of(FRENCH),
        Language::Spanish => of(SPANISH),
        Language::Portuguese => of(PORTUGUESE),
        Language::German => compound(word, GERMAN, "und", &[("hundert", 100), ("tausend", 1000)]).map(Part::Small),
        Language::Italian => {
            compound(word, ITALIAN, "", &[("cento", 100), ("mila", 1000), ("mille", 1000)]).map(Part::Small)
        }
        Language::English | Language::CommaDecimal | Language::Other => english(word).or_else(|| of(ENGLISH_BESIDE)),
    }
}

fn english(word: &str) -> Option<Part> {
    Some(match english::classify(word)? {
        Word::Unit(value) | Word::Ten(value) => Part::Small(value),
        Word::Hundred => Part::Power(2),
        Word::Group(place) if place <= ENGLISH_GROUPS => Part::Power(3 * place as u32),
        Word::Group(_) => return None,
        Word::And => Part::Joint,
        Word::Point => Part::Point,
    })
}

/// A number in one word: `sechsunddreißig`, `zweihundertfünf`, `centoventitré`.
fn compound(word: &str, units: &[(&str, u64)], and: &str, powers: &[(&str, u64)]) -> Option<u64> {
    if word.len() > 60 {
        return None;
    }
    let mut rest = word;
    let (mut total, mut group, mut unit) = (0u64, 0u64, None::<u64>);
    let mut any = false;
    while !rest.is_empty() {
        if let Some((name, power)) = powers.iter().find(|(name, _)| rest.starts_with(name)) {
            rest = &rest[name.len()..];
            if *power == 100 {
                group = unit.take().unwrap_or(1).checked_mul(100)?;
            } else {
                total = (group + unit.take().unwrap_or(u64::from(group == 0))).checked_mul(*power)?;
                group = 0;
            }
            any = true;
            continue;
        }
        if !and.is_empty()
            && let Some(behind) = rest.strip_prefix(and)
            && any
        {
            rest = behind;
            continue;
        }
        let (name, value) =
            units.iter().filter(|(name, _)| rest.starts_with(name)).max_by_key(|(name, _)| name.len())?;
        rest = &rest[name.len()..];
        unit = Some(unit.unwrap_or(0) + value);
        any = true;
    }
    // "ein" alone is an article.
    let value = total + group + unit.unwrap_or(0);
    (any && !matches!(word, "ein" | "un")).then_some(value)
}

/// Number words of the languages that write them apart.
pub fn numerals() -> impl Iterator<Item = &'static str> {
    let english =
        UNITS.into_iter().chain(TENS.into_iter().skip(2)).chain(GROUPS.into_iter().take(ENGLISH_GROUPS + 1).skip(1));
    let others = [ENGLISH_BESIDE, FRENCH, SPANISH, PORTUGUESE].into_iter().flatten().map(|(word, _)| *word);
    english.chain(["hundred", "and", "point"]).chain(others).chain(["a", "an"])
}
