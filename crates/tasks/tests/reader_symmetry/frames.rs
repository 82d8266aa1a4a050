//! Sentences in which an answer is stated, in the manner of models of today.
use super::cases::{Case, Number};

/// A text with slots for numbers and words; a case that has not all of them is not answered in it.
///
/// | slot | filled with |
/// |---|---|
/// | `«n»` | the stated number; `«l»` in LaTeX, `«j»` as a JSON value |
/// | `«m»` | another number of its shape |
/// | `«a»`, `«b»` | two numbers of the question |
/// | `«x»` | the operation: `12 + 7`; `«lx»` in LaTeX |
/// | `«doing»`, `«order»`, `«name»` | `Adding 12 and 7`, `add 12 and 7`, `sum` |
/// | `«back»` | the operation on the stated number that gives the first operand back |
/// | `«unit»` | what is counted |
/// | `«says»` | a sentence that states the number as the answer to this very question |
/// | `«solution»` | worked steps with the number at their end |
pub struct Frame {
    pub name: &'static str,
    /// Language of the sentence; none for marks and signs alone.
    pub language: Option<&'static str>,
    pub text: &'static str,
}

const fn en(name: &'static str, text: &'static str) -> Frame {
    Frame { name, language: Some("en"), text }
}

const fn any(name: &'static str, text: &'static str) -> Frame {
    Frame { name, language: None, text }
}

const fn of(language: &'static str, name: &'static str, text: &'static str) -> Frame {
    Frame { name, language: Some(language), text }
}

/// The frames.
pub const FRAMES: &[Frame] = &[
    // The number alone, and marks.
    any("bare", "«n»"),
    any("bare, space before", " «n»"),
    any("bare with a stop", "«n»."),
    any("equals sign first", "= «n»"),
    any("arrow first", "→ «n»"),
    any("bold line", "**«n»**"),
    any("boxed", "\\boxed{«l»}"),
    any("boxed in dollars", "$\\boxed{«l»}$"),
    any("boxed on display", "\\[\n\\boxed{«l»}\n\\]"),
    any("hashes", "#### «n»"),
    any("tag", "<answer>«n»</answer>"),
    any("JSON", "{\"answer\": «j»}"),
    any("JSON in a fence", "```json\n{\n  \"answer\": «j»\n}\n```"),
    any("JSON with operands", "{\"a\": \"«a»\", \"b\": \"«b»\", \"result\": «j»}"),
    any("code span", "`«n»`"),
    // A sentence.
    en("it is", "It is «n»."),
    en("it's", "It's «n»."),
    en("we get", "We get «n»."),
    en("you get", "You get «n»."),
    en("I get", "I get «n»."),
    en("the result is", "The result is «n»."),
    en("the result comes to", "The result comes to «n»."),
    en("that makes", "That makes «n»."),
    en("that gives us", "That gives us «n»."),
    en("that leaves us with", "This leaves us with «n»."),
    en("works out to", "This works out to «n»."),
    en("is the answer", "«n» is the answer."),
    en("is what you get", "«n» is what you get."),
    en("the answer is", "The answer is «n»."),
    en("the answer would be", "The answer would be «n»."),
    en("so the answer is, bold", "So the answer is **«n»**."),
    en("therefore we have", "Therefore, we have «n»."),
    en("hence", "Hence «n»."),
    en("so", "So, «n»."),
    en("my answer", "My answer is «n»."),
    en("ended up with", "After working through it, I ended up with «n»."),
    en("colon", "Working it out: «n»"),
    en("should be", "It should be «n»."),
    en("final answer, colon", "Final answer: «n»"),
    en("bold heading", "**Final Answer**\n\n«n»"),
    en("heading", "## Answer\n\n«n»"),
    en("bold label", "**Answer:** «n»"),
    en("sure", "Sure! The answer is «n»."),
    en("chatty", "Great question! It comes to «n». 😊"),
    en("I hope it is correct", "Therefore, the final answer is: $\\boxed{«l»}$. I hope it is correct."),
    en("line of its own, bold", "Here is the result:\n\n**«n»**"),
    en("display", "We obtain\n\\[\n«l»\n\\]"),
    en("that's", "That's «n»!"),
    en("dash", "«n» — that's the answer."),
    any("exclamation", "«n»! 🎉"),
    en("has to be", "It has to be «n»."),
    en("I'd say", "I'd say «n»."),
    en("I believe", "I believe it's «n»."),
    en("correct answer", "The correct answer: **«n»**."),
    en("result equals", "Result = «n»"),
    any("x equals", "x = «n»"),
    any("x equals, LaTeX", "$x = «l»$"),
    any("quote, bold", "> **«n»**"),
    en("list, label", "- Answer: «n»"),
    en("underlined heading", "Answer\n------\n«n»"),
    any("HTML bold", "<b>«n»</b>"),
    en("in quotes", "The answer is \"«n»\"."),
    en("italic", "The answer is *«n»*."),
    en("bold sentence", "**The answer is «n».**"),
    en("bold label and number", "**Answer: «n»**"),
    en("label, arrow", "Answer → «n»"),
    en("short", "TL;DR: «n»"),
    en("in short", "In short: «n»."),
    en("to sum up", "To sum up, the value is «n»."),
    en("all together", "Putting everything together, we arrive at «n»."),
    en("confidence", "Answer: «n» (confidence: 95%)"),
    en("after 3 steps", "After 3 steps we get «n»."),
    en("in 2 ways", "I solved it in 2 ways and got «n» both times."),
    en("text in a box", "The final answer is: $\\boxed{\\text{«n»}}$"),
    en("box in brackets", "So the value is \\(\\boxed{«l»}\\)."),
    en("label, then display", "Answer:\n\n$$«l»$$"),
    any("XML", "<result>«n»</result>"),
    any("YAML", "answer: «n»"),
    any("JSON with reasoning", "{\"reasoning\": \"Start from «a», then use «b».\", \"answer\": «j»}"),
    any("JSON with confidence", "{\"answer\": «j», \"confidence\": 0.95}"),
    // The statement that answers this very question.
    any("says", "«says»"),
    any("says, bold", "**«says»**"),
    en("says behind a word", "Let's see.\n\n«says»"),
    en("says behind a colon", "Okay, here it goes: «says»"),
    en("says under a heading", "### Solution\n\n«says»"),
    en("says as step 3", "Step 1: Read the question.\nStep 2: Do the arithmetic.\nStep 3: «says»"),
    en("says, then offer", "«says» Want to see how I got there?"),
    en("says, then label", "«says»\n\n**Answer:** «n»"),
    en("says, then remark", "«says»\n\nNote: I took «a» and «b» from the question."),
    // Worked steps.
    any("solution", "«solution»"),
    any("solution, then says", "«solution»\n\n«says»"),
    any("solution, then box", "«solution»\n\n\\boxed{«l»}"),
    en("solution, then label", "«solution»\n\nFinal answer: «n»"),
    en("solution under a heading", "**Solution**\n\n«solution»"),
    en("says, then solution", "«says» Here is how:\n\n«solution»"),
    en("it is, then solution", "It is «n».\n\n«solution»"),
    any("thinking, solution", "<think>\nMaybe «m». I should work it out.\n</think>\n\n«solution»"),
    // The operation.
    any("equation", "«x» = «n»"),
    any("equation in LaTeX", "$«lx» = «l»$"),
    any("equation on display", "\\[\n«lx» = «l»\n\\]"),
    any("equation, bold result", "«x» = **«n»**"),
    en("equals", "«x» equals «n»."),
    en("name is", "The «name» is «n»."),
    en("doing gives", "«doing» gives «n»."),
    en("doing, we get", "«doing», we get «n»."),
    en("if you do it", "If you «order», you get «n»."),
    en("to do it", "To solve this, we «order». The result is «n»."),
    en("you asked", "You asked me to «order»: that's «n»."),
    en("equation, then sentence", "Let's compute it step by step.\n\n«x» = «n»\n\nSo the result is «n»."),
    en("operation is", "«x» is «n»."),
    en("comes out as", "«x» comes out as «n»."),
    en("evaluating", "Evaluating «x» yields «n»."),
    en("value of", "The value of «x» is «n»."),
    en("which is", "This is the same as «x», which is «n»."),
    en("must be", "Since «x» = «n», the result must be «n»."),
    en("we have to", "We have to «order», so it is «x» = «n»."),
    any("aligned", "$$\n\\begin{aligned}\nx &= «lx» \\\\\n&= «l»\n\\end{aligned}\n$$"),
    any("boxed equation", "$$\\boxed{«lx» = «l»}$$"),
    any("program's output", "```python\nprint(«x»)\n```\n\nOutput:\n```\n«n»\n```"),
    en("question and answer", "Question: «order»\nAnswer: «n»"),
    en("doing, passive", "When «doing» is done, «n» is obtained."),
    en("name comes out", "The «name» comes out at «n»."),
    en("name, colon", "The «name»: «n»"),
    en("name, bold label", "**The «name»:** «n»"),
    en("for the name", "For the «name» I get «n»."),
    en("as the name", "We find «n» as the «name»."),
    // Premises, checks, offers.
    en("given", "Given «a» and «b», the result is «n»."),
    en("since", "Since the two numbers are «a» and «b», it is «n»."),
    en("because", "It is «n», because the two numbers were «a» and «b»."),
    en("answer first", "«n»\n\nExplanation: the first number is «a» and the second one is «b»."),
    en("check", "The result is «n».\n\nCheck: «back»"),
    en("offer", "It is «n». Let me know if you need anything else!"),
    en("offer to show steps", "The answer is «n».\n\nWould you like me to show the steps?"),
    en("offer with numbers", "It is «n». Shall we try another one, for example with 64 and 81?"),
    en("from", "From «a» and «b», the outcome is «n»."),
    en("having looked", "Having looked at «a» and at «b», I can say that the result is «n»."),
    en("given that", "The result is «n», given that we start from «a» and «b»."),
    en("lead to", "«n» is what «a» and «b» lead to."),
    en("with in place", "With «a» in the first place and «b» in the second, you'd get «n»."),
    en("after order", "It's «n» after you «order»."),
    en("note first", "Note that «a» comes first. The answer is «n»."),
    en("note last", "The answer is «n». Note that «a» came first and «b» second."),
    en("rhetorical", "You have «a» and «b». The result? «n»."),
    any("arrow", "«a», «b» → «n»"),
    en("in and out", "Input: «a», «b»\nOutput: «n»"),
    en("double check", "It is «n». I double-checked it: «x» = «n»."),
    en("check first", "I went over «a» and «b» once more, and yes, it's «n»."),
    en("offer with an operand", "The result is «n». Want me to check it by working backwards to «a»?"),
    en("offer behind a rule", "Result: «n»\n\n---\n\nNeed help with another problem? Try one with 81 and 17!"),
    // Steps.
    en("steps", "1. Take «a».\n2. Take «b».\n3. «doing» gives «n»."),
    en(
        "steps, bold",
        "**Step 1:** Write down «a».\n\n**Step 2:** Write down «b».\n\n**Step 3:** Work it out.\n\n**Answer:** «n»",
    ),
    en("start and end", "We start with «a». Then we take «b» into account. We end up with «n»."),
    any("table", "| | |\n|---|---|\n| a | «a» |\n| b | «b» |\n| = | «n» |"),
    en(
        "table with words",
        "| Step | Value |\n|---|---|\n| First number | «a» |\n| Second number | «b» |\n| Result | «n» |",
    ),
    en("lines", "First number: «a»\nSecond number: «b»\nResult: «n»"),
    en("corrected", "I get «m». Wait, that's not right. It is «n»."),
    en("not but", "The answer is not «m» but «n»."),
    en("not this", "It isn't «m»; it's «n»."),
    en("some might think", "Some might think it's «m». However, it's «n»."),
    en("estimate first", "A quick guess would be «m», but the exact value is «n»."),
    en("asked and denied", "Is it «m»? No. It's «n»."),
    en("first attempt", "First attempt: «m». That's off, I slipped. Corrected: «n»."),
    any("struck out", "~~«m»~~ «n»"),
    en("table, bold total", "| Item | Value |\n|:--|--:|\n| a | «a» |\n| b | «b» |\n| **Answer** | **«n»** |"),
    // Thinking.
    any("thinking, empty", "<think>\n\n</think>\n\n«n»"),
    en("thinking in brackets", "[THINK]Perhaps «m»? Let me see.[/THINK]It is «n»."),
    en(
        "channels",
        "<|channel|>analysis<|message|>Need «a» and «b». Perhaps «m».<|end|><|start|>assistant<|channel|>final<|message|>We get «n».",
    ),
    any(
        "reasoning and answer tags",
        "<reasoning>\nI take «a» and «b». «m» is not it.\n</reasoning>\n<answer>\n«n»\n</answer>",
    ),
    any("thinking, bare", "<think>\nTake «a» first. Perhaps it is «m»? No, let me do that again.\n</think>\n\n«n»"),
    en("thinking, sentence", "<think>\nThey want «m» or so. Let me see.\n</think>\n\nThe result is «n»."),
    // Units.
    en("there are", "There are «n» «unit»."),
    en("number and unit", "«n» «unit»"),
    en("that makes, unit", "That makes «n» «unit» in total."),
    en("bold with unit", "So in the end it is **«n» «unit»**."),
    // Other languages.
    of("de", "de: Ergebnis", "Das Ergebnis ist «n»."),
    of("de", "de: ergibt", "Das ergibt «n»."),
    of("de", "de: es sind", "Also sind es «n»."),
    of("fr", "fr: résultat", "Le résultat est «n»."),
    of("fr", "fr: on obtient", "On obtient donc «n»."),
    of("es", "es: resultado", "El resultado es «n»."),
    of("es", "es: por lo tanto", "Por lo tanto, obtenemos «n»."),
    of("zh", "zh: 答案", "答案是«n»。"),
    of("zh", "zh: 所以", "所以结果是 «n»。"),
    of("pt", "pt: resultado", "O resultado é «n»."),
    of("it", "it: quindi", "Quindi il risultato è «n»."),
    of("ja", "ja: 答え", "答えは«n»です。"),
    of("de", "de: komme auf", "Ich komme auf «n»."),
    of("de", "de: beträgt", "Somit beträgt das Ergebnis «n»."),
    of("de", "de: Antwort", "**Antwort:** «n»"),
    of("de", "de: aus", "Aus «a» und «b» erhält man «n»."),
    of("fr", "fr: cela donne", "Cela donne «n»."),
    of("fr", "fr: réponse", "La réponse est «n»."),
    of("fr", "fr: avec", "Avec «a» et «b», on trouve «n»."),
    of("es", "es: da", "Eso da «n»."),
    of("es", "es: respuesta", "La respuesta es «n»."),
    of("es", "es: con", "Con «a» y «b» se obtiene «n»."),
    of("zh", "zh: 等于", "结果等于«n»。"),
    of("zh", "zh: 最终答案", "最终答案:**«n»**"),
    of("zh", "zh: 得到", "由«a»和«b»,我们得到«n»。"),
    of("pt", "pt: resposta", "A resposta é «n»."),
    of("pt", "pt: portanto", "Portanto, temos «n»."),
    of("it", "it: risposta", "La risposta è «n»."),
    of("ja", "ja: したがって", "したがって、答えは «n» です。"),
    of("ru", "ru: ответ", "Ответ: «n»."),
    of("ru", "ru: получаем", "В итоге получаем «n»."),
    of("ko", "ko: 정답", "정답은 «n»입니다."),
    // A second hundred, written when the reader read nearly all of the above.
    en("your answer", "Your answer is «n»."),
    en("we're left", "We're left with «n»."),
    en("what remains", "What remains is «n»."),
    en("you'd have", "You'd have «n»."),
    en("there you have it", "There you have it: «n»."),
    en("it is, behind", "«n» it is."),
    en("that would be", "That would be «n»."),
    en("looking for", "The number you're looking for is «n»."),
    en("value we want", "The value we want is «n»."),
    en("come up with", "I come up with «n»."),
    en("I calculate", "I calculate «n»."),
    en("calculation shows", "My calculation shows «n»."),
    en("computing this", "Computing this yields «n»."),
    en("returns", "The computation returns «n»."),
    en("final value", "Our final value: «n»"),
    en("turns out", "It turns out to be «n»."),
    en("amounts to", "It amounts to «n»."),
    en("evaluates to", "This evaluates to «n»."),
    en("one finds", "One finds «n»."),
    en("requested number", "Thus the requested number is «n»."),
    en("consequently", "Consequently, «n»."),
    en("done", "Done: «n»."),
    en("yes", "Yes, it's «n»."),
    en("absolutely", "Absolutely! That's «n»."),
    en("here you go", "Here you go: «n»"),
    en("here's your answer", "Here's your answer: **«n»** ✔️"),
    en("ans", "Ans: «n»"),
    en("A", "A: «n»"),
    en("capitals", "ANSWER: «n»"),
    en("space before the colon", "Final Answer : «n»."),
    en("label, dollars", "**Final Answer:** $«l»$"),
    en("quoted below", "So, the answer is:\n\n> «n»"),
    any("tick", "✅ «n»"),
    any("pointing hand, bold", "👉 **«n»**"),
    en("text in LaTeX", "$\\text{Answer: } «l»$"),
    any("therefore sign", "$\\therefore «l»$"),
    any("implies sign", "$\\Rightarrow «l»$"),
    any("equation environment", "\\begin{equation}\n«l»\n\\end{equation}"),
    any("equation, bold in LaTeX", "$$«lx» = \\mathbf{«l»}$$"),
    en("list below a label", "**Result:**\n\n- «n»"),
    en("numbered, label", "1) Read «a».\n2) Read «b».\n3) Result: «n»"),
    any("assignments", "a = «a»\nb = «b»\nresult = «n»"),
    any("equation on two lines", "«x»\n= «n»"),
    en("let x", "Let x = «x». Then x = «n»."),
    en("that's our result", "So «x» = «n», and that's our final result."),
    en("clear", "As «x» = «n», the answer is clear: «n»."),
    en("answer in between", "The answer, «n», follows from «x»."),
    en("answer from", "The answer (from «a» and «b») is «n»."),
    en("calculation with", "The result of the calculation with «a» and «b» is «n»."),
    en("because exactly", "«n», because «x» gives exactly that."),
    en("because equals", "Because «x» equals «n», we answer «n»."),
    en("I return", "You gave me «a» and «b»; I return «n»."),
    en("although", "Although «a» may look odd, the result is just «n»."),
    en("finish with", "Starting from «a» and using «b», we finish with «n»."),
    en("recall", "Recall that we have «a» and «b». Answer: «n»."),
    en("tempted", "I was tempted to say «m», but the right answer is «n»."),
    en("as one might think", "Not «m», as one might think, but «n»."),
    en("my first answer", "My first answer was «m»; the correct one is «n»."),
    en("correction", "Correction: the result is «n», not «m»."),
    en("not, in brackets", "The result is «n» (not «m»)."),
    en("rather than", "The answer is «n» rather than «m»."),
    en("struck out, bold", "**Answer:** ~~«m»~~ **«n»**"),
    en("to verify", "The answer is «n». To verify, start again from «a» and «b»: it works out. ✓"),
    en("verification", "The answer is «n».\n\n**Verification:** «back» ✓"),
    en("I can also", "«n»\n\nIf you want, I can also do 345 and 12."),
    en("given, result", "### Given\n- «a»\n- «b»\n\n### Result\n«n»"),
    en("given, find", "**Given:** «a», «b»\n**Find:** the result\n**Answer:** «n»"),
    any("table, one row", "| a | b | result |\n|---|---|---|\n| «a» | «b» | «n» |"),
    any("JSON, final answer", "{\"final_answer\": «j»}"),
    any("JSON with the question", "{\"question\": \"«order»\", \"answer\": «j»}"),
    any("call", "final_answer(«j»)"),
    any("tag, final", "<final>«n»</final>"),
    any("tag in brackets", "[ANSWER]«n»[/ANSWER]"),
    en("thought tag", "<thought>«m»?</thought>The answer is «n»."),
    any("Kimi's thinking", "◁think▷Hm, «m»? Let me see.◁/think▷«n»"),
    en("short answer, says", "Short answer: «says»"),
    en("says, that's it", "«says» That's it."),
    en("checked twice, says", "I checked it twice. «says»"),
    en("to answer, says", "To answer your question: «says»"),
    any("says, quoted", "> «says»"),
    any("says, italic", "*«says»*"),
    en("says as point 3", "1. Understand the question.\n2. Compute.\n3. «says»"),
    any("says in a tag", "<answer>«says»</answer>"),
    en("says behind a label", "**Final answer:** «says»"),
    en("solution, done", "«solution»\n\nDone."),
    en("solution, then sentence", "Let me work through it.\n\n«solution»\n\nSo the answer is **«n»**."),
    en("solution, then question", "«solution»\n\nDoes that help?"),
    en("solution, says in bold", "**Step by step:**\n\n«solution»\n\n**«says»**"),
    of("de", "de: kommt heraus", "Wenn man mit «a» und «b» rechnet, kommt «n» heraus."),
    of("de", "de: ist das Ergebnis", "«n» ist das Ergebnis."),
    of("de", "de: lautet", "Die Antwort lautet **«n»**."),
    of("fr", "fr: est le résultat", "«n» est le résultat."),
    of("fr", "fr: réponse finale", "Donc la réponse finale est **«n»**."),
    of("fr", "fr: on trouve", "En partant de «a» et de «b», on arrive à «n»."),
    of("es", "es: es el resultado", "«n» es el resultado."),
    of("es", "es: queda", "Nos queda «n»."),
    of("es", "es: respuesta final", "Por tanto, la respuesta final es **«n»**."),
    of("zh", "zh: 因此", "因此,答案为 **«n»**。"),
    of("zh", "zh: 算出", "根据«a»和«b»,可以算出«n»。"),
    of("pt", "pt: é o resultado", "«n» é o resultado."),
    of("it", "it: otteniamo", "Otteniamo quindi «n»."),
    of("ru", "ru: равен", "Результат равен «n»."),
    of("ja", "ja: 結果", "結果は «n» になります。"),
    of("ko", "ko: 결과", "결과는 «n»입니다."),
    of("ar", "ar: الجواب", "الجواب هو «n»."),
    of("hi", "hi: उत्तर", "उत्तर «n» है।"),
    // Words behind the answer in its own sentence, and other things that chat models say: the last to be written.
    any("tick behind", "«n» ✓"),
    any("tick behind bold", "**«n»** ✅"),
    any("equation, reversed", "«n» = «x»"),
    any("equation in brackets", "«n» (= «x»)"),
    en("that is", "It's «n» (that is, «x»)."),
    en("altogether", "That's «n» altogether: «x» = «n»."),
    en("colon behind", "It is «n»: the first number is «a», and the second one is «b»."),
    en("would be, colon behind", "The result would be «n»: you start from «a», and then comes «b»."),
    en("dash behind", "The result is «n» – here «a» comes first and «b» second."),
    en("brackets behind", "The result is «n» (from «a» and «b»)."),
    en("i.e.", "You'll get «n», i.e. what «a» and «b» come to."),
    en("semicolon", "That's «n»; «a» and «b» were given."),
    en("where", "«n», where «a» and «b» are the two numbers given."),
    en("out of", "We got «n» out of «a» and «b»."),
    en("with n", "With «n» you have the result for «a» and «b»."),
    en("so we are done", "The result is «n», so we are done with «a» and «b»."),
    en("as expected", "The result, given «a» and «b», comes to «n», as expected."),
    en("enumeration", "The first number is «a», the second is «b», and the result is «n»."),
    en("while", "While «a» and «b» are the inputs, «n» is the output."),
    en("inputs and output", "The inputs were «a» and «b», the output is «n»."),
    en("result for", "Result for «a» and «b»: «n»"),
    en("bold subject", "**«n»** is the result of working with «a» and «b»."),
    en("second method", "After double-checking with a second method, I still get «n»."),
    en("two methods", "Two methods, same result: «n»."),
    en("step 4", "Step 4 gives the final result, «n»."),
    en("by the way", "It is «n».\n\nBy the way, had the first number been «m», it would be another story."),
    en("for comparison", "The answer is «n». For comparison, the first number was «a»."),
    en("keep in mind", "You get «n». Keep in mind that I read the numbers as «a» and «b»."),
    en("hmm", "Hmm, let me think... «m»? No, wait, I think it's «n»."),
    en("hmm, actually", "«m»... actually, no: «n»."),
    en("sorry", "The answer is «m». Sorry, I slipped there; the correct result is «n»."),
    en("not quite", "One might guess «m», but that's not quite it: the result is «n»."),
    of("de", "de: Doppelpunkt", "Es sind «n»: erst kommt «a», dann «b»."),
    of("de", "de: denn", "Das Ergebnis ist «n», denn gegeben sind «a» und «b»."),
    of("fr", "fr: puisque", "Le résultat est «n», puisque l'on part de «a» et de «b»."),
    of("es", "es: ya que", "El resultado es «n», ya que se parte de «a» y «b»."),
    of("zh", "zh: 因为", "结果是«n»,因为给出的数是«a»和«b»。"),
];

impl Frame {
    /// The completion that states a number; none where the frame does not fit the case.
    pub fn fill(&self, case: &Case, number: &Number) -> Option<String> {
        let fits = match self.language {
            None | Some("en") if case.language == "en" => true,
            None => true,
            // A question in English is answered in any language, others in their own.
            Some(language) => language == case.language || case.language == "en",
        };
        if !fits {
            return None;
        }
        fill(self.text, case, number)
    }
}

/// A text with its slots filled.
fn fill(text: &str, case: &Case, number: &Number) -> Option<String> {
    let mut filled_text = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('«') {
        let (slot, behind) = after.split_once('»')?;
        filled_text.push_str(before);
        filled_text.push_str(&filled(slot, case, number)?);
        rest = behind;
    }
    Some(filled_text + rest)
}

fn filled(slot: &str, case: &Case, number: &Number) -> Option<String> {
    let words = &case.words;
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    match slot {
        "n" => Some(number.said.clone()),
        "l" => Some(latex(&number.said)),
        "j" => {
            let plain = serde_json::from_str::<serde_json::Number>(&number.said).is_ok();
            Some(if plain { number.said.clone() } else { format!("\"{}\"", number.said) })
        }
        "m" => Some(case.rival.said.clone()),
        "a" => case.a.clone(),
        "b" => case.b.clone(),
        "x" => operation(some(words.sign)?, &case.a, &case.b, str::to_owned),
        "lx" => operation(some(words.latex)?, &case.a, &case.b, latex),
        "doing" => fill(&some(words.doing)?, case, number),
        "order" => fill(&some(words.order)?, case, number),
        "name" => some(words.name),
        "back" => {
            let (a, b) = (case.a.as_ref()?, case.b.as_ref()?);
            some(words.back).map(|sign| format!("{} {sign} {b} = {a}", number.said))
        }
        "unit" => case.unit.clone(),
        "says" => fill(case.statement.as_ref()?, case, number),
        "solution" => fill(case.solution.as_ref()?, case, number),
        _ => None,
    }
}

fn operation(sign: String, a: &Option<String>, b: &Option<String>, spelled: fn(&str) -> String) -> Option<String> {
    Some(format!("{} {sign} {}", spelled(a.as_ref()?), spelled(b.as_ref()?)))
}

/// A number in LaTeX.
fn latex(said: &str) -> String {
    if let Some((above, below)) = said.split_once('/') {
        return match above.strip_prefix('-') {
            Some(above) => format!("-\\frac{{{above}}}{{{below}}}"),
            None => format!("\\frac{{{above}}}{{{below}}}"),
        };
    }
    if let Some((mantissa, power)) = said.split_once('e') {
        return format!("{mantissa} \\times 10^{{{power}}}");
    }
    said.replace('$', "\\$").replace('%', "\\%").replace(" €", "\\,€")
}
