//! DNC: eight perturbations of questions with numbers, attack and defence (Xu et al., "Towards Robust Numerical Question
//! Answering: Diagnosing Numerical Capabilities of NLP Systems", EMNLP 2022).
//!
//! | files | contents |
//! |---|---|
//! | `mention` | numbers in texts: the reference's readings with their quirks, and corrected ones |
//! | `expression` | equations: exact, and as Python computes them within limits; nothing is executed |
//! | `problem`, `read`, `records`, `data` | a question; ASDiv-a, DROP and TAT-QA from bytes; rows that cannot be read are named |
//! | `kind`, `fixed`, `reference` | the perturbations, corrected and bit for bit; `extra` (sentences of others), `annotation` (people's) |
//! | `question_set`, `raw_json` | any JSON rows as questions, and back with their own bytes (`earnest perturb`) |
//! | `written` | numbers as people and models write them |
//! | `target`, `demonstrations`, `suite` | prompts, placeholders, examples clean and perturbed, the items |
//! | `score`, `measure`, `tatqa_metric` | a completion's score under every scorer |
//! | `pairs`, `effects`, `summary` | outcomes by question, paired differences, the mixed model, the table |
//!
//! Items depend on (data, options, seed); each random perturbation of a question has its own stream, so that no other question moves it. A
//! stored sample says enough of its question for the paper's comparison, which needs no data.

mod annotation;
mod data;
mod demonstrations;
mod effects;
mod expression;
mod extra;
mod fixed;
mod score;
mod kind;
mod measure;
mod calendar;
mod mention;
mod options;
mod pairs;
mod perturbation;
mod problem;
mod question_set;
mod raw_json;
mod read;
mod records;
mod reference;
mod registration;
mod sentence;
mod suite;
mod summary;
mod target;
mod tatqa_metric;
mod written;

pub use annotation::{Annotation, AnnotationError, Annotations, Asked, read_annotations};
pub use demonstrations::DemonstrationError;
pub use earnest_answer::python::{PythonValue, python_eval};
pub use expression::{Expression, ExpressionError, Operand, Operator, exact, plain};
pub use extra::{Donor, DonorPool, inserted, insertion_offset};
pub use fixed::{Context, Ineligible, perturb};
pub use kind::{Capability, Kind, UnknownKind, kinds};
pub use measure::{Equation, PaperEquation, drop_match, equation, paper_equation, round_half_up, same_value};
pub use mention::{Attached, Mention, Number, mentions, raw_reference_mentions, reference_mentions};

pub use options::{Mode, Options, OptionsError, PinnedFile, Scorer, Source};
pub use pairs::{PairedChange, paired_change, relative_change, right_share};
pub use perturbation::{Edit, Field, Perturbed};
pub use problem::{Dataset, FormulaError, Problem, ProblemError, Remainder, Scale, Split, UnknownDataset};
pub use question_set::{Fields, SetRow};
pub use read::{ReadFile, read};
pub use records::{FileError, Malformed, Record, Records, RowError, malformed_rows, records};
pub use reference::{
    ReferenceRandom, has_program, is_simple, perturb as reference_perturb, perturb_all as reference_perturb_all,
    perturb_text as reference_perturb_text,
};
pub use registration::Registration;
pub use score::own_scorer;
pub use suite::{Cell, Data, Dnc, DncError, QUESTIONS_VERSION, VERSION};
pub use summary::summarise_samples;
pub use target::{Numbers, PromptShape, Target, labelled, masked, parse_equation, restored};
pub use tatqa_metric::{TatqaMatch, tatqa_match};
pub use written::{Convention, ParsedNumber, parse_number, parse_number_as};
