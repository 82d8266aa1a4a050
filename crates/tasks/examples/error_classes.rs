//! False positive rates of the classes of errors: how often wrong answers that know nothing of a mistake fall into each.
//!
//! `cargo run --release -p earnest-tasks --example error_classes -- [answers] [seed]` prints the Markdown of `benches/results/profile.md`. Wrong
//! answers are of three kinds: a random number of the right length, the right answer with one random digit replaced, and a random number of
//! another length. All digits of a class are alike, so what is counted is chance. The second table is that of `docs/profile.md`: the largest rate
//! of all tasks.
use earnest_tasks::anatomy::{CALCULATIONS, ErrorClass, RandomWrong, simulate};

const LENGTHS: [usize; 6] = [1, 2, 3, 4, 6, 10];

/// Digits at which random numbers, and right ones with one digit replaced, are in the table of the largest rates.
const RANDOM: [usize; 4] = [1, 2, 3, 4];
const ONE_DIGIT: usize = 6;

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let answers: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("{answers} wrong answers a row, seed {seed}; per cent that fall into a class (0.00 is none).\n");
    // Classes that random digits can fall into.
    let shown: Vec<(usize, ErrorClass)> =
        ErrorClass::ALL.into_iter().enumerate().filter(|(_, class)| class.depends_on_digits()).collect();
    let names: Vec<&str> = shown.iter().map(|(_, class)| class.name()).collect();
    println!("| task | digits | wrong answers | {} |", names.join(" | "));
    println!("|---|---:|---|{}", "---:|".repeat(shown.len()));
    let mut largest = vec![[0.0_f64; RANDOM.len() + 1]; ErrorClass::ALL.len()];
    for (task, calculation, numbers) in CALCULATIONS {
        for digits in LENGTHS {
            for kind in RandomWrong::ALL {
                let shares = simulate((calculation, numbers), digits, kind, answers, seed);
                let column = match kind {
                    RandomWrong::OneDigit => Some(RANDOM.len()).filter(|_| digits == ONE_DIGIT),
                    _ => RANDOM.iter().position(|column| *column == digits),
                };
                if let Some(column) = column {
                    largest.iter_mut().zip(&shares).for_each(|(most, share)| most[column] = most[column].max(*share));
                }
                let cells: Vec<String> = shown.iter().map(|(index, _)| format!("{:.2}", shares[*index])).collect();
                println!("| {task} | {digits} | {} | {} |", kind.name(), cells.join(" | "));
            }
        }
    }
    println!("\nThe largest of all tasks:\n");
    println!("| class | {} | one digit replaced |", RANDOM.map(|digits| format!("{digits} digits")).join(" | "));
    println!("|---|---:|---:|---:|---:|---:|");
    for (index, class) in shown {
        let [random @ .., one_digit] = largest[index].map(|share| format!("{share:.1}"));
        // An answer with one wrong digit is what the classes of near answers are for.
        let one_digit = if class.is_near() { String::new() } else { one_digit };
        println!("| `{class}` | {} | {one_digit} |", random.join(" | "));
    }
}
