//! The numeracy profile of a model, from the stored answers of a run of the suite `profile`.
//!
//! `document` has the limits and the anatomy of wrong answers, `compare` the differences of two models by these answers and by those to shared questions, `notations` and `thinking` have what is asked once the limits are known, `text`, `page`,
//! `anatomy_page` and `thinking_page` show all of it.

mod anatomy_page;
mod compare;
mod document;
mod notations;
mod page;
mod text;
mod thinking;
mod thinking_page;

pub use compare::{Comparison, LimitDifference, SharedAnswers, comparison, shared_questions};
pub use document::{Anatomy, ClassShare, NumeracyProfile, PositionRow, SkillProfile, TaskErrors, profile};
pub use notations::NotationResult;
pub use page::{figures, page};
pub use text::{comparison_text, limit_text, text};
pub use thinking::{CapResult, Gain, ThinkingResult};
