//! One JSON array of objects, read object by object.
use std::io::Read;

use super::cursor::Cursor;
use super::json::{Fault, parse};
use super::refusal::{ENDLESS, LONGEST, Refusal, endless, too_long};
use super::rows::Output;
use super::text::unreadable;

/// Reads an array. Brackets, commas and quotes that are wrong refuse it as a whole, because then nobody knows where rows begin.
pub(super) fn read(text: impl Read, output: &mut Output<'_>) -> Result<(), Refusal> {
    let mut cursor = Cursor::new(text);
    let mut element = Vec::new();
    // The bracket, by which the caller has recognised an array.
    if let Some(byte) = cursor.skip_blanks().map_err(unreadable)? {
        cursor.step(byte);
    }
    let mut number = 0;
    if cursor.skip_blanks().map_err(unreadable)? == Some(b']') {
        return end(&mut cursor);
    }
    loop {
        let next = cursor.skip_blanks().map_err(unreadable)?;
        let (line, character) = cursor.place();
        match next {
            None => return Err(Refusal::new(format!("the array ends too early, after {number} rows")).help(MEND)),
            Some(byte @ (b',' | b']')) => {
                return Err(at(line, character, format!("a row is missing before `{}`", char::from(byte))));
            }
            Some(_) => number += 1,
        }
        output.admit(number)?;
        let length = one(&mut cursor, &mut element, number)?;
        let fault = match length > LONGEST as u64 {
            true => Err(Fault { place: None, reason: too_long(length) }),
            false => parse(&element).map(|_| ()),
        };
        match fault {
            Ok(()) => {
                // A row is one line of the temporary file. No text has these bytes, which JSON allows between values only.
                element.iter_mut().filter(|byte| matches!(byte, b'\n' | b'\r')).for_each(|byte| *byte = b' ');
                output.spool(number, &element)?;
            }
            Err(fault) => output.bad.add_fault(output.name, line, character, &fault),
        }
        match cursor.peek().map_err(unreadable)? {
            Some(b']') => return end(&mut cursor),
            Some(comma) => cursor.step(comma),
            None => {}
        }
    }
}

const MEND: &str = "the file may be incomplete; `python3 -m json.tool FILE` checks it";

fn at(line: u64, character: u64, reason: String) -> Refusal {
    Refusal::new(format!("line {line}, character {character}: {reason}")).help(MEND)
}

/// Reads one element up to the comma or bracket after it; returns its length.
fn one(cursor: &mut Cursor<impl Read>, element: &mut Vec<u8>, number: u64) -> Result<u64, Refusal> {
    element.clear();
    let (line, character) = cursor.place();
    let (mut length, mut depth, mut quoted, mut escaped) = (0, 0u64, false, false);
    loop {
        let Some(byte) = cursor.peek().map_err(unreadable)? else {
            let message =
                format!("the file ends inside row {number}, which begins in line {line}, character {character}");
            return Err(Refusal::new(message).help(MEND));
        };
        match byte {
            b'\n' if quoted => {
                let (line, character) = cursor.place();
                return Err(at(line, character, "a text has no closing quote in its line".to_owned()));
            }
            _ if escaped => escaped = false,
            b'\\' if quoted => escaped = true,
            b'"' => quoted = !quoted,
            _ if quoted => {}
            b',' | b']' if depth == 0 => {
                let blanks = element.iter().rev().take_while(|byte| byte.is_ascii_whitespace()).count();
                element.truncate(element.len() - blanks);
                return Ok(length);
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        length += 1;
        if length > ENDLESS {
            return Err(endless("row", number));
        }
        if length <= LONGEST as u64 {
            element.push(byte);
        }
        cursor.step(byte);
    }
}

/// Steps over the closing bracket and refuses what follows.
fn end(cursor: &mut Cursor<impl Read>) -> Result<(), Refusal> {
    cursor.step(b']');
    match cursor.skip_blanks().map_err(unreadable)? {
        None => Ok(()),
        Some(_) => {
            let (line, character) = cursor.place();
            Err(at(line, character, "there is more after the end of the array".to_owned()))
        }
    }
}
