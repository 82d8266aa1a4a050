//! The examples of docs/answers.md, read.
use earnest_answer::reader::{Asked, Form, read};

/// Prompt, completion, what is read, and whether the budget ended the completion.
const EXAMPLES: &[(&str, &str, Option<&str>, bool)] = &[
    ("What is 8/2?", "It is 4.", Some("4"), false),
    ("What is 8/2?", "It is 8.", Some("8"), false),
    ("What is 7/2?", "Dividing 7 by 2 gives 3.5.", Some("3.5"), false),
    ("What is 12 × 7?", "Since 12 and 7 are the numbers, it is 84.", Some("84"), false),
    ("What is 12 × 7?", "It is 84, because 12 and 7 are the numbers.", Some("84"), false),
    ("What is 12 × 7?", "The answer is 84.\n\nCheck: 84 / 7 = 12", Some("84"), false),
    ("What is 12 × 7?", "It is 84. Shall we try 9 × 9 next?", Some("84"), false),
    ("What is 12 × 7?", "I get 74. Wait, that's not right. It is 84.", Some("84"), false),
    ("What is 12 × 7 + 6?", "Step 1: 12 × 7 = 84\nStep 2: 84 + 6 = 90", Some("90"), false),
    (
        "A farmer packs 373 apples into crates of 12. How many crates does he need?",
        "Either 31 or 32, depending on the last crate.",
        None,
        false,
    ),
    ("What is 12 × 7?", "The answer is 84.\n\nQ: What is 3 + 4?\nA: 7", Some("84"), false),
    ("What is 12 × 7?", "12 × 7 =", None, true),
    ("What is 12 × 7?", "```python\nprint(12 * 7)\n```", None, false),
    ("Add two numbers, like 123 . 5 + 4 =", "The answer is 123.", Some("123"), false),
    ("What is 12 × 7?", "<think>Perhaps 74?</think>\\boxed{84}", Some("84"), false),
    ("What is 12 × 7?", "<think>Perhaps 74?", None, true),
];

#[test]
fn examples_of_the_page_are_read_as_it_says() {
    let mut wrong = Vec::new();
    for (prompt, completion, expected, truncated) in EXAMPLES {
        let reading = read(&Asked { prompt, form: Form::Number }, completion, *truncated);
        let right = match (&reading.answer, expected) {
            (Ok(answer), Some(expected)) => answer.is_same_as(expected),
            (Err(_), None) => true,
            _ => false,
        };
        if !right {
            wrong.push(format!("{completion:?}: expected {expected:?}, read {:?}", reading.answer));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
