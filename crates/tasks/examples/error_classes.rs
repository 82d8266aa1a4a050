//! False positive rates of the classes of errors: how often wrong answers that know nothing of a mistake fall into each.
//!
//! `cargo run --release -p earnest-tasks --example error_classes -- [answers] [seed]` prints the Markdown of `benches/results/profile.md`. Wrong
//! answers are of three kinds: a random number of the right length, the right answer with one random digit replaced, and a random number of
//! another length. All digits of a class are alike, so what is counted is chance.
use earnest_tasks::anatomy::{CALCULATIONS, ErrorClass, RandomWrong, random_rate, simulate};

const LENGTHS: [usize; 7] = [1, 2, 3, 4, 6, 10, 20];

fn main() {
    let mut arguments = std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    let answers: usize = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(20_000);
    let seed: u64 = arguments.next().and_then(|text| text.parse().ok()).unwrap_or(1);
    println!("{answers} wrong answers a row, seed {seed}; per cent that fall into a class (0.00 is none).\n");
    // Classes that random digits can fall into, and none of them.
    let shown: Vec<(usize, ErrorClass)> = ErrorClass::ALL
        .into_iter()
        .enumerate()
        .filter(|(_, class)| random_rate(*class).is_some() || *class == ErrorClass::Other)
        .collect();
    let name = |class: ErrorClass| if class == ErrorClass::Other { "none" } else { class.name() };
    let names: Vec<&str> = shown.iter().map(|(_, class)| name(*class)).collect();
    println!("| task | digits | wrong answers | {} |", names.join(" | "));
    println!("|---|---:|---|{}", "---:|".repeat(shown.len()));
    for (task, calculation, numbers) in CALCULATIONS {
        for digits in LENGTHS {
            for kind in RandomWrong::ALL {
                let shares = simulate((calculation, numbers), digits, kind, answers, seed);
                let cells: Vec<String> = shown.iter().map(|(index, _)| format!("{:.2}", shares[*index])).collect();
                println!("| {task} | {digits} | {} | {} |", kind.name(), cells.join(" | "));
            }
        }
    }
}
