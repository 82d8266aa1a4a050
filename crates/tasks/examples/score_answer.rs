//! Scores one completion of an arithmetic question under every scorer: `cargo run --release -p earnest-tasks --example score_answer`.
use earnest_tasks::suite::arithmetic_bench::{ArithmeticBench, Options};
use earnest_tasks::suite::{Answered, Items, Scoring};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let suite = ArithmeticBench::new(Options::default())?;
    let item = suite.iter().next().ok_or("the suite has no questions")?;
    let completion = format!("Carrying the one, **{}** is the answer.", item.gold);

    let score = suite.score(&item, &Answered { completion: &completion, truncated: false });
    println!("{}\n{completion}\n", item.segments.question);
    println!("correct {}, read {:?}, failure {:?}", score.correct, score.answer, score.failure);
    for (scorer, right) in score.scorers.iter() {
        println!("  {scorer:<12} {right}");
    }
    // A metric that a score does not have is an error, never a zero.
    println!("digits matched {:.2}", score.metric("digit_match")?);
    Ok(())
}
