//! Chinese and Japanese numerals.

/// Reads the numeral in a run of characters: place, length and value, where at least two stand together or nothing
/// else does.
pub fn wide_number(run: &str) -> Option<(usize, usize, String)> {
    const LONGEST: usize = 600;
    let mut from = 0;
    // Most single characters are parts of words (一共, 三角): the first numeral of which more stand together counts.
    while from < run.len().min(LONGEST) {
        let (start, length, text) = numeral_in(&run[from..])?;
        match text {
            Some(text) => return Some((from + start, length, text)),
            None => from += start + length,
        }
    }
    None
}

/// Characters that count things behind a numeral, in Chinese and Japanese.
const COUNTERS: [char; 47] = [
    '个', '個', '只', '隻', '本', '枚', '人', '块', '塊', '元', '天', '岁', '歲', '次', '杯', '瓶', '盒', '张', '張',
    '条', '條', '颗', '顆', '粒', '件', '台', '辆', '輛', '页', '頁', '斤', '双', '雙', '朵', '支', '枝', '根', '头',
    '頭', '袋', '包', '箱', '名', '册', '冊', '匹', '円',
];

/// Place and length of the first run of numerals, and its value where it is a number.
fn numeral_in(run: &str) -> Option<(usize, usize, Option<String>)> {
    const DIGITS: &str = "零一二三四五六七八九";
    let value = |c: char| match c {
        '〇' => Some(0u64),
        '两' | '兩' => Some(2),
        c => DIGITS.chars().position(|digit| digit == c).map(|value| value as u64),
    };
    let power = |c: char| match c {
        '十' => Some(10u64),
        '百' => Some(100),
        '千' => Some(1000),
        '万' | '萬' => Some(10_000),
        '亿' | '億' => Some(100_000_000),
        _ => None,
    };
    let is_numeral = |c: char| value(c).is_some() || power(c).is_some();
    // 零下五: the sign, no zero.
    let (start, _) = run.char_indices().find(|&(at, c)| is_numeral(c) && !run[at..].starts_with("零下"))?;
    let tail = &run[start..];
    let length = tail.find(|c| !is_numeral(c)).unwrap_or(tail.len());
    let numeral = &tail[..length];
    let count = numeral.chars().count();
    let behind_link = run[..start].ends_with(['是', '为', '為', '有', 'は']);
    // 七个: one of them before what is counted, unless it points to things (这两个) or is an article (一个).
    let counts = numeral != "一"
        && tail[length..].starts_with(COUNTERS)
        && !run[..start].ends_with(['第', '这', '這', '那', '前', '后', '後', '每', '几', '幾', '数', '其']);
    let negative = run[..start].ends_with(['负', '負']) || run[..start].ends_with("零下");
    let behind = &tail[length..];
    let run_of = |text: &str| text.find(|c| !is_numeral(c)).unwrap_or(text.len());
    let whole = |numeral: &str| match numeral.chars().any(|c| power(c).is_some()) {
        true => with_powers(numeral, value, power),
        false => numeral.chars().map(|c| value(c).map(|digit| char::from(b'0' + digit as u8))).collect(),
    };
    // 四分之三, 三点四; 三点四十 is a time.
    if let Some(top) = behind.strip_prefix("分之")
        && run_of(top) > 0
    {
        let text = whole(&top[..run_of(top)]).zip(whole(numeral)).map(|(top, bottom)| format!("{top}/{bottom}"));
        return Some((start, length + "分之".len() + run_of(top), text));
    }
    if let Some(decimals) = behind.strip_prefix(['点', '點'])
        && run_of(decimals) > 0
        && decimals[..run_of(decimals)].chars().all(|c| value(c).is_some())
    {
        let text = whole(numeral)
            .zip(whole(&decimals[..run_of(decimals)]))
            .map(|(whole, decimals)| format!("{whole}.{decimals}"));
        return Some((start, length + '点'.len_utf8() + run_of(decimals), text));
    }
    if count > 16 || (count < 2 && !(counts || negative || length == run.len() || behind_link && length == tail.len()))
    {
        return Some((start, length, None));
    }
    // Digit by digit where there are no powers: 二〇一九.
    Some((start, length, whole(numeral)))
}

/// The value of numerals with powers of ten: 三百二十, 两千零五.
fn with_powers(
    numeral: &str,
    value: impl Fn(char) -> Option<u64>,
    power: impl Fn(char) -> Option<u64>,
) -> Option<String> {
    let (mut total, mut section, mut unit) = (0u64, 0u64, 0u64);
    for c in numeral.chars() {
        match (value(c), power(c)) {
            (Some(digit), _) => unit = digit,
            (_, Some(power)) if power >= 10_000 => {
                total = (total + section + unit).max(1).checked_mul(power)?;
                (section, unit) = (0, 0);
            }
            (_, Some(power)) => {
                section += unit.max(1) * power;
                unit = 0;
            }
            _ => return None,
        }
    }
    Some((total + section + unit).to_string())
}
