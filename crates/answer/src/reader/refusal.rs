//! Phrases of completions that give no answer, in the languages that models answer in.
use std::sync::LazyLock;

use regex::Regex;

/// Phrases that say that there is no answer.
const UNDETERMINED: &str = "no way to know|not told|not stated|not given|not mentioned|not provided|not specified|does not give|doesn't give|doesn't say|does not say|\
     cannot be determined|can't be determined|cannot determine|can't determine|not enough information|insufficient information|\
     impossible to determine|impossible to say|impossible to tell|impossible to know|impossible to find|impossible to calculate|impossible to answer|please provide|please clarify|\
     could you provide|could you clarify|more details about|both satisfy|both fit|are all possible|are possible|sont possibles|does not state|is missing(?:[.,;:!)]|$| from| in | here)|both are valid|both are possible|there isn't one|there is no such|\
     no such number|no valid answer|no solution|once you tell me|once i know|if you tell me|tell me how many|not contain any|no data for|no information|is not known|isn't known|isn't given|wasn't given|aren't given|isn't stated|isn't mentioned|can't calculate|cannot calculate|\
     can't compute|cannot compute|'d need to know|there is no digit|no estimate|no entry|not include any|not list any|does not exist|doesn't exist|not possible to|isn't enough|is not enough|can't tell|cannot tell|can't say|can't predict|\
     cannot predict|nobody can know|no one can know|can't know|cannot say|is undefined|no unique|would need to know|need more information|\
     without knowing|both work|both are|either is|either works|says nothing about|nicht bestimmen|nicht genug|nicht angegeben|steht nicht|\
     nicht bekannt|lässt sich nicht|keine angabe|dazu fehl|beides ist|beides wäre|impossible de|pas assez|pas indiqu|me manque|ne précise pas|\
     ne peux pas|non si ricava|non fornisce|non ci sono dati|dati insufficienti|pas précis|ne sait pas|ne peut pas|ne dit pas|les deux sont|\
     les deux convien|no se puede|no se indica|no se dice|no dice|no sabemos|no es posible|no lo dice|ambas son|ambos son|non lo dice|\
     non è indicat|non si può|non è possibile|non dice|entrambi sono|entrambe sono|não é possível|não dá para|não informa|não diz|não há nenhum|\
     não há como|falta inform|无法|不能确定|没有给出|没有提供|没有说明|不知道|未给出|都成立|都可以|書かれていない|書かれておらず|求めることができ|求められません|わかりません|分かりません|できません|주어지지 않|알 수 없|계산할 수 없|\
     할 수 없|недостаточно|не указан|не сказано|невозможно|неизвестн|нельзя|не могу|لا أستطيع|غير مذكور|لا يمكن|غير معروف|لم يذكر|नहीं दिया|\
     पता नहीं|संभव नहीं|verilmemiş|bilinmiyor|mümkün değil|belirtilmemiş|verilmediği|belirtilmediği|söyleyemem|hesaplayamam|bulunamaz|hesaplanamaz|nie podano|nie wiadomo|nie da się|brak informacji|nie można|\
     niet gegeven|niet te zeggen|staat er niet|niet bekend|không thể|không cho biết|tidak disebutkan|tidak bisa|tidak dapat|framgår inte|\
     går inte att";

/// Phrases that leave the answer open.
const DEPENDS: &str = "two ways|two readings|several ways|different ways|both readings|both interpretations|either reading|auf zwei arten|deux façons|\
     deux manières|dos maneras|due modi|duas maneiras|hinges on|more than one|several possibilities|few possibilities|several solutions|multiple solutions|depends on|it depends|depending on|kommt darauf an|hängt davon ab|dépend |depende |dipende |取决于|zależy|зависит|によって";

/// Phrases of a model that does not answer.
const REFUSES: &str = "i can't|i cannot|i can not|i'm sorry|i am sorry|unable to|not able to|i don't|i do not|as an ai";

/// Any of some phrases, in upper or lower case.
fn any(phrases: &str) -> Option<Regex> {
    Regex::new(&format!("(?i){phrases}")).ok()
}

static IS_UNDETERMINED: LazyLock<Option<Regex>> = LazyLock::new(|| any(UNDETERMINED));
static IS_OPEN: LazyLock<Option<Regex>> = LazyLock::new(|| any(DEPENDS));
static IS_REFUSAL: LazyLock<Option<Regex>> = LazyLock::new(|| any(REFUSES));

/// Offsets, in bytes, of the phrases by which a text says that there is no answer.
pub(super) fn undetermined(text: &str) -> Vec<usize> {
    IS_UNDETERMINED.iter().flat_map(|phrases| phrases.find_iter(text)).map(|found| found.start()).collect()
}

/// True if a text leaves the answer open.
pub(super) fn is_open(text: &str) -> bool {
    IS_OPEN.as_ref().is_some_and(|phrases| phrases.is_match(text))
}

/// True if a text refuses an answer.
pub(super) fn is_refusal(text: &str) -> bool {
    IS_REFUSAL.as_ref().is_some_and(|phrases| phrases.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_found_in_any_case() {
        assert!([&*IS_UNDETERMINED, &*IS_OPEN, &*IS_REFUSAL].iter().all(|phrases| phrases.is_some()));
        assert_eq!(undetermined("So: Недостаточно данных."), [4]);
        assert_eq!(undetermined("It cannot be determined. There is NO WAY TO KNOW."), [3, 34]);
        assert!(undetermined("It is 5.").is_empty());
    }
}
