//! The language of a completion, told by its short words.
use std::sync::LazyLock;

use super::vocabulary::{ByWord, lower_ascii};
use crate::number::words::Language;

/// Languages that short words tell.
const LANGUAGES: [Language; 7] = {
    use Language::{CommaDecimal, English, French, German, Italian, Portuguese, Spanish};
    [English, German, French, Spanish, Portuguese, Italian, CommaDecimal]
};

/// Short words that tell each of [`LANGUAGES`]; those that two of them share are left out.
const TELLING: [&str; LANGUAGES.len()] = [
    "the is are of and to in answer so we have has you with that it for this was be equals total number",
    "der die das ist und nicht ein eine ergibt beträgt antwort also sind von zu lautet summe ergebnis kostet \
         zusammen wir rest hat mehr wie viele insgesamt gibt für im auf mit noch fehlen sie er ihr haben jeder jede \
         bekommt den dem des wurden wird",
    "le la les est et une ce elle ils il sur pour par au aux avait ont quel quelle combien réponse donc des du il y \
         dans sont somme résultat coûte nous reste avec",
    "cuánto cuánta cuántos cuántas qué entre el los las es y una quedan queda cada hay tienen más cuesta le \
         respuesta la del se en por son suma resultado cuesta entonces total número tiene",
    "os é um uma com ficou sobram restam cada há quanto sobrou quantos quantas para ele ela tinha resposta soma \
         resultado então são da tem na custa portanto",
    "il lo gli è un una risposta la somma risultato quindi sono di che costa quante quanti quanto quanta restano \
         rimangono resta per ogni fa della delle degli dei ha hanno gli nel alla",
    "het een van dat zijn op er hij nog hoeveel han hon har hur det kvar ile ma jest kolik jich bu kaç toplam bir \
         antwoord är svaret och wynik jest odpowiedź to odpověď cevap ve sonuç jawabannya adalah",
];

/// Telling words and the places of their languages, as bits.
static BY_WORD: LazyLock<ByWord<u8>> = LazyLock::new(|| {
    let mut languages = ByWord::default();
    for (index, words) in TELLING.iter().enumerate() {
        for word in words.split(' ') {
            *languages.entry(word).or_default() |= 1 << index;
        }
    }
    languages
});

/// Words of a text that are looked at to tell its language.
const LOOKED_AT: usize = 60;

/// The language of a completion; where it has too few words, that of it and its question together.
pub fn language_of(completion: &str, question: &str) -> Language {
    told_by(&[completion], 2).or_else(|| told_by(&[completion, question], 1)).unwrap_or(Language::English)
}

/// The language that the short words of texts tell, if at least so many do.
fn told_by(texts: &[&str], least: usize) -> Option<Language> {
    let mut counts = [0usize; TELLING.len()];
    let (mut cyrillic, mut other) = (false, 0);
    // Letters that one of the languages has.
    for c in texts.iter().flat_map(|text| text.chars().take(20 * LOOKED_AT)) {
        let language = match c {
            'ñ' | '¿' | '¡' => Language::Spanish,
            'ã' | 'õ' => Language::Portuguese,
            'ß' => Language::German,
            'œ' | 'û' => Language::French,
            'ł' | 'ą' | 'ę' | 'ś' | 'ż' | 'ź' | 'ć' | 'ń' | 'ř' | 'ě' | 'ů' | 'ğ' | 'ı' | 'ş' | 'ő' | 'ű' | 'å'
            | 'č' | 'š' | 'ž' => Language::CommaDecimal,
            _ => continue,
        };
        if let Some(index) = LANGUAGES.iter().position(|&telling| telling == language) {
            counts[index] += 2;
        }
    }
    for word in texts
        .iter()
        .flat_map(|text| text.split(|c: char| !c.is_alphabetic()).filter(|word| !word.is_empty()).take(LOOKED_AT))
    {
        let first = word.chars().next().unwrap_or(' ') as u32;
        if (0x400..0x530).contains(&first) {
            cyrillic = true;
        } else if first >= 0x530 && !(0x1e00..0x2000).contains(&first) {
            other += 1;
        } else if word.len() <= 12 {
            let mut buffer = [0u8; 12];
            let found = lower_ascii(word, &mut buffer)
                .map_or_else(|| BY_WORD.get(word.to_lowercase().as_str()), |lower| BY_WORD.get(lower));
            if let Some(languages) = found {
                for (index, count) in counts.iter_mut().enumerate() {
                    *count += usize::from(languages >> index & 1);
                }
                // Most texts are English, and soon say so.
                if counts[0] >= 4 && counts[1..].iter().all(|&count| count + 2 < counts[0]) {
                    return Some(Language::English);
                }
            }
        }
    }
    if cyrillic {
        return Some(Language::CommaDecimal);
    }
    let (index, &most) = counts.iter().enumerate().rev().max_by_key(|(_, count)| **count)?;
    if other > most {
        return Some(Language::Other);
    }
    // One word may be another language's too. English wins a tie: its words are the most common ones in prompts.
    let alone = counts.iter().filter(|&&count| count > 0).count() == 1;
    let enough = if counts[0] == most || alone { 1 } else { 2 };
    (most >= enough.max(least)).then(|| LANGUAGES[if counts[0] == most { 0 } else { index }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn languages_are_told_by_short_words() {
        assert_eq!(language_of("Die Summe beträgt 1.284,5.", ""), Language::German);
        assert_eq!(language_of("La réponse est 0,375", ""), Language::French);
        assert_eq!(language_of("The answer is 5", "Die Summe"), Language::English);
        assert_eq!(language_of("3,5", "Ein Brot kostet 3,45 Euro. Was kosten die Brote?"), Language::German);
        assert_eq!(language_of("一共有63本书", ""), Language::Other);
    }
}
