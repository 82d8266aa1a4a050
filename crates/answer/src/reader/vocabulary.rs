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

/// Several meanings together: `any_of![AND, OR]`.
macro_rules! any_of {
    ($first:ident $(, $more:ident)*) => { $crate::reader::vocabulary::Meaning::$first$(.with($crate::reader::vocabulary::Meaning::$more))* };
}
pub(super) use any_of;

/// A table of meanings, with the lower-case words that have each. A word may stand in several rows.
macro_rules! meanings {
    ($($(#[doc = $doc:literal])* $name:ident: $words:literal,)*) => {
        #[allow(clippy::upper_case_acronyms, non_camel_case_types, reason = "they number the constants of the same names")]
        enum Bit { $($name,)* }

        impl Meaning {
            $($(#[doc = $doc])* pub const $name: Meaning = Meaning(1 << Bit::$name as u32);)*
        }

        const WORDS: &[(Meaning, &str)] = &[$((Meaning::$name, $words),)*];
    };
}

meanings! {
    /// Names the answer: what stands behind it is a commitment.
    ANSWER: "answer answers answered ans option choice solution result results antwort lösung ergebnis resultat réponse résultat respuesta \
        resultado respuestas solución resposta solução risposta risultato soluzione antwoord uitkomst oplossing svar svaret odpowiedź wynik \
        ответ ответом результат відповідь результатом cevap sonuç jawaban jawabannya hasil hasilnya απάντηση réponses final_answer finalanswer \
        final_result conclusion final الجواب الإجابة الناتج النتيجة उत्तर जवाब परिणाम válasz vastaus odpověď výsledek răspuns răspunsul",
    /// Names the result of an operation (sum, quotient).
    RESULT: "sum total totals mean difference product quotient remainder maximum minimum count digit digits number value output modulus average \
        percentage fraction change increase decrease summe differenz produkt rest somme différence produit reste suma diferencia producto \
        resto soma diferença produto somma differenza prodotto сумма разность произведение остаток частное المجموع الفرق योग",
    /// Joins a subject to its value (is, equals).
    LINK: "wynosi wynoszą bedraagt är blir jest là هي يساوي equivale entspricht entsprechen stanowi i.e d.h namely it's that's is are was were be \
        equals equal being becomes became ist sind war beträgt lautet ergibt gleich est sont vaut égale fait es son era é são è sono vale está \
        равно равна равен это составляет هو है हैं adalah ialah",
    /// A result stands behind it (gives, costs, total).
    GIVES: "keep keeps kept reads brings bring brought spendono spende sobraram sobram sobra sobran sobró quedaron quedarán quedará quedan rimangono restano mancano resta avanzano gleichen ma mają \
        daje zostaje zostało kosztuje płaci har ger kostar heeft hebben krijgt kost blijft blijven geeft eder kalır kaldı ödeyecek ada punya \
        memiliki mendapat membayar có còn имеет получает платит остаётся zahlt bekommt erhält verdient braucht dauert reçoit gagnent obtient \
        obtiene recibe pagan tienen necesita ricava guadagna ottiene recebe ganha precisa gives give giving gave get gets getting got makes \
        make making made yields yield yielding costs cost pays pay paid earns earn earned has have totals totaling totalling left obtain \
        obtains obtained leaves leaving leave becomes need needs needed appears appear occurs occur contains contain takes take sold sells \
        travels uses weighs lasts saves owes receives received produces equals gibt ergeben ergibt kostet kosten macht bleiben bleibt haben \
        hat donne donnent coûte coûtent reste restent paie gagne da dan fa hay había hubo cuesta cuestan queda tiene paga pierde gana gasta \
        gastan obtenemos custa custam restam tem dá costa costano dà получаем получится стоит осталось останется итого total totale",
    /// Context stands behind it (from, per, in).
    CONTEXT: "im am zum zur beim vom ins contre w z przez dla på med från av op met uit voor için ile di dari dengan untuk selama dalam setiap trong \
        với mỗi в на с из за по для में से في من على em com durante mentre from per each every after between than at on during within versus \
        vs against over under above below of in for with among von pro je jede jeden nach zwischen als bei auf mit aus für de par chaque après \
        entre que dans sur pour avec por cada después en con para do da ogni dopo",
    /// Says nothing about the number behind it (the, about, exactly).
    FILLER: "the a an about approximately approx around roughly exactly just only precisely simply to nearly almost now still therefore thus hence \
        so then your my our his her its their those these all whole entire su sus ses leurs seine seinen ihre ihren suoi seus this that \
        final correct right also indeed total altogether value number integer float fraction decimal simplified \
        exact numerical numeric der die das den dem ein eine etwa ungefähr genau rund nur le la les un une environ exactement el los las una \
        aproximadamente exactamente unos o os as um uma il lo gli circa esattamente около примерно ровно es",
    /// Withdraws what was said (wait, sorry).
    CORRECTS: "corrected wait sorry actually correction oops hmm mistake mistaken recalculate apologies apologize oh nope scratch moment \
        entschuldigung korrektur pardon attends perdón espera desculpe scusa typo misread miscounted misspoke erratum verzeihung quatsch \
        vertan tippfehler attendez désolé oups corrijo scusate aspetta anzi errei corrigindo przepraszam chwila pomyłka wacht foutje dur \
        düzeltme извините опечатка точнее поправка простите стоп",
    /// Begins a check, a reason or an aside.
    CHECKS: "infatti conferindo verificando comprobando vérifions verifichiamo comprobemos prüfen überprüfen sprawdźmy nämlich effet efectivamente comparison incidentally contrast check checking checks verify verification verifying verified \
        proof probe confirm confirming confirmation explanation note reason reasoning source sources reference references confidence hint \
        tokens nota notes remarque hinweis controle controleren kontrol kontrola sprawdzenie kontroll проверка примечание verifica \
        vérification überprüfung kontrolle comprobación verificación verificação checked double-check doublecheck sanity p.s. ps disclaimer \
        page",
    /// Begins a reason within a sentence (because, since).
    REASON: "want seeing karena sebab ponieważ bo gdyż потому поскольку omdat doordat eftersom därför çünkü zira لأن لأنه لأنها لأنهم لأنك لأننا क्योंकि vì bởi puisqu poiché \
        siccome giacché protože neboť mert deoarece koska fordi επειδή because since as given assuming until unless weil da denn parce puisque \
        car porque ya pois perché although though",
    /// Begins a conclusion (so, therefore).
    CONCLUDES: "thereby więc zatem czyli dlatego så alltså dus daarom yani öyleyse böylece jadi maka sehingga vậy इसलिए إذن لذا allora alors поэтому \
        so therefore thus hence finally altogether overall conclusion total totally now ahora jetzt maintenant adesso agora consequently then \
        which means somit daher folglich insgesamt donc ainsi finalement entonces luego así portanto logo quindi dunque итак значит \
        следовательно",
    /// Denies the number behind it.
    DENIES: "not instead isn't wasn't neither doubt doubts hardly nicht sondern pas non no rather except excluding",
    OR: "or oder ou o или либо atau albo lub czy veya ya_da hoặc eller nebo vagy tai",
    AND: "and und et y e и dan",
    IF: "s'il s'ils provided if suppose supposing assume imagine instance wenn falls si se если",
    /// The number behind it is a label (step 2, page 112).
    LABEL: "error code call dial hotline guichet step steps question exercise problem example figure fig table page pages chapter section version case equation no line round part item \
        note schritt aufgabe seite étape paso passo шаг p pp vol edition position index position level grade unit lesson method approach attempt try \
        reading day footnote workbook iso gpt gpt-4 q",
    /// A minus sign in words.
    MINUS: "minus negative moins menos meno минус سالب ऋण",
    /// A binary operator in words.
    OPERATOR: "x times plus minus entre divided multiplied mod modulo mal durch fois умножить разделить поделить multipliziert geteilt multiplié multipliée \
        divisé divisée multiplicado multiplicada dividido dividida moltiplicato diviso razy podzielić podzielone dibagi dikali kali keer \
        gedeeld",
    /// Begins another question, before a colon.
    ASKS: "问题 题目 問題 質問 문제 질문 سؤال السؤال प्रश्न q question problem exercise user human instruction input task example query prompt frage pregunta \
        pergunta domanda вопрос aufgabe",
    /// Compares upwards (larger).
    UP: "larger largest greater greatest bigger biggest higher highest maximum maximal exceeds longer größer größte plus_grand mayor maior \
        maggiore больше",
    /// Compares downwards (smaller).
    DOWN: "smaller smallest less lesser least lower lowest minimum minimal fewer shorter kleiner kleinste menor minore меньше",
    /// The number before it is a total (left, remain, altogether).
    TOTALS: "łącznie totalt tillsammans samen sisa कुल المجموع zusammen übrigen ensemble juntos insieme juntas осталось всего left remain remains \
        remaining altogether total overall together übrig insgesamt restants restantes rimasti sum summe gesamt somme suma somma soma totale \
        razem итого toplam totaal jumlah tổng",
    /// The number behind it is an example of a format (like, format).
    EXAMPLE: "like format example such e.g formatted looks style pattern",
    /// Confirms the number before it (correct, right).
    CONFIRMS: "correct right confirmed answer result",
    /// A month: the numbers beside it are dates.
    MONTH: "january february march april may june july august september october november december jan feb mar apr jun jul aug sep sept oct nov dec \
        januar februar märz mai juni juli oktober dezember janvier février mars avril juin juillet août septembre octobre novembre décembre \
        enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre",
    /// Ends with a full stop that ends no sentence (approx., i.e.).
    ABBREVIATION: "approx e.g eg i.e ie mr mrs ms dr vs no nos p pp fig eq ca bzw z.b d.h etc sec min hr hrs rs st ed vol",
    /// Makes an answer noun a thing that is looked for (find, to).
    SEEKS: "find get reach express put give write state provide need check format output return",
    /// Part of a number in words, in some language.
    NUMERAL: "",
    /// Stands for what the question asks about, as the subject of a sentence (it, that, she, we).
    SUBJECT: "it that this which he she they we you i there it's that's he's she's they're we're there's es er sie das dies man wir il elle on cela \
        ça ils elles c'est nous él ella ellos esto eso hay ele ela isso lui lei loro questo ci это он она они мы här det hij zij het dat to o \
        bu şu",
    /// Leaves open whether what is said is so (might, perhaps).
    UNSURE: "might may maybe perhaps possibly could probably guess guessing unsure vielleicht möglicherweise peut-être quizás tal_vez talvez forse \
        возможно",
    /// Begins a clause that the answer rests on (after, having, with, of).
    PREMISE: "where بعد قبل عندما बाद जब когда gdy kiedy nadat wanneer efter när setelah sesudah ketika sau after before when having \
        with without of since because as given if for by once starting adding subtracting multiplying dividing taking using knowing \
        considering nach vor wenn nachdem mit von après avant quand avec tras después antes cuando con depois quando dopo prima после до если \
        из",
    /// Begins an offer, a tip or a remark behind the answer.
    OFFER: "tip fun hope happy feel curious want try ps p.s fyi btw remember note interesting interestingly by-the-way bonus trivia tipp hinweis \
        astuce consejo dica consiglio",
    /// Speaks of work that is still to be done (need, let's, first).
    PLANS: "need needs first firstly let's let next begin start step compute calculate find determine plan divide multiply add subtract convert \
        zuerst d'abord primero",
    /// Announces an explanation of what was said (explain, breakdown, why).
    EXPLAINS: "explain explanation explanations how why breakdown reasoning steps calculation calculations working workings details derivation here's \
        reason justification erklärung rechnung begründung rechenweg explicación explication desglose détail spiegazione explicação объяснение \
        uitleg açıklama",
    /// Begins a conclusion from what stands before it, not a sum (so, therefore).
    FOLLOWS: "thereby so therefore thus hence finally consequently then means somit daher folglich also donc ainsi finalement entonces luego así \
        portanto logo então quindi dunque allora итак значит следовательно поэтому dus więc zatem alltså tedy",
    /// Says that a number is wrong.
    WRONG: "wrong incorrect impossible mistaken off falsch faux fausse incorrecto incorrecta errado errada sbagliato sbagliata fout fel неверно \
        błędne yanlış salah",
    /// Says that a number is right, before it.
    CORRECT: "correct richtig korrekt correcto correcta corretto correto juist",
    /// Begins a question that offers something (would, shall).
    OFFERS: "would want shall should need care möchtest möchten soll willst veux voulez souhaitez quieres quiere te le vuoi vuole gostaria quer czy \
        wil хотите anything",
    /// Names one of those who talk (you, I, we).
    TO_YOU: "you i me we du sie ich tu vous je que você chcesz вы",
    /// Stands in a heading over what the question gives (given, understanding).
    GIVENS: "understanding understand given givens known knowns information restate restating gegeben données datos dati dados facts",
    /// Speaks of what was asked (asked, wonder).
    ASKED: "asked asks asking wonder wondering gefragt fragt fragst demandé demandes demandez preguntado preguntas pregunta chiede perguntou",
    /// Stands in every question, and says nothing about it (how, does, number).
    COMMON: "how many much what which when who does did do will would can could find give wie viele viel was welche combien quel quelle cuántos \
        cuántas cuánto qué cuál quantos quantas qual quanto quanti quante quale сколько ile kolik hoeveel hur många kaç answer number please",
    /// The unit that a question asks for stands behind it (many, in).
    COUNTED: "many in much combien cuántos cuántas viele quanti quante quantos quantas ile kaç hoeveel många сколько mange kolik berapa nhiêu hány",
    /// Speaks of what is not so (were, wäre).
    WERE: "were was wäre wären hätte hätten käme fosse fossem fuera tivesse tivessem fuese étaient était avait бы",
    /// Speaks of what would be (would, serait).
    WOULD: "it'd you'd he'd she'd they'd we'd i'd would could might würde würden wären serait seraient ferait sería serían sarebbe sarebbero seria seriam бы",
    /// Asks for something (how, which).
    INTERROGATIVE: "how what which when who wie was welche combien quel quelle cuántos cuántas qué cuál quanti quante quantos quantas",
    /// Counts how often something occurs (times, digits).
    TIMES: "time times occurrence occurrences digit digits mal fois veces vezes volte раз раза",
    /// Says that the number behind it is rounded (about, nearly).
    ABOUT: "about roughly around approximately nearly almost rund etwa environ unos",
    /// Speaks of what is left (remain, keep).
    REMAINS: "left remain remains remained remaining stay stays stayed keep keeps kept still übrig bleiben bleibt behält noch reste restent garde \
        gardent quedan queda sobran sobra conserva restano rimangono resta rimane restam sobram sobrou ficam zostaje zostało blijven blijft kalır",
    /// Speaks of what is no longer there (gone, sold).
    GONE: "gone away lost lose loses spent spend spends sold sell sells gave give gives given broke broken break breaks ate eat eats eaten used less \
        fewer weg verkauft verliert verloren verschenkt verbraucht gegessen vendu vendus vendues vend perdu perdus donne donnés vendidos vendidas \
        vende perdió perdidos gastó gasta gastado venduti vendute vende persi speso spende perdeu vendeu gastou",
    /// Tells an operation on the numbers behind it (divide, add).
    OPERATES: "rewrite rewriting divide divided dividing divides multiply multiplied multiplying add adding adds subtract subtracting subtracts diviser divisez divise \
        multiplier multipliez ajouter ajoutez soustraire dividir divide multiplicar sumar restar dividere moltiplicare sommare sottrarre teile teilt \
        dividiere multipliziere addiere subtrahiere",
    /// The whole, or that of which there is a number, stands behind it (of, de).
    OF: "of von de di dei delle van",
    /// Asks for a number.
    HOW_MANY: "combien cuántos cuántas cuánto cuánta quanti quante quanto quantos quantas сколько hoeveel πόσα πόσο πόσοι πόσες πόσους wieviel berapa",
    /// Stands before "not" in place of a verb (did, do).
    DOES: "do does did have has had will would could can",
    /// Speaks of a value that is no more (original, regular).
    FORMER: "original regular previous usual initial former old earlier before originally previously ursprünglichen ursprüngliche alten regulären \
        vorherigen bisherigen vorher initiaux initiales précédents anciens ancien habituel d'origine avant originales anteriores habitual antiguos \
        antes originali precedenti iniziali prima originais",
    /// Turns a sentence (but, however).
    TURNS: "but aber mais pero mas ma however instead",
}

impl Meaning {
    /// True if any of the meanings of `other` is one of these.
    pub fn has(self, other: Meaning) -> bool {
        self.0 & other.0 != 0
    }

    /// Both together.
    pub const fn with(self, other: Meaning) -> Meaning {
        Meaning(self.0 | other.0)
    }
}

static MEANINGS: LazyLock<ByWord<Meaning>> = LazyLock::new(|| {
    let mut meanings: ByWord<Meaning> = HashMap::default();
    let rows = WORDS.iter().flat_map(|&(meaning, words)| words.split_whitespace().map(move |word| (word, meaning)));
    for (word, meaning) in rows.chain(numerals().map(|word| (word, Meaning::NUMERAL))) {
        let entry = meanings.entry(word).or_default();
        *entry = entry.with(meaning);
    }
    meanings
});

/// Endings of words in scripts without spaces, Chinese, Japanese, Korean and Thai, and what they mean.
const UNSPACED: &[(Meaning, &str)] = &[
    (Meaning::ANSWER, "答案 答え 結果 结果 答 정답 답 결과 คำตอบ"),
    (Meaning::GIVES, "一共有 共有 合計 总共 等于 得到 剩下"),
    (Meaning::REASON, "因为 由于 왜냐하면 なぜなら"),
    (Meaning::CONCLUDES, "所以 因此 따라서 그래서 したがって だから よって"),
    (Meaning::IF, "假如 如果 假设 若是 もし 仮に 만약"),
    (Meaning::UNSURE, "可能 也许 大概 猜 かもしれ たぶん 아마"),
    (Meaning::DENIES, "不是 而非 并非"),
    (Meaning::OR, "或者 或 または か 또는 혹은"),
    (Meaning::CORRECTS, "等等 不对 抱歉 更正 错了 订正 待って すみません 間違 訂正 잠깐 정정"),
    (Meaning::OPERATOR, "乘以 除以 かける 割る 곱하기 나누기"),
    (Meaning::TOTALS, "合计 合計 总计 합계"),
];

/// Ends of unspaced words that join a subject to its value, and minus signs in words.
const UNSPACED_ENDS: &[(Meaning, &str)] =
    &[(Meaning::LINK, "是 为 為 は 共 得 有 คือ 은 는 이 가"), (Meaning::MINUS, "负 負 零下 マイナス ลบ")];

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
    match known {
        Some(&known) => known,
        None if word.is_ascii() => Meaning::default(),
        None => unspaced(word),
    }
}

/// Meanings of a run of letters in a script that does not separate words.
fn unspaced(run: &str) -> Meaning {
    if !run.chars().any(|c| c >= '\u{e00}') {
        return Meaning::default();
    }
    // What matters stands right before the number.
    let tail: String = run.chars().rev().take(12).collect::<Vec<_>>().into_iter().rev().collect();
    let within = UNSPACED.iter().filter(|(_, parts)| parts.split(' ').any(|part| tail.contains(part)));
    let ending = UNSPACED_ENDS.iter().filter(|(_, ends)| ends.split(' ').any(|end| tail.ends_with(end)));
    within.chain(ending).fold(Meaning::default(), |meaning, (more, _)| meaning.with(*more))
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
