//! Vocabulary of answers in the languages that models answer in.
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::LazyLock;

use crate::number::words::numerals;

/// FNV-1a: words are short, and nobody chooses them to collide.
#[derive(Debug, Clone)]
pub struct Fnv(u64);

impl Default for Fnv {
    fn default() -> Self {
        Fnv(0xcbf2_9ce4_8422_2325)
    }
}

impl Hasher for Fnv {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3);
        }
    }
}

/// A table by words.
pub type ByWord<T> = HashMap<&'static str, T, BuildHasherDefault<Fnv>>;

/// Meanings of a word; a word may have several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Meaning(u64);

impl Meaning {
    /// Names the answer: what stands behind it is a commitment.
    pub const ANSWER: Meaning = Meaning(1);
    /// Names the result of an operation (sum, quotient).
    pub const RESULT: Meaning = Meaning(1 << 1);
    /// Joins a subject to its value (is, equals).
    pub const LINK: Meaning = Meaning(1 << 2);
    /// A result stands behind it (gives, costs, total).
    pub const GIVES: Meaning = Meaning(1 << 3);
    /// Context stands behind it (from, per, in).
    pub const CONTEXT: Meaning = Meaning(1 << 4);
    /// Says nothing about the number behind it (the, about, exactly).
    pub const FILLER: Meaning = Meaning(1 << 5);
    /// Withdraws what was said (wait, sorry).
    pub const CORRECTS: Meaning = Meaning(1 << 6);
    /// Begins a check, a reason or an aside.
    pub const CHECKS: Meaning = Meaning(1 << 7);
    /// Begins a reason within a sentence (because, since).
    pub const REASON: Meaning = Meaning(1 << 8);
    /// Begins a conclusion (so, therefore).
    pub const CONCLUDES: Meaning = Meaning(1 << 9);
    /// Denies the number behind it.
    pub const DENIES: Meaning = Meaning(1 << 10);
    pub const OR: Meaning = Meaning(1 << 11);
    pub const AND: Meaning = Meaning(1 << 12);
    pub const IF: Meaning = Meaning(1 << 13);
    /// The number behind it is a label (step 2, page 112).
    pub const LABEL: Meaning = Meaning(1 << 14);
    /// A minus sign in words.
    pub const MINUS: Meaning = Meaning(1 << 15);
    /// A binary operator in words.
    pub const OPERATOR: Meaning = Meaning(1 << 16);
    /// Begins another question, before a colon.
    pub const ASKS: Meaning = Meaning(1 << 17);
    /// Compares upwards (larger) or downwards (smaller).
    pub const UP: Meaning = Meaning(1 << 18);
    pub const DOWN: Meaning = Meaning(1 << 19);
    /// The number before it is a total (left, remain, altogether).
    pub const TOTALS: Meaning = Meaning(1 << 20);
    /// The number behind it is an example of a format (like, format).
    pub const EXAMPLE: Meaning = Meaning(1 << 21);
    /// Confirms the number before it (correct, right).
    pub const CONFIRMS: Meaning = Meaning(1 << 22);
    /// Names several possibilities (either, candidates).
    pub const SEVERAL: Meaning = Meaning(1 << 23);
    /// A month: the numbers beside it are dates.
    pub const MONTH: Meaning = Meaning(1 << 24);
    /// Ends with a full stop that ends no sentence (approx., i.e.).
    pub const ABBREVIATION: Meaning = Meaning(1 << 25);
    /// Makes an answer noun a thing that is looked for (find, to).
    pub const SEEKS: Meaning = Meaning(1 << 26);

    /// Part of a number in words, in some language.
    pub const NUMERAL: Meaning = Meaning(1 << 27);

    /// Stands for what the question asks about, as the subject of a sentence (it, that, she, we).
    pub const SUBJECT: Meaning = Meaning(1 << 28);
    /// Leaves open whether what is said is so (might, perhaps).
    pub const UNSURE: Meaning = Meaning(1 << 29);
    /// Begins a clause that the answer rests on (after, having, with, of).
    pub const PREMISE: Meaning = Meaning(1 << 30);
    /// Begins an offer, a tip or a remark behind the answer.
    pub const OFFER: Meaning = Meaning(1 << 31);
    /// Speaks of work that is still to be done (need, let's, first).
    pub const PLANS: Meaning = Meaning(1 << 32);
    /// Names a rank: the position of a thing in a row (letter, position, place).
    pub const RANKS: Meaning = Meaning(1 << 33);

    /// Announces an explanation of what was said (explain, breakdown, why).
    pub const EXPLAINS: Meaning = Meaning(1 << 34);
    /// Begins a conclusion from what stands before it, not a sum (so, therefore).
    pub const FOLLOWS: Meaning = Meaning(1 << 35);

    /// True if any of the meanings of `other` is one of these.
    pub fn has(self, other: Meaning) -> bool {
        self.0 & other.0 != 0
    }

    /// Both together.
    pub const fn with(self, other: Meaning) -> Meaning {
        Meaning(self.0 | other.0)
    }
}

/// Lower-case words by meaning. A word may stand in several rows.
const WORDS: &[(Meaning, &str)] = &[
    (
        Meaning::ANSWER,
        "answer answers answered ans option choice solution result results antwort lösung ergebnis resultat réponse résultat respuesta \
         resultado respuestas solución resposta solução risposta risultato soluzione antwoord uitkomst oplossing svar \
         svaret odpowiedź wynik ответ ответом результат відповідь результатом cevap sonuç jawaban jawabannya hasil \
         hasilnya απάντηση réponses final_answer finalanswer final_result conclusion final الجواب الإجابة الناتج النتيجة \
         उत्तर जवाब परिणाम válasz vastaus odpověď výsledek răspuns răspunsul",
    ),
    (
        Meaning::RESULT,
        "sum total totals mean difference product quotient remainder maximum minimum count digit digits number value \
         output modulus average percentage fraction change increase decrease summe differenz produkt rest quotient somme \
         différence produit reste suma diferencia producto resto soma diferença produto somma differenza prodotto \
         сумма разность произведение остаток частное المجموع الفرق योग",
    ),
    (
        Meaning::LINK,
        "wynosi wynoszą bedraagt är blir jest là هي يساوي equivale entspricht entsprechen stanowi i.e d.h namely it's that's is are was were be equals equal being becomes became ist sind war beträgt lautet ergibt gleich est sont vaut \
         égale fait es son era é são è sono vale está равно равна равен это составляет هو هي है हैं são adalah ialah",
    ),
    (
        Meaning::GIVES,
        "reads brings bring brought spendono spende sobraram sobram sobra sobran sobró quedaron quedarán quedará quedan rimangono restano mancano restano resta avanzano gleichen ma mają daje zostaje zostało kosztuje płaci har ger kostar heeft hebben krijgt kost blijft blijven geeft eder kalır kaldı ödeyecek ada punya memiliki mendapat membayar có còn имеет получает платит остаётся zahlt bekommt erhält verdient braucht dauert reçoit gagnent obtient obtiene recibe pagan tienen necesita ricava guadagna ottiene recebe ganha precisa gives give giving gave get gets getting got makes make making made yields yield yielding costs cost pays pay \
         paid earns earn earned has have totals totaling totalling left obtain obtains obtained leaves leaving leave \
         becomes need needs needed appears appear occurs occur contains contain takes take sold sells travels uses \
         weighs lasts saves owes receives received produces equals gibt ergeben ergibt kostet kosten macht bleiben bleibt haben \
         hat donne donnent coûte coûtent reste restent paie gagne obtient da dan fa hay había hubo cuesta cuestan quedan queda tiene paga \
         pierde gana gasta gastan obtenemos custa custam restam tem dá costa costano rimangono dà получаем получится получится стоит \
         осталось останется итого total totale",
    ),
    (
        Meaning::CONTEXT,
        "im am zum zur beim vom ins contre w z przez dla på med från av op met uit voor için ile di dari dengan untuk selama dalam setiap trong với mỗi в на с из за по для में से في من على em com durante mentre from per each every after between than at on during within versus vs against over under above below of in for \
         with among von pro je jede jeden nach zwischen als bei auf mit aus für de par chaque après entre que dans \
         sur pour avec por cada después en con para de do da per ogni dopo con",
    ),
    (
        Meaning::FILLER,
        "the a an about approximately approx around roughly exactly just only precisely simply to nearly almost now still \
         therefore thus hence so then your my our his her its their those these all whole entire su sus ses leurs seine seinen ihre ihren suoi seus this that final correct right also indeed total altogether value number \
         integer float fraction decimal simplified exact numerical numeric der die das den dem ein eine etwa ungefähr \
         genau rund nur le la les un une environ exactement el los las una aproximadamente exactamente unos o os as um uma \
         il lo gli circa esattamente около примерно ровно es",
    ),
    (
        Meaning::CORRECTS,
        "corrected wait sorry actually correction oops hmm mistake mistaken recalculate apologies apologize oh nope scratch \
         moment entschuldigung korrektur pardon attends perdón espera desculpe scusa typo misread miscounted misspoke erratum verzeihung quatsch vertan tippfehler attendez désolé oups corrijo scusate aspetta anzi errei corrigindo przepraszam chwila pomyłka wacht foutje dur düzeltme извините опечатка точнее поправка простите стоп sorry",
    ),
    (
        Meaning::CHECKS,
        "infatti nämlich effet efectivamente comparison incidentally contrast check checking checks verify verification verifying verified proof probe confirm confirming confirmation \
         explanation note reason reasoning source sources reference references confidence hint tokens \
         nota notes remarque hinweis probe controle controleren kontrol kontrola sprawdzenie kontroll проверка примечание verifica vérification überprüfung kontrolle comprobación verificación verificação checked \
         double-check doublecheck sanity p.s. ps disclaimer page",
    ),
    (
        Meaning::REASON,
        "seeing karena sebab ponieważ bo gdyż потому поскольку omdat doordat eftersom därför çünkü zira لأن क्योंकि vì bởi puisqu poiché siccome giacché protože neboť mert deoarece koska fordi επειδή because since as given assuming until unless weil da denn parce puisque car porque ya pois perché although \
         though",
    ),
    (
        Meaning::CONCLUDES,
        "thereby więc zatem czyli dlatego så alltså dus daarom yani öyleyse böylece jadi maka sehingga vậy इसलिए إذن لذا allora alors поэтому so therefore thus hence finally altogether overall conclusion total totally now ahora jetzt maintenant adesso agora consequently then which means \
         somit daher folglich insgesamt donc ainsi finalement entonces luego así portanto logo quindi dunque итак \
         значит следовательно",
    ),
    (
        Meaning::DENIES,
        "not instead isn't wasn't neither doubt doubts hardly nicht sondern pas non no rather except excluding",
    ),
    (Meaning::OR, "or oder ou o или либо atau albo lub czy veya ya_da hoặc eller nebo vagy tai"),
    (Meaning::AND, "and und et y e и dan"),
    (Meaning::IF, "s'il s'ils provided if suppose supposing assume imagine instance wenn falls si se если"),
    (
        Meaning::LABEL,
        "error code call dial hotline guichet step steps question exercise problem example figure fig table page pages chapter section version case \
         equation no line round part item note schritt aufgabe seite étape paso passo шаг p pp vol edition position \
         index level grade unit lesson method approach attempt try reading day footnote workbook iso gpt gpt-4 q",
    ),
    (Meaning::MINUS, "minus negative moins menos meno минус سالب ऋण"),
    (
        Meaning::OPERATOR,
        "x times plus minus entre divided multiplied mod modulo mal durch fois умножить разделить поделить multipliziert geteilt multiplié multipliée divisé divisée multiplicado multiplicada dividido dividida moltiplicato diviso razy podzielić podzielone dibagi dikali kali keer gedeeld",
    ),
    (
        Meaning::ASKS,
        "问题 题目 問題 質問 문제 질문 سؤال السؤال प्रश्न q question problem exercise user human instruction input task example query prompt frage pregunta pergunta \
         domanda вопрос aufgabe",
    ),
    (
        Meaning::UP,
        "larger largest greater greatest bigger biggest higher highest maximum maximal exceeds longer größer größte \
         größer plus_grand mayor maior maggiore больше",
    ),
    (
        Meaning::DOWN,
        "smaller smallest less lesser least lower lowest minimum minimal fewer shorter kleiner kleinste menor minore \
         меньше",
    ),
    (
        Meaning::TOTALS,
        "łącznie totalt tillsammans samen sisa कुल المجموع zusammen übrigen ensemble juntos insieme juntas осталось всего left remain remains remaining altogether total overall together übrig insgesamt restants restantes rimasti sum summe gesamt somme suma somma soma totale razem итого toplam totaal jumlah tổng",
    ),
    (Meaning::EXAMPLE, "like format example such e.g formatted looks style pattern"),
    (Meaning::CONFIRMS, "correct right confirmed answer result"),
    (Meaning::SEVERAL, "either candidates possible possibilities options guesses both entweder soit"),
    (
        Meaning::MONTH,
        "january february march april may june july august september october november december jan feb mar apr jun jul \
         aug sep sept oct nov dec januar februar märz mai juni juli oktober dezember janvier février mars avril juin \
         juillet août septembre octobre novembre décembre enero febrero marzo abril mayo junio julio agosto septiembre \
         octubre noviembre diciembre",
    ),
    (
        Meaning::ABBREVIATION,
        "approx e.g eg i.e ie mr mrs ms dr vs no nos p pp fig eq ca bzw z.b d.h etc sec min hr hrs rs st ed vol",
    ),
    (
        Meaning::SUBJECT,
        "it that this which he she they we you i there it's that's he's she's they're we're there's es er sie das dies man \
         wir il elle on cela ça ils elles c'est nous él ella ellos esto eso hay ele ela isso lui lei loro questo ci это он она они мы \
         här det hij zij het dat to o bu şu",
    ),
    (
        Meaning::UNSURE,
        "might may maybe perhaps possibly could probably guess guessing unsure vielleicht möglicherweise peut-être quizás tal_vez \
         talvez forse возможно",
    ),
    (
        Meaning::PREMISE,
        "where بعد قبل عندما बाद जब когда gdy kiedy nadat wanneer efter när setelah sesudah ketika sau after before when having with without of since because as given if for by once starting adding subtracting multiplying \
         dividing taking using knowing considering nach vor wenn nachdem mit von après avant quand avec tras después antes cuando \
         con depois quando dopo prima после до если из",
    ),
    (
        Meaning::OFFER,
        "tip fun hope happy feel curious want try ps p.s fyi btw remember note interesting interestingly by-the-way bonus trivia tipp \
         hinweis astuce consejo dica consiglio",
    ),
    (
        Meaning::EXPLAINS,
        "explain explanation explanations how why breakdown reasoning steps calculation calculations working workings details derivation \
         here's reason justification erklärung rechnung begründung rechenweg explicación explication desglose détail spiegazione explicação \
         объяснение uitleg açıklama",
    ),
    (
        Meaning::FOLLOWS,
        "thereby so therefore thus hence finally consequently then means somit daher folglich also donc ainsi finalement entonces luego así portanto \
         logo então quindi dunque allora итак значит следовательно поэтому dus więc zatem alltså tedy",
    ),
    (
        Meaning::PLANS,
        "need needs first firstly let's let next begin start step compute calculate find determine plan divide multiply add subtract convert zuerst d'abord primero",
    ),
    (
        Meaning::RANKS,
        "position place rank letter th floor row seat day month stelle platz position posición lugar posição rang место",
    ),
    (Meaning::SEEKS, "find get reach express put give write state provide need check format output return"),
];

static MEANINGS: LazyLock<ByWord<Meaning>> = LazyLock::new(|| {
    let mut meanings: ByWord<Meaning> = HashMap::default();
    for &(meaning, words) in WORDS {
        for word in words.split_whitespace() {
            let entry = meanings.entry(word).or_default();
            *entry = entry.with(meaning);
        }
    }
    for word in numerals() {
        let entry = meanings.entry(word).or_default();
        *entry = entry.with(Meaning::NUMERAL);
    }
    meanings
});

/// Endings of words in scripts without spaces, Chinese, Japanese, Korean and Thai, and what they mean.
const UNSPACED: &[(Meaning, &str)] = &[
    (Meaning::ANSWER, "答案"),
    (Meaning::ANSWER, "答え"),
    (Meaning::ANSWER, "結果"),
    (Meaning::ANSWER, "结果"),
    (Meaning::ANSWER, "答"),
    (Meaning::ANSWER, "정답"),
    (Meaning::ANSWER, "답"),
    (Meaning::ANSWER, "결과"),
    (Meaning::ANSWER, "คำตอบ"),
    (Meaning::GIVES, "一共有"),
    (Meaning::GIVES, "共有"),
    (Meaning::GIVES, "合計"),
    (Meaning::GIVES, "总共"),
    (Meaning::GIVES, "等于"),
    (Meaning::GIVES, "得到"),
    (Meaning::GIVES, "剩下"),
    (Meaning::REASON, "因为"),
    (Meaning::REASON, "由于"),
    (Meaning::REASON, "왜냐하면"),
    (Meaning::REASON, "なぜなら"),
    (Meaning::CONCLUDES, "所以"),
    (Meaning::CONCLUDES, "因此"),
    (Meaning::CONCLUDES, "따라서"),
    (Meaning::CONCLUDES, "그래서"),
    (Meaning::CONCLUDES, "したがって"),
    (Meaning::CONCLUDES, "だから"),
    (Meaning::CONCLUDES, "よって"),
    (Meaning::IF, "假如"),
    (Meaning::IF, "如果"),
    (Meaning::IF, "假设"),
    (Meaning::IF, "若是"),
    (Meaning::IF, "もし"),
    (Meaning::IF, "仮に"),
    (Meaning::IF, "만약"),
    (Meaning::UNSURE, "可能"),
    (Meaning::UNSURE, "也许"),
    (Meaning::UNSURE, "大概"),
    (Meaning::UNSURE, "猜"),
    (Meaning::UNSURE, "かもしれ"),
    (Meaning::UNSURE, "たぶん"),
    (Meaning::UNSURE, "아마"),
    (Meaning::DENIES, "不是"),
    (Meaning::DENIES, "而非"),
    (Meaning::DENIES, "并非"),
    (Meaning::OR, "或者"),
    (Meaning::OR, "或"),
    (Meaning::OR, "または"),
    (Meaning::OR, "か"),
    (Meaning::OR, "또는"),
    (Meaning::OR, "혹은"),
    (Meaning::CORRECTS, "等等"),
    (Meaning::CORRECTS, "不对"),
    (Meaning::CORRECTS, "抱歉"),
    (Meaning::CORRECTS, "更正"),
    (Meaning::CORRECTS, "错了"),
    (Meaning::CORRECTS, "订正"),
    (Meaning::CORRECTS, "待って"),
    (Meaning::CORRECTS, "すみません"),
    (Meaning::CORRECTS, "間違"),
    (Meaning::CORRECTS, "訂正"),
    (Meaning::CORRECTS, "잠깐"),
    (Meaning::CORRECTS, "정정"),
    (Meaning::OPERATOR, "乘以"),
    (Meaning::OPERATOR, "除以"),
    (Meaning::OPERATOR, "かける"),
    (Meaning::OPERATOR, "割る"),
    (Meaning::OPERATOR, "곱하기"),
    (Meaning::OPERATOR, "나누기"),
    (Meaning::TOTALS, "合计"),
    (Meaning::TOTALS, "合計"),
    (Meaning::TOTALS, "总计"),
    (Meaning::TOTALS, "합계"),
];

/// Ends of unspaced words that join a subject to its value.
const UNSPACED_LINKS: [&str; 12] = ["是", "为", "為", "は", "共", "得", "有", "คือ", "은", "는", "이", "가"];

/// Minus signs in words at the end of an unspaced word.
const UNSPACED_MINUS: [&str; 4] = ["负", "負", "マイナス", "ลบ"];

/// A short ASCII word in lower case.
pub fn lower_ascii<'b>(word: &str, buffer: &'b mut [u8]) -> Option<&'b str> {
    let lower = buffer.get_mut(..word.len()).filter(|_| word.is_ascii())?;
    lower.copy_from_slice(word.as_bytes());
    lower.make_ascii_lowercase();
    std::str::from_utf8(lower).ok()
}

/// The meanings of a word as it stands in a text.
pub fn meaning(word: &str) -> Meaning {
    let mut buffer = [0u8; 24];
    let known = match lower_ascii(word, &mut buffer) {
        Some(lower) => MEANINGS.get(lower),
        None if word.is_ascii() || word.len() > 64 => None,
        None => MEANINGS.get(word.to_lowercase().as_str()),
    };
    if let Some(&known) = known {
        return known;
    }
    if word.is_ascii() {
        return Meaning::default();
    }
    unspaced(word)
}

/// Meanings of a run of letters in a script that does not separate words.
fn unspaced(run: &str) -> Meaning {
    let mut meaning = Meaning::default();
    if !run.chars().any(|c| c >= '\u{e00}') {
        return meaning;
    }
    // What matters stands right before the number.
    let tail: String = run.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
    for &(found, part) in UNSPACED {
        if tail.contains(part) {
            meaning = meaning.with(found);
        }
    }
    if UNSPACED_LINKS.iter().any(|link| tail.ends_with(link)) {
        meaning = meaning.with(Meaning::LINK);
    }
    if UNSPACED_MINUS.iter().any(|minus| tail.ends_with(minus)) {
        meaning = meaning.with(Meaning::MINUS);
    }
    meaning
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_any_case_and_language() {
        assert!(meaning("Answer").has(Meaning::ANSWER));
        assert!(meaning("Réponse").has(Meaning::ANSWER));
        assert!(meaning("因此答案是").has(Meaning::ANSWER));
        assert!(meaning("因此答案是").has(Meaning::LINK));
        assert!(meaning("结果是负").has(Meaning::MINUS));
        assert_eq!(meaning("giraffe"), Meaning::default());
        assert_eq!(meaning(&"x".repeat(5000)), Meaning::default());
    }
}
