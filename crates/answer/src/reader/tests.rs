//! Properties of the reader on any text: no panic, a span that lies in the text, time in proportion to its length.
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::*;

const FORMS: [Form; 5] = [Form::Integer, Form::Float, Form::Fraction, Form::Scientific, Form::Number];

const PROMPTS: [&str; 5] = [
    "Directly return the answer as an integer without any comma separator, like 123 . Add two numbers: 744 + 543 =",
    "Get the maximal number: 9.11 and 9.9 =",
    "Q: How many apples are in 3 boxes of 12?\nA:",
    "Insert a space between every digit in the following number: 4821",
    "<|im_start|>user\n1+1=?<|im_end|>\n<|im_start|>assistant\n<think>\n",
];

/// Pieces of which answers are made, and of which hostile ones are, with `¦` between them.
const PIECES: &str = "The answer is ¦Answer:¦1287¦-5¦744 + 543 = ¦\\boxed{¦}¦**¦\n¦\n\n¦ ¦.¦,¦=¦3/4¦½¦1.5e3¦1,234¦12,34,567¦ × 10^3¦\\frac{1}{2}¦\
     \\frac¦$¦\\[¦\\]¦<think>¦</think>¦<|channel|>final<|message|>¦<|im_end|>¦```¦```python\n¦print(5)¦forty-two¦and¦ or ¦not ¦\
     wait, ¦sorry¦Q: ¦A) 5\n¦| a | 5 |\n¦1. ¦- ¦#### ¦(¦)¦[¦]¦{¦\\¦^¦/¦%¦x¦١٢٣¦１２¦六十三¦é¦\u{301}¦🍰¦\u{200b}¦\u{0}¦because ¦so ¦is ¦\
     no, ¦either ¦~~¦<answer>¦</answer>¦\"answer\": ¦…";

/// Pieces that are repeated to hostile texts.
const REPEATED: &str = "7¦<¦<<¦<|¦1,2¦111,222_¦22,¦5 but not ¦the answer is 5 ¦1+1=¦1+1=2\n¦**5¦5²¦1 or ¦5 or 6 or ¦one hundred ¦一二三四五六七八九十¦10<sup>¦\
     1 x 10¦minus ¦1/¦1:¦\\begin{array}¦<|channel|>analysis<|message|>¦A) 5\n¦1. 5\n¦if 5 were 6 ¦until 5 ¦5 = ¦\\textbf{5} ¦5 (¦\
     not 5 ¦\"answer\": 5, ¦Step 1: ¦0.(3)¦1e¦½¦... ¦none ";

fn pieces() -> Vec<&'static str> {
    PIECES.split('¦').collect()
}

fn is_canonical(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit() || matches!(b, b'-' | b'.' | b'/' | b'e' | b' '))
}

fn check(prompt: &str, form: Form, completion: &str, truncated: bool) -> Result<(), TestCaseError> {
    let reading = read(&Asked { prompt, form }, completion, truncated);
    if let Ok(answer) = &reading.answer {
        prop_assert!(is_canonical(&answer.text), "{:?} in {completion:?}", answer.text);
        let span = completion.get(answer.span.clone());
        prop_assert!(span.is_some_and(|span| !span.is_empty()), "{:?} of {completion:?}", answer.span);
        prop_assert!(answer.is_same_as(&answer.text));
    }
    prop_assert!(reading.rivals.len() <= 8);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 4_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_read(
        text in any::<String>(),
        prompt in any::<String>(),
        form in proptest::sample::select(&FORMS[..]),
        truncated in any::<bool>(),
    ) {
        check(&prompt, form, &text, truncated)?;
    }

    #[test]
    fn any_order_of_pieces_is_read(
        pieces in prop::collection::vec(proptest::sample::select(pieces()), 0..40),
        prompt in proptest::sample::select(&PROMPTS[..]),
        form in proptest::sample::select(&FORMS[..]),
        truncated in any::<bool>(),
    ) {
        check(prompt, form, &pieces.concat(), truncated)?;
    }
}

#[test]
fn hostile_texts_take_time_in_proportion() {
    const LENGTH: usize = 100_000;
    let repeated = |piece: &str| piece.repeat(LENGTH / piece.len());
    let mut texts: Vec<String> = PIECES.split('¦').chain(REPEATED.split('¦')).map(repeated).collect();
    // Long things beside many short ones.
    let long = "7".repeat(LENGTH / 2);
    let lines = |line: &str| -> String {
        (0..LENGTH / 24).map(|index| line.replace('#', &(10_000 + index).to_string())).collect()
    };
    texts.extend([
        "\n".repeat(LENGTH / 2) + &"a\n".repeat(LENGTH / 4),
        "a\n".repeat(LENGTH / 4) + &"\n".repeat(LENGTH / 2),
        "so 5 = 5 x. ".repeat(LENGTH / 24) + &"}".repeat(LENGTH / 2),
        lines("**#**\n") + &format!("**{long}**"),
        format!("\\boxed{{{long}}}\n") + &lines("x = #\n"),
        format!("{long}\n") + &lines("The answer is #.\n"),
        "The answer is 5. ".to_owned() + &"@".repeat(LENGTH),
        "The answer is 5. Question ".to_owned() + &"1 ".repeat(LENGTH / 2),
        "~~a~~".repeat(LENGTH / 5),
        "\\begin{".repeat(LENGTH / 7),
        "<|channel|>analysis".repeat(LENGTH / 19),
        "{".repeat(LENGTH / 2) + &"}".repeat(LENGTH / 2),
        "\\boxed{".repeat(LENGTH / 8) + "5" + &"}".repeat(LENGTH / 8),
        "\\frac{".repeat(LENGTH / 8) + "5" + &"}{2}".repeat(LENGTH / 8),
    ]);
    for text in texts {
        for truncated in [false, true] {
            let begun = Instant::now();
            let reading = read(&Asked { prompt: PROMPTS[0], form: Form::Integer }, &text, truncated);
            let taken = begun.elapsed();
            let beginning: String = text.chars().take(30).collect();
            // They take a twentieth of this; anything quadratic takes many times as long.
            assert!(taken < Duration::from_secs(4), "{beginning}: {taken:?}");
            assert!(reading.rivals.len() <= 8);
        }
    }
}

#[test]
fn the_span_is_where_the_number_stands() {
    let asked = Asked { prompt: "744 + 543 =", form: Form::Integer };
    for (completion, text, span) in [
        ("744 + 543 = **1,287**", "1287", "1,287"),
        ("<think>700+500=1200…</think>\n\n1287", "1287", "1287"),
        ("<think>a</think>It is −5 <think>b</think>", "-5", "−5"),
        ("The answer is \\boxed{\\frac{3}{4}}.", "3/4", "\\frac{3}{4}"),
    ] {
        let reading = read(&asked, completion, false);
        let answer = reading.answer.unwrap();
        assert_eq!((answer.text.as_str(), &completion[answer.span]), (text, span));
    }
    // The prompt may have opened the thinking.
    let opened = Asked { prompt: "1+1=?<think>\n", form: Form::Integer };
    let completion = "1 and 1</think>\n\n2";
    let answer = read(&opened, completion, false).answer.unwrap();
    assert_eq!(&completion[answer.span], "2");
}

#[test]
fn what_is_told_beside_the_answer() {
    let asked = Asked {
        prompt: "Directly return the answer as an integer without any comma separator, like 123 . Add two numbers: 94 + 41 =",
        form: Form::Integer,
    };
    let echoed = read(&asked, "The answer is 123. Add two numbers: 94 + 41 = 135.", false);
    assert_eq!((echoed.text(), echoed.example_echoed), (Some("135"), true));
    let thought = read(&asked, "<think>94 + 41 = 135", true);
    assert_eq!((thought.answer, thought.only_in_thinking), (Err(NoAnswer::OnlyThinking), true));
    let rivals = read(&asked, "The answer is 134, wait, 135.", false);
    assert_eq!((rivals.text(), rivals.only_in_thinking), (Some("135"), false));
    let two = read(&asked, "It's either 134 or 135.", false);
    assert_eq!((two.answer, two.rivals), (Err(NoAnswer::Rivals), vec!["134".to_owned(), "135".to_owned()]));
}

#[test]
fn numbers_are_read_as_they_are_written_in_many_languages() {
    // Prompts, their completions and the numbers that are read, if one is.
    for (prompt, cases) in [
        (
            "كم كتابا بقي؟",
            "بقي خمسة وثلاثون كتابا.⇒35¦المجموع خمس عشرة كتابا.⇒15¦العدد هو مئة وعشرون كتابا.⇒120¦\
         الجواب هو ثلاثمئة وخمسة وأربعون.⇒345¦الجواب: ألفان وخمسمئة.⇒2500¦بقي أحد عشر كتابا.⇒11",
        ),
        ("小明有多少本书？", "小明有三百二十五本书。⇒325"),
        ("一共多少？", "一共是两千零五元。⇒2005"),
        ("How much?", "It is 4 10/3.⇒"),
        ("How much is it?", "The result is 3-1/2.⇒7/2¦It is 8.0E+06.⇒8.0e6¦It is 9.3 e 8.⇒9.3e8"),
        ("What fraction?", "It comes to five over eight.⇒5/8"),
        ("Wie lang ist das Band in Metern?", "Das Band ist 3,4 Meter lang.⇒3.4"),
        ("Quelle est la longueur ?", "La longueur est de 3,4 mètres.⇒3.4"),
        ("¿Cuánto mide?", "Mide 3,4 metros.⇒3.4"),
        ("What is the balance?", "The balance is **- $5**.⇒-5"),
        ("What is the value?", "The value is $- 5$.⇒-5"),
        ("How many?", "Result:\n- 5 apples⇒5"),
        ("What fraction is it?", "The answer is ${10}/{11}$.⇒10/11"),
    ] {
        for (completion, wanted) in cases.split('¦').map(|case| case.split_once('⇒').unwrap()) {
            let reading = read(&Asked { prompt, form: Form::Number }, completion, false);
            assert!(same_number(reading.text().unwrap_or_default(), wanted), "{completion}: {:?}", reading.text());
        }
    }
}

/// Sentences of the kinds that reviewers found misread, with the number that they state, if they do.
const KINDS: &str = "\
Tom has 12 apples and gives away 5. How many does he have left?|He keeps 8 and gives 5 away.|8
Tom has 12 apples and gives away 5. How many does he have left?|5 are gone and 8 remain.|8
Tom has 12 apples and gives away 5. How many does he have left?|He still has 8 of his 12 apples.|8
Tom has 12 apples and gives away 5. How many does he have left?|He has 8 apples after giving away 5.|8
A bakery makes 24 rolls and sells 19. How many rolls remain?|24 rolls in total. After selling 19, 6 remain.|6
What is 12 times 7?|The answer is 94, and 94 / 12 = 7.|94
What is 12 times 7?|94 = 12 × 7|94
What is 12 times 7?|It works out at 94.|94
What is 12 times 7?|It is 94. I'm 100% sure.|94
What is 2 to the power of 15?|`2 ** 15` returns 32748.|32748
What is 3 - 8?|\\[ - 6 \\]|-6
What is 3 - 8?|**Answer:** - 6|-6
What is 3 - 8?|It is $ - 6 $.|-6
What is 3 - 8?|[ANSWER]-6[/ANSWER]|-6
How many cups of flour does she need?|She needs 3 and a half cups.|7/2
How many cups of flour does she need?|That makes 7 over 2 cups.|7/2
小明有12个苹果，给了别人5个，还剩几个？|他还剩八个苹果。|8
Wie viele Äpfel bleiben übrig?|Es bleiben dreieinhalb übrig.|7/2
Quante mele restano?|Ne restano ventuno.|21
Quantas maçãs sobram?|Sobram vinte e um.|21
¿Cuántas manzanas quedan?|Quedan tres y medio.|7/2
¿Cuánto es 12 entre 4?|12 entre 4 es 48.|48
Which place from the left is the atlas?|It is the fourteenth from the left.|14
What is 15 times 4?|62. Would you like to try 15 times 5, or does that help?|62
A jacket costs $80 and is 15% off. What does it cost?|You'd pay $65 – that's $12 off the original $80.|65
A jacket costs $80 and is 15% off. What does it cost?|It costs $65 now, down from $80.|65
20 balls, 8 of them green. How many are not green?|8 are green and 11 aren't.|11
60 of 80 pupils passed. What percentage is that?|That is 0.75, or 70%.|70
Quanto custa?|42 + 18 = R$ 60|60
Wie viele Stunden braucht er?|98 : 14 = 8|8
¿Cuánto es?|El resultado es cuatrocientos veintiséis.|426
Quanto é?|São quatrocentos e vinte e seis.|426
Combien de litres ?|Il faut cinq litres et demi.|11/2
How many minutes does it last?|It lasts 2 hours and 25 minutes, i.e. 145 minutes.|145
How many litres does it deliver in half an hour?|It delivers 450 L in 30 min at 18 L/min.|450
How many litres are left?|3\u{200b}8\u{200b}0 litres|380
What is 15 times 4?|The reference answer is 60, but I calculate 61.|61
20 balls, 12 red and the rest blue. How many are blue?|12 are red and 9 are blue.|9
A class of 26 has 15 girls. How many boys?|15 are girls and 12 are boys.|12
What is the remainder of 29 divided by 4?|29 ÷ 4 = 7 R 2|2
What is 29 // 4?|29 divided by 4 is 8 with a remainder of 1.|8
What is 3 - 8?|**-\u{a0}6**|-6
Wie viel ist 17 / 5?|Das Ergebnis ist drei Komma fünf.|3.5
3 - 8 等于多少？|答案是负六。|-6
17 / 5 等于多少？|等于三点五。|3.5
多少？|答案是四分之三。|3/4
كم الباقي؟|الجواب هو ثلاثة أرباع.|3/4
A class has 28 pupils; three quarters play chess. How many?|That would be 22 students. If the class had 40 pupils, it'd be 30.|22
What is 6 * 17?|It's 112. A common mistake is to answer 92.|112
What is 48 divided by 6?|To solve this, divide 48 by 6.|
What is 48 divided by 6?|I would need about 5 minutes for that.|
What is 15 times 4?|Use the formula with a = 15 and b = 4.|
How many laps does he run in 3 weeks?|First find out how many days there are in 3 weeks.|
How many trawlers are there?|The table contains no entry for that quay.|";

/// Prompts as they are, as a base model's and in four templates of chats.
const PROMPTED: [&str; 6] = [
    "{}",
    "Q: {}\nA:",
    "<|im_start|>user\n{}<|im_end|>\n<|im_start|>assistant\n",
    "<start_of_turn>user\n{}<end_of_turn>\n<start_of_turn>model\n",
    "<|start_header_id|>user<|end_header_id|>\n\n{}<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n",
    "[INST] {} [/INST]",
];

#[test]
fn kinds_that_were_misread() {
    let rows = KINDS.lines().flat_map(|row| PROMPTED.map(|prompted| (row, prompted)));
    let misread = rows.filter_map(|(row, prompted)| {
        let [prompt, completion, stated] = row.split('|').collect::<Vec<_>>()[..] else { return Some(row.to_owned()) };
        let prompt = &prompted.replace("{}", prompt);
        let answer = read(&Asked { prompt, form: Form::Number }, completion, false).answer;
        let read = answer.map(|answer| answer.text).unwrap_or_default();
        (read != stated).then(|| format!("{prompted}: {row}: {read}"))
    });
    assert_eq!(misread.collect::<Vec<_>>(), [""; 0]);
}
