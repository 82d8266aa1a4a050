//! Features: the evidence for and against a number's being the answer, and their weights.
use std::sync::LazyLock;

macro_rules! features {
    ($($(#[doc = $doc:literal])* $name:ident,)*) => {
        /// One piece of evidence on a number or on the absence of an answer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Feature { $($(#[doc = $doc])* $name,)* }

        impl Feature {
            /// All of them, in order.
            pub const ALL: &'static [Feature] = &[$(Feature::$name,)*];

            /// The name in the file of weights.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$name => stringify!($name),)* }
            }
        }
    };
}

features! {
    // Marks.
    Boxed, BoxedResult, Tagged, Hashes, Declared, DeclaredBehind, Confirmed, LabelResult, Headed,
    KeyAnswer, Bold, BoldSentence,
    Whole, LineAlone, Continues, Choice, Chosen,
    // Expressions.
    EqualsLast, EqualsMiddle, EqualsLeft, About, AskedEquation,
    // Form and unit.
    InForm, OutOfForm, AskedUnit, OtherUnit, HasUnit, SmallWord, SmallNumeral, Ordinal, OrdinalAsked,
    YearAsked, CountWord, OtherPart,
    // The word before.
    CueLink, CueGives, CueConcludes, CueColon, CueArrow, CueTotal, CueContext, CueTo, CueComma,
    CueWith, CueOther,
    // The clause.
    EndsSentence, BeginsSentence, LastOfSentence, OnlyOfSentence, Refuted, SaidWrong, BesideAsked, Restates, TableTotal, ExplainsBehind, StatesResult, PartOf, Operand, LastResult, AfterResult, Computed, Trails, CutLow,
    InReason, ReasonFirst, InIf, InPremise, InBrackets, Elaborates, Denied, RivalBefore, RivalBehind, RangeSide, InList,
    OfMany, NamedAsked, NamedOther, Compared, NotCompared,
    SegmentMost, SegmentLess, SideAsked, SideOther, Adjunct, WholeOf, AfterTurn, BeforeTurn, StrangeUnit, ResultFirst, SpeakerOther, CheckWithin, FollowsWithin, BeforeFollows, CutStated, EachBehind,
    // The sentence.
    Concludes, AskedOne, AskedTwo, AskedThree, IfWould, Times, Hypothetical, Unsure, Offer, Check, CheckSection, Question, Plans, Bullet, TableLast, TableOther,
    ListFollows, Explained, ExplainFollows, NamesTarget,
    // The place.
    LastSentence, OnlySentence, Corrected, Reopened,
    EarlierDeclared, LaterDeclared, EarlierShown, LaterShown, LaterResult,
    // The text.
    Example, Cut, CutAfter, Contradicted, Tier0, Tier1, Tier2, OtherLines,
    // No answer.
    NoneRefused, NoneTruncated, NoneOperation, NoneEmptyBox, NoneAsks,
    NoneAnswered, NoneDepends, NoneUnrelated, NoneBareList, NoneOpen, NoneContradicted,
}

/// Some features: `these![Boxed Bold]`.
macro_rules! these {
    ($($name:ident)*) => { &[$($crate::reader::feature::Feature::$name),*] };
}
pub(super) use these;

/// A set of features.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Features([u64; Feature::ALL.len().div_ceil(64)]);

impl Features {
    pub fn add(&mut self, feature: Feature) {
        self.0[feature as usize / 64] |= 1 << (feature as usize % 64);
    }

    pub fn set(&mut self, feature: Feature, holds: bool) {
        if holds {
            self.add(feature);
        }
    }

    pub fn remove(&mut self, features: &[Feature]) {
        for &feature in features {
            self.0[feature as usize / 64] &= !(1 << (feature as usize % 64));
        }
    }

    pub fn has(&self, feature: Feature) -> bool {
        self.0[feature as usize / 64] >> (feature as usize % 64) & 1 == 1
    }

    pub fn any(&self, features: &[Feature]) -> bool {
        features.iter().any(|&feature| self.has(feature))
    }

    pub fn iter(&self) -> impl Iterator<Item = Feature> + '_ {
        Feature::ALL.iter().copied().filter(|&feature| self.has(feature))
    }

    /// The sum of the weights.
    pub fn score(&self) -> f64 {
        let mut sum = 0.0;
        for (word, &bits) in self.0.iter().enumerate() {
            let mut bits = bits;
            while bits != 0 {
                sum += WEIGHTS[word * 64 + bits.trailing_zeros() as usize];
                bits &= bits - 1;
            }
        }
        sum
    }
}

/// Weights by feature, as `examples/reader_fit.rs` fits them.
static WEIGHTS: LazyLock<Vec<f64>> = LazyLock::new(|| {
    let mut weights = vec![0.0; Feature::ALL.len()];
    for line in include_str!("weights.tsv").lines().filter(|line| !line.starts_with('#')) {
        if let Some((name, weight)) = line.split_once('\t')
            && let Some(index) = Feature::ALL.iter().position(|feature| feature.name() == name)
            && let Ok(weight) = weight.trim().parse()
        {
            weights[index] = weight;
        }
    }
    weights
});
