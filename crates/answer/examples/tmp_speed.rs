use earnest_answer::reader::{Asked, Form, read};
use serde_json::Value;
fn main() {
    let mut rows = Vec::new();
    for file in std::env::args().skip(1) { for line in std::fs::read_to_string(file).unwrap().lines() { let v: Value = serde_json::from_str(line).unwrap(); rows.push((v["prompt"].as_str().unwrap().to_owned(), v["completion"].as_str().unwrap().to_owned())); } }
    let t = std::time::Instant::now(); let mut n = 0;
    while t.elapsed().as_secs_f64() < 4.0 { for (p, c) in &rows { let _ = read(&Asked { prompt: p, form: Form::Number }, c, false); n += 1; } }
    println!("{:.0} a second over {} rows", n as f64 / t.elapsed().as_secs_f64(), rows.len());
    for (name, text) in [("digits", "1".repeat(1_000_000)), ("boxes", "\\boxed{3} ".repeat(100_000)), ("numbers", "12 34, ".repeat(150_000)), ("because", "because 3 ".repeat(100_000)), ("if", "if 3, but 4 would be 5 ".repeat(40_000)), ("lines", "3\n".repeat(500_000)), ("bold", "**3** ".repeat(160_000)), ("eq", "3+4=7=".repeat(150_000)), ("distinct", (0..150_000).map(|i| format!("{i} ")).collect::<String>()), ("wrong", (0..50_000).map(|i| format!("{i} is wrong. ")).collect::<String>()), ("opt", (0..100_000).map(|i| format!("A) {i}\n")).collect::<String>()), ("answer is", "the answer is 5 and ".repeat(50_000)), ("open", "(".repeat(1_000_000)), ("colon", "5: ".repeat(300_000)), ("or", "5 or ".repeat(200_000)), ("cjk", "是5个".repeat(100_000)), ("any", "isn't any ".repeat(100_000))] {
        let t = std::time::Instant::now(); let _ = read(&Asked { prompt: "How many apples of 12 are there, A or B?", form: Form::Number }, &text, false); let a = t.elapsed();
        let half = &text[..text.floor_char_boundary(text.len() / 2)]; let t = std::time::Instant::now(); let _ = read(&Asked { prompt: "How many apples of 12 are there, A or B?", form: Form::Number }, half, false);
        println!("{name}: {:.3} s, half {:.3} s", a.as_secs_f64(), t.elapsed().as_secs_f64());
    }
}
