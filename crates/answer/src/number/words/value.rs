//! The value of number words.
use super::tables::Part;

/// The value of number words, as a spelling.
pub fn value(parts: &[Part]) -> Option<String> {
    let point = parts.iter().position(|part| *part == Part::Point);
    let (whole, decimals) = match point {
        Some(point) => (&parts[..point], Some(&parts[point + 1..])),
        None => (parts, None),
    };
    // "half a million"
    if let [Part::Over(2), Part::Joint, Part::Power(power)] | [Part::Over(2), Part::Power(power)] = whole {
        return Some((10u64.checked_pow(*power)? / 2).to_string());
    }
    let (mut total, mut group, mut over) = (0u64, 0u64, None);
    let mut last_small = None;
    for (index, part) in whole.iter().enumerate() {
        match *part {
            Part::Small(value) => {
                // "four twenty": French for eighty; elsewhere two numbers beside each other, which is none.
                group = match last_small {
                    Some(4) if value == 20 => group - 4 + 80,
                    // "dix-sept"
                    Some(10) if (7..=9).contains(&value) => group.checked_add(value)?,
                    Some(last)
                        if last < 20 && last != 0 && value < 100
                            || value >= 20 && (20..100).contains(&last) && value < 100 && last != 60 && last != 80 =>
                    {
                        return None;
                    }
                    _ => group.checked_add(value)?,
                };
                last_small = Some(if group % 100 == 80 && value == 20 { 80 } else { value });
            }
            Part::Power(2) => {
                group = group.max(1).checked_mul(100)?;
                last_small = None;
            }
            Part::Power(power) => {
                total = total.checked_add(group.max(1).checked_mul(10u64.checked_pow(power)?)?)?;
                group = 0;
                last_small = None;
            }
            Part::Dozen => {
                group = group.max(1).checked_mul(12)?;
                last_small = None;
            }
            Part::Joint => last_small = last_small.filter(|_| false),
            Part::Over(bottom) => {
                over = Some((bottom, index));
                break;
            }
            Part::Point => return None,
        }
    }
    let number = total.checked_add(group)?;
    if let Some((bottom, index)) = over {
        if index + 1 != whole.len() || decimals.is_some() {
            return None;
        }
        // "six and a half", "two and three quarters"; otherwise what stands before it is the numerator.
        let joint = whole[..index].iter().rposition(|part| *part == Part::Joint);
        let numerator = |parts: &[Part]| if parts.is_empty() { Some(1) } else { value(parts)?.parse::<u64>().ok() };
        return match joint {
            Some(joint) if joint > 0 => {
                let whole_part: u64 = value(&whole[..joint])?.parse().ok()?;
                let top = numerator(&whole[joint + 1..index])?;
                Some(format!("{}/{bottom}", whole_part.checked_mul(bottom)?.checked_add(top)?))
            }
            _ => Some(format!("{}/{bottom}", numerator(&whole[..index])?)),
        };
    }
    match decimals {
        None => Some(number.to_string()),
        Some(parts) => {
            let digits: Option<String> = parts
                .iter()
                .map(|part| match part {
                    Part::Small(value) => Some(value.to_string()),
                    _ => None,
                })
                .collect();
            digits.filter(|digits| !digits.is_empty()).map(|digits| format!("{number}.{digits}"))
        }
    }
}
