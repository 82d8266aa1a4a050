//! Features: the evidence for and against a number's being the answer, and their weights.
use std::sync::LazyLock;

macro_rules! features {
    ($($name:ident: $says:literal,)*) => {
        /// One piece of evidence on a number or on the absence of an answer.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum Feature { $(#[doc = $says] $name,)* }

        impl Feature {
            /// All of them, in order.
            pub const ALL: &'static [Feature] = &[$(Feature::$name,)*];

            /// The name in the file of weights.
            pub fn name(self) -> &'static str {
                match self { $(Feature::$name => stringify!($name),)* }
            }

            /// The description beside its weight.
            pub fn says(self) -> &'static str {
                match self { $(Feature::$name => $says,)* }
            }
        }
    };
}

features! {
    // Marks.
    Boxed: "in a box", BoxedResult: "the last number of a box or its result", Tagged: "between the marks that the question asks for",
    Hashes: "behind ####", Declared: "behind \"the answer is\"", DeclaredBehind: "behind one that is declared",
    Confirmed: "before \"is the answer\", \"is correct\"", LabelResult: "behind the name of a result and a colon",
    Headed: "below a heading \"Answer\"", KeyAnswer: "the answer's key of a JSON object", Bold: "bold",
    BoldSentence: "last of a bold sentence", Whole: "all of the completion", LineAlone: "all of its line",
    Continues: "goes on with the prompt", Choice: "an option of a list", Chosen: "the option that is chosen",
    // Expressions.
    EqualsLast: "behind the last equals sign", EqualsMiddle: "between two equals signs", EqualsLeft: "before an equals sign",
    About: "behind ≈", Unsolved: "of an equation with a variable", AskedEquation: "the result of the operation that is asked for",
    // Form and unit.
    InForm: "written as the instruction asks", OutOfForm: "not written as the instruction asks",
    AskedUnit: "with the unit that is asked for", OtherUnit: "with another unit", HasUnit: "with a unit",
    SmallWord: "one, two or three in words", SmallNumeral: "four to twelve in words", Ordinal: "a rank",
    OrdinalAsked: "a rank where one is asked for", YearAsked: "a year where one is asked for", CountWord: "none, once, twice",
    OtherPart: "the remainder where the quotient is asked for", PercentAsked: "a percentage where one is asked for",
    // The word before.
    CueLink: "is, equals", CueGives: "gives, costs, has", CueConcludes: "so, therefore", CueColon: "a colon", CueArrow: "an arrow",
    CueTotal: "total of", CueContext: "from, per, in", CueTo: "to", CueComma: "a comma", CueWith: "with", CueOther: "anything else",
    // The clause.
    EndsSentence: "ends its sentence", BeginsSentence: "begins its sentence", LastOfSentence: "the last of its sentence",
    OnlyOfSentence: "the only one of its sentence", Refuted: "its value is said to be wrong later", SaidWrong: "said to be wrong",
    BesideAsked: "beside one with the unit that is asked for", Restates: "says the question again",
    TableTotal: "the total of a table's row", ExplainsBehind: "explains what is stated before a colon",
    StatesResult: "the result of its own sentence again", PartOf: "the share or fraction of a whole",
    Operand: "an operand of an operation in words", Former: "a value that is no more, or the way from it",
    Foreign: "somebody else's answer", Prefix: "what another number begins with", InAsk: "behind \"how many\" in its clause",
    ManyListed: "one of four or more", Needs: "what the speaker would need", LastResult: "the last result of the text",
    AfterResult: "behind the result of its sentence", Computed: "the result of an operation", Trails: "before an ellipsis",
    CutLow: "weakly stated in a text that is cut", InReason: "in a reason", ReasonFirst: "in a reason that begins the sentence",
    InIf: "in a condition", InPremise: "in what the answer rests on", InBrackets: "in brackets",
    Elaborates: "in what is told in more detail", Denied: "behind \"not\"", RivalBefore: "behind another number and \"or\"",
    RivalBehind: "before \"or\" and another number", RangeSide: "a side of a range", InList: "beside another number and \"and\"",
    OfMany: "before \"of\"", NamedAsked: "behind the name that is asked about", NamedOther: "behind another name",
    Compared: "the larger one where that is asked for", NotCompared: "the smaller one where the larger is asked for",
    SegmentMost: "its part of the sentence has most words of the question",
    SegmentLess: "its part of the sentence has fewer words of the question", SideAsked: "of what is left where that is asked for",
    SideOther: "of what is gone where what is left is asked for", Adjunct: "behind a preposition, behind one that is not",
    WholeOf: "the whole of which the answer is a part", AfterTurn: "behind \"but\"", BeforeTurn: "before \"but\"",
    StrangeUnit: "with a unit that the question does not know", ResultFirst: "before an equals sign and its operation",
    SpeakerOther: "in what the speaker says of itself", CheckWithin: "checks the answer of its sentence",
    FollowsWithin: "behind \"so\" within a sentence", BeforeFollows: "before \"so\" within a sentence",
    CutStated: "stated before the sentence that is cut",
    // The sentence.
    Concludes: "begins with \"so\", \"therefore\"", AskedOne: "has one word of the question", AskedTwo: "has two words of the question",
    AskedThree: "has three words of the question", IfWould: "has \"if\" and \"would\"", Times: "so many times", Hypothetical: "is not so",
    Unsure: "maybe", Offer: "an offer or a tip", Check: "a check or a note", CheckSection: "below a heading over a check",
    Question: "asks", Plans: "says what is to be done", Bullet: "a line of a list", TableLast: "the last of a table's row",
    TableOther: "another of a table's row", ListFollows: "a list follows", Explained: "in an explanation behind the answer",
    ExplainFollows: "an explanation follows", NamesTarget: "names what the instruction asks for",
    // The place.
    LastSentence: "in the last sentence that has numbers", OnlySentence: "in the only sentence that has numbers",
    Corrected: "withdrawn later", Reopened: "behind a withdrawal", EarlierDeclared: "another is declared before",
    LaterDeclared: "another is declared later", EarlierShown: "another is shown before", LaterShown: "another is shown later",
    LaterResult: "another is a result later",
    // The text.
    Example: "the prompt's example of a format", Cut: "cut by the end of the text", CutAfter: "the text is cut in a later sentence",
    Contradicted: "two announcements in a row", Tier0: "about something else", Tier1: "a number of a sentence", Tier2: "a result",
    OtherLines: "other lines are numbers too",
    // No answer.
    NoneRefused: "says that it cannot be known", NoneTruncated: "the text is cut",
    NoneOperation: "ends with an operation without a result", NoneEmptyBox: "an empty box", NoneAsks: "ends with a question",
    NoneAnswered: "an instruction was answered", NoneDepends: "depends on something", NoneUnrelated: "no number speaks of the question",
    NoneBareList: "a bare list of numbers", NoneOpen: "ends where the answer would begin",
    NoneContradicted: "the last number is contradicted",
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
        let mut columns = line.split('\t');
        if let (Some(name), Some(weight)) = (columns.next(), columns.next())
            && let Some(index) = Feature::ALL.iter().position(|feature| feature.name() == name)
            && let Ok(weight) = weight.trim().parse()
        {
            weights[index] = weight;
        }
    }
    weights
});
