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
    ("thirteenth", Part::Over(13)),
    ("thirteenths", Part::Over(13)),
    ("fourteenth", Part::Over(14)),
    ("seventeenth", Part::Over(17)),
    ("eighteenth", Part::Over(18)),
    ("nineteenth", Part::Over(19)),
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
    ("doscientas", Part::Small(200)),
    ("trescientos", Part::Small(300)),
    ("trescientas", Part::Small(300)),
    ("cuatrocientos", Part::Small(400)),
    ("cuatrocientas", Part::Small(400)),
    ("quinientos", Part::Small(500)),
    ("quinientas", Part::Small(500)),
    ("seiscientos", Part::Small(600)),
    ("seiscientas", Part::Small(600)),
    ("setecientos", Part::Small(700)),
    ("setecientas", Part::Small(700)),
    ("ochocientos", Part::Small(800)),
    ("ochocientas", Part::Small(800)),
    ("novecientos", Part::Small(900)),
    ("novecientas", Part::Small(900)),
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
    ("duzentas", Part::Small(200)),
    ("trezentos", Part::Small(300)),
    ("trezentas", Part::Small(300)),
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
    ("uno", 1),
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

/// Numerals of other languages that write decimals with a comma: Russian, Polish, Czech, Turkish.
const COMMA_DECIMAL: &[(&str, Part)] = &[
    ("ноль", Part::Small(0)),
    ("нуль", Part::Small(0)),
    ("один", Part::Small(1)),
    ("одна", Part::Small(1)),
    ("одно", Part::Small(1)),
    ("одну", Part::Small(1)),
    ("два", Part::Small(2)),
    ("две", Part::Small(2)),
    ("три", Part::Small(3)),
    ("четыре", Part::Small(4)),
    ("пять", Part::Small(5)),
    ("шесть", Part::Small(6)),
    ("семь", Part::Small(7)),
    ("восемь", Part::Small(8)),
    ("девять", Part::Small(9)),
    ("десять", Part::Small(10)),
    ("одиннадцать", Part::Small(11)),
    ("двенадцать", Part::Small(12)),
    ("тринадцать", Part::Small(13)),
    ("четырнадцать", Part::Small(14)),
    ("пятнадцать", Part::Small(15)),
    ("шестнадцать", Part::Small(16)),
    ("семнадцать", Part::Small(17)),
    ("восемнадцать", Part::Small(18)),
    ("девятнадцать", Part::Small(19)),
    ("двадцать", Part::Small(20)),
    ("тридцать", Part::Small(30)),
    ("сорок", Part::Small(40)),
    ("пятьдесят", Part::Small(50)),
    ("шестьдесят", Part::Small(60)),
    ("семьдесят", Part::Small(70)),
    ("восемьдесят", Part::Small(80)),
    ("девяносто", Part::Small(90)),
    ("сто", Part::Small(100)),
    ("двести", Part::Small(200)),
    ("триста", Part::Small(300)),
    ("четыреста", Part::Small(400)),
    ("пятьсот", Part::Small(500)),
    ("шестьсот", Part::Small(600)),
    ("семьсот", Part::Small(700)),
    ("восемьсот", Part::Small(800)),
    ("девятьсот", Part::Small(900)),
    ("тысяча", Part::Power(3)),
    ("тысячи", Part::Power(3)),
    ("тысяч", Part::Power(3)),
    ("миллион", Part::Power(6)),
    ("миллиона", Part::Power(6)),
    ("миллионов", Part::Power(6)),
    ("zero", Part::Small(0)),
    ("jeden", Part::Small(1)),
    ("jedna", Part::Small(1)),
    ("jedno", Part::Small(1)),
    ("dwa", Part::Small(2)),
    ("dwie", Part::Small(2)),
    ("trzy", Part::Small(3)),
    ("cztery", Part::Small(4)),
    ("pięć", Part::Small(5)),
    ("sześć", Part::Small(6)),
    ("siedem", Part::Small(7)),
    ("osiem", Part::Small(8)),
    ("dziewięć", Part::Small(9)),
    ("dziesięć", Part::Small(10)),
    ("jedenaście", Part::Small(11)),
    ("dwanaście", Part::Small(12)),
    ("trzynaście", Part::Small(13)),
    ("czternaście", Part::Small(14)),
    ("piętnaście", Part::Small(15)),
    ("szesnaście", Part::Small(16)),
    ("siedemnaście", Part::Small(17)),
    ("osiemnaście", Part::Small(18)),
    ("dziewiętnaście", Part::Small(19)),
    ("dwadzieścia", Part::Small(20)),
    ("trzydzieści", Part::Small(30)),
    ("czterdzieści", Part::Small(40)),
    ("pięćdziesiąt", Part::Small(50)),
    ("sześćdziesiąt", Part::Small(60)),
    ("siedemdziesiąt", Part::Small(70)),
    ("osiemdziesiąt", Part::Small(80)),
    ("dziewięćdziesiąt", Part::Small(90)),
    ("sto", Part::Small(100)),
    ("dwieście", Part::Small(200)),
    ("trzysta", Part::Small(300)),
    ("czterysta", Part::Small(400)),
    ("pięćset", Part::Small(500)),
    ("sześćset", Part::Small(600)),
    ("siedemset", Part::Small(700)),
    ("osiemset", Part::Small(800)),
    ("dziewięćset", Part::Small(900)),
    ("tysiąc", Part::Power(3)),
    ("tysiące", Part::Power(3)),
    ("tysięcy", Part::Power(3)),
    ("nula", Part::Small(0)),
    ("dvě", Part::Small(2)),
    ("dva", Part::Small(2)),
    ("tři", Part::Small(3)),
    ("čtyři", Part::Small(4)),
    ("pět", Part::Small(5)),
    ("šest", Part::Small(6)),
    ("sedm", Part::Small(7)),
    ("osm", Part::Small(8)),
    ("devět", Part::Small(9)),
    ("deset", Part::Small(10)),
    ("jedenáct", Part::Small(11)),
    ("dvanáct", Part::Small(12)),
    ("třináct", Part::Small(13)),
    ("čtrnáct", Part::Small(14)),
    ("patnáct", Part::Small(15)),
    ("šestnáct", Part::Small(16)),
    ("sedmnáct", Part::Small(17)),
    ("osmnáct", Part::Small(18)),
    ("devatenáct", Part::Small(19)),
    ("dvacet", Part::Small(20)),
    ("třicet", Part::Small(30)),
    ("čtyřicet", Part::Small(40)),
    ("padesát", Part::Small(50)),
    ("šedesát", Part::Small(60)),
    ("sedmdesát", Part::Small(70)),
    ("osmdesát", Part::Small(80)),
    ("devadesát", Part::Small(90)),
    ("dvěstě", Part::Small(200)),
    ("tisíc", Part::Power(3)),
    ("tisíce", Part::Power(3)),
    ("sıfır", Part::Small(0)),
    ("bir", Part::Small(1)),
    ("iki", Part::Small(2)),
    ("üç", Part::Small(3)),
    ("dört", Part::Small(4)),
    ("beş", Part::Small(5)),
    ("altı", Part::Small(6)),
    ("yedi", Part::Small(7)),
    ("sekiz", Part::Small(8)),
    ("dokuz", Part::Small(9)),
    ("on", Part::Small(10)),
    ("yirmi", Part::Small(20)),
    ("otuz", Part::Small(30)),
    ("kırk", Part::Small(40)),
    ("elli", Part::Small(50)),
    ("altmış", Part::Small(60)),
    ("yetmiş", Part::Small(70)),
    ("seksen", Part::Small(80)),
    ("doksan", Part::Small(90)),
    ("yüz", Part::Power(2)),
    ("bin", Part::Power(3)),
    ("milyon", Part::Power(6)),
];

/// Arabic numerals; the letter for "and" stands before a word.
const ARABIC: &[(&str, Part)] = &[
    ("صفر", Part::Small(0)),
    ("واحد", Part::Small(1)),
    ("واحدة", Part::Small(1)),
    ("أحد", Part::Small(1)),
    ("إحدى", Part::Small(1)),
    ("اثنا", Part::Small(2)),
    ("اثني", Part::Small(2)),
    ("اثنتا", Part::Small(2)),
    ("اثنتي", Part::Small(2)),
    ("اثنان", Part::Small(2)),
    ("اثنين", Part::Small(2)),
    ("اثنتان", Part::Small(2)),
    ("اثنتين", Part::Small(2)),
    ("ثلاثة", Part::Small(3)),
    ("ثلاث", Part::Small(3)),
    ("أربعة", Part::Small(4)),
    ("أربع", Part::Small(4)),
    ("اربعة", Part::Small(4)),
    ("خمسة", Part::Small(5)),
    ("خمس", Part::Small(5)),
    ("ستة", Part::Small(6)),
    ("ست", Part::Small(6)),
    ("سبعة", Part::Small(7)),
    ("سبع", Part::Small(7)),
    ("ثمانية", Part::Small(8)),
    ("ثماني", Part::Small(8)),
    ("ثمان", Part::Small(8)),
    ("تسعة", Part::Small(9)),
    ("تسع", Part::Small(9)),
    ("عشرة", Part::Small(10)),
    ("عشر", Part::Small(10)),
    ("عشرون", Part::Small(20)),
    ("عشرين", Part::Small(20)),
    ("ثلاثون", Part::Small(30)),
    ("ثلاثين", Part::Small(30)),
    ("أربعون", Part::Small(40)),
    ("أربعين", Part::Small(40)),
    ("خمسون", Part::Small(50)),
    ("خمسين", Part::Small(50)),
    ("ستون", Part::Small(60)),
    ("ستين", Part::Small(60)),
    ("سبعون", Part::Small(70)),
    ("سبعين", Part::Small(70)),
    ("ثمانون", Part::Small(80)),
    ("ثمانين", Part::Small(80)),
    ("تسعون", Part::Small(90)),
    ("تسعين", Part::Small(90)),
    ("مئة", Part::Power(2)),
    ("مائة", Part::Power(2)),
    ("مئتان", Part::Small(200)),
    ("مائتان", Part::Small(200)),
    ("مئتين", Part::Small(200)),
    ("مائتين", Part::Small(200)),
    ("ألف", Part::Power(3)),
    ("ألفا", Part::Power(3)),
    ("ألفان", Part::Small(2000)),
    ("ألفين", Part::Small(2000)),
    ("آلاف", Part::Power(3)),
    ("الف", Part::Power(3)),
    ("مليون", Part::Power(6)),
    ("ملايين", Part::Power(6)),
    ("مليار", Part::Power(9)),
];

const DUTCH: &[(&str, u64)] = &[
    ("nul", 0),
    ("een", 1),
    ("één", 1),
    ("twee", 2),
    ("drie", 3),
    ("vier", 4),
    ("vijf", 5),
    ("zes", 6),
    ("zeven", 7),
    ("acht", 8),
    ("negen", 9),
    ("tien", 10),
    ("elf", 11),
    ("twaalf", 12),
    ("dertien", 13),
    ("veertien", 14),
    ("vijftien", 15),
    ("zestien", 16),
    ("zeventien", 17),
    ("achttien", 18),
    ("negentien", 19),
    ("twintig", 20),
    ("dertig", 30),
    ("veertig", 40),
    ("vijftig", 50),
    ("zestig", 60),
    ("zeventig", 70),
    ("tachtig", 80),
    ("negentig", 90),
];

const SWEDISH: &[(&str, u64)] = &[
    ("noll", 0),
    ("ett", 1),
    ("två", 2),
    ("tre", 3),
    ("fyra", 4),
    ("fem", 5),
    ("sex", 6),
    ("sju", 7),
    ("åtta", 8),
    ("nio", 9),
    ("tio", 10),
    ("elva", 11),
    ("tolv", 12),
    ("tretton", 13),
    ("fjorton", 14),
    ("femton", 15),
    ("sexton", 16),
    ("sjutton", 17),
    ("arton", 18),
    ("nitton", 19),
    ("tjugo", 20),
    ("trettio", 30),
    ("fyrtio", 40),
    ("femtio", 50),
    ("sextio", 60),
    ("sjuttio", 70),
    ("åttio", 80),
    ("nittio", 90),
    ("en", 1),
];

/// Korean counting words, native and of Chinese origin; tens stand before ones in one word.
const KOREAN: &[(&str, u64)] = &[
    ("하나", 1),
    ("둘", 2),
    ("셋", 3),
    ("넷", 4),
    ("다섯", 5),
    ("여섯", 6),
    ("일곱", 7),
    ("여덟", 8),
    ("아홉", 9),
    ("열", 10),
    ("스물", 20),
    ("스무", 20),
    ("서른", 30),
    ("마흔", 40),
    ("쉰", 50),
    ("예순", 60),
    ("일흔", 70),
    ("여든", 80),
    ("아흔", 90),
    ("열한", 11),
    ("열두", 12),
    ("열세", 13),
    ("열네", 14),
    ("한", 1),
    ("두", 2),
    ("세", 3),
    ("네", 4),
];

/// Hindi numerals, each of which has a word of its own.
const HINDI: [&str; 100] = [
    "शून्य",
    "एक",
    "दो",
    "तीन",
    "चार",
    "पाँच",
    "छह",
    "सात",
    "आठ",
    "नौ",
    "दस",
    "ग्यारह",
    "बारह",
    "तेरह",
    "चौदह",
    "पंद्रह",
    "सोलह",
    "सत्रह",
    "अठारह",
    "उन्नीस",
    "बीस",
    "इक्कीस",
    "बाईस",
    "तेईस",
    "चौबीस",
    "पच्चीस",
    "छब्बीस",
    "सत्ताईस",
    "अट्ठाईस",
    "उनतीस",
    "तीस",
    "इकतीस",
    "बत्तीस",
    "तैंतीस",
    "चौंतीस",
    "पैंतीस",
    "छत्तीस",
    "सैंतीस",
    "अड़तीस",
    "उनतालीस",
    "चालीस",
    "इकतालीस",
    "बयालीस",
    "तैंतालीस",
    "चौवालीस",
    "पैंतालीस",
    "छियालीस",
    "सैंतालीस",
    "अड़तालीस",
    "उनचास",
    "पचास",
    "इक्यावन",
    "बावन",
    "तिरपन",
    "चौवन",
    "पचपन",
    "छप्पन",
    "सत्तावन",
    "अट्ठावन",
    "उनसठ",
    "साठ",
    "इकसठ",
    "बासठ",
    "तिरसठ",
    "चौंसठ",
    "पैंसठ",
    "छियासठ",
    "सड़सठ",
    "अड़सठ",
    "उनहत्तर",
    "सत्तर",
    "इकहत्तर",
    "बहत्तर",
    "तिहत्तर",
    "चौहत्तर",
    "पचहत्तर",
    "छिहत्तर",
    "सतहत्तर",
    "अठहत्तर",
    "उन्यासी",
    "अस्सी",
    "इक्यासी",
    "बयासी",
    "तिरासी",
    "चौरासी",
    "पचासी",
    "छियासी",
    "सत्तासी",
    "अट्ठासी",
    "नवासी",
    "नब्बे",
    "इक्यानवे",
    "बानवे",
    "तिरानवे",
    "चौरानवे",
    "पचानवे",
    "छियानवे",
    "सत्तानवे",
    "अट्ठानवे",
    "निन्यानवे",
];

/// Words of denominators, and of what joins them to a whole number, in languages other than English.
const DENOMINATORS: &[(Language, &str, Part)] = &[
    (Language::German, "halb halbe halben halber halbes", Part::Over(2)),
    (Language::German, "drittel", Part::Over(3)),
    (Language::German, "viertel", Part::Over(4)),
    (Language::German, "fünftel", Part::Over(5)),
    (Language::German, "sechstel", Part::Over(6)),
    (Language::German, "siebtel", Part::Over(7)),
    (Language::German, "achtel", Part::Over(8)),
    (Language::German, "neuntel", Part::Over(9)),
    (Language::German, "zehntel", Part::Over(10)),
    (Language::German, "zwölftel", Part::Over(12)),
    (Language::German, "und", Part::Joint),
    (Language::French, "demi demie demis", Part::Over(2)),
    (Language::French, "tiers", Part::Over(3)),
    (Language::French, "quart quarts", Part::Over(4)),
    (Language::French, "cinquième cinquièmes", Part::Over(5)),
    (Language::French, "sixième sixièmes", Part::Over(6)),
    (Language::French, "huitième huitièmes", Part::Over(8)),
    (Language::French, "dixième dixièmes", Part::Over(10)),
    (Language::Spanish, "medio media medios", Part::Over(2)),
    (Language::Spanish, "tercio tercios", Part::Over(3)),
    (Language::Spanish, "cuarto cuartos", Part::Over(4)),
    (Language::Spanish, "quinto quintos", Part::Over(5)),
    (Language::Spanish, "sexto sextos", Part::Over(6)),
    (Language::Spanish, "octavo octavos", Part::Over(8)),
    (Language::Spanish, "décimo décimos", Part::Over(10)),
    (Language::Portuguese, "meio meia meios", Part::Over(2)),
    (Language::Portuguese, "terço terços", Part::Over(3)),
    (Language::Portuguese, "quinto quintos", Part::Over(5)),
    (Language::Portuguese, "sexto sextos", Part::Over(6)),
    (Language::Portuguese, "oitavo oitavos", Part::Over(8)),
    (Language::Portuguese, "décimo décimos", Part::Over(10)),
    (Language::Italian, "mezzo mezza mezzi", Part::Over(2)),
    (Language::Italian, "terzo terzi", Part::Over(3)),
    (Language::Italian, "quarto quarti", Part::Over(4)),
    (Language::Italian, "quinto quinti", Part::Over(5)),
    (Language::Italian, "sesto sesti", Part::Over(6)),
    (Language::Italian, "ottavo ottavi", Part::Over(8)),
    (Language::Italian, "decimo decimi", Part::Over(10)),
    (Language::Italian, "e", Part::Joint),
];

/// Share of a lower-case word in a number of a language.
pub fn part(word: &str, language: Language) -> Option<Part> {
    let of = |table: &[(&str, Part)]| table.iter().find(|(name, _)| *name == word).map(|(_, part)| *part);
    let denominator = || {
        let names = |words: &str| words.split(' ').any(|name| name == word);
        DENOMINATORS.iter().find(|(of, words, _)| *of == language && names(words)).map(|(_, _, part)| *part)
    };
    cardinal(word, language, of).or_else(denominator)
}

/// Share of a word of a cardinal number.
fn cardinal(word: &str, language: Language, of: impl Fn(&[(&str, Part)]) -> Option<Part>) -> Option<Part> {
    match language {
        Language::French => of(FRENCH),
        Language::Spanish => of(SPANISH),
        Language::Portuguese => of(PORTUGUESE),
        Language::German => compound(word, GERMAN, "und", &[("hundert", 100), ("tausend", 1000)]).map(Part::Small),
        Language::Italian => {
            compound(word, ITALIAN, "", &[("cento", 100), ("mila", 1000), ("mille", 1000)]).map(Part::Small)
        }
        Language::CommaDecimal => of(COMMA_DECIMAL)
            .or_else(|| {
                compound(word, DUTCH, "en", &[("honderd", 100), ("duizend", 1000)])
                    .or_else(|| {
                        compound(&word.replace("ën", "en"), DUTCH, "en", &[("honderd", 100), ("duizend", 1000)])
                    })
                    .filter(|_| word != "een")
                    .map(Part::Small)
            })
            .or_else(|| {
                compound(word, SWEDISH, "", &[("hundra", 100), ("tusen", 1000)])
                    .filter(|_| word != "en" && word != "ett")
                    .map(Part::Small)
            }),
        Language::Other => other(word).or_else(|| english(word)).or_else(|| of(ENGLISH_BESIDE)),
        Language::English => english(word).or_else(|| of(ENGLISH_BESIDE)),
    }
}

/// Hundreds in one word: ثلاثمئة.
fn arabic_hundreds(word: &str) -> Option<Part> {
    let unit = word.strip_suffix("مئة").or_else(|| word.strip_suffix("مائة")).filter(|unit| !unit.is_empty())?;
    let unit = if unit == "ثمان" { "ثماني" } else { unit };
    match ARABIC.iter().find(|(name, _)| *name == unit)?.1 {
        Part::Small(value @ 3..=9) => Some(Part::Small(100 * value)),
        _ => None,
    }
}

/// Arabic, Korean and Hindi.
fn other(word: &str) -> Option<Part> {
    let of = |word: &str| ARABIC.iter().find(|(name, _)| *name == word).map(|(_, part)| *part);
    if word.is_ascii() {
        return None;
    }
    if let Some(part) = of(word).or_else(|| arabic_hundreds(word)) {
        return Some(part);
    }
    if let Some(value) = HINDI.iter().position(|one| *one == word) {
        return Some(Part::Small(value as u64));
    }
    match word {
        "सौ" => return Some(Part::Power(2)),
        "हज़ार" | "हजार" => return Some(Part::Power(3)),
        "लाख" => return Some(Part::Power(5)),
        _ => {}
    }
    let single = word.chars().count() == 1;
    compound(word, KOREAN, "", &[]).filter(|_| !single || word == "열" || word == "쉰").map(Part::Small)
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
    // "ein" and "uno" alone are articles.
    let value = total + group + unit.unwrap_or(0);
    (any && !matches!(word, "ein" | "un" | "uno")).then_some(value)
}

/// Number words of the languages that write them apart.
pub fn numerals() -> impl Iterator<Item = &'static str> {
    let english =
        UNITS.into_iter().chain(TENS.into_iter().skip(2)).chain(GROUPS.into_iter().take(ENGLISH_GROUPS + 1).skip(1));
    let others = [ENGLISH_BESIDE, FRENCH, SPANISH, PORTUGUESE].into_iter().flatten().map(|(word, _)| *word);
    let denominators = DENOMINATORS.iter().flat_map(|(_, words, _)| words.split(' '));
    english.chain(["hundred", "and", "point"]).chain(others).chain(denominators).chain(["a", "an"])
}
