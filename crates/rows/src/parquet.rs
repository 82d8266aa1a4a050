//! Parquet: rows with typed columns, as JSON.
use std::collections::HashSet;
use std::fs::File;

use parquet::basic::{ConvertedType, LogicalType, TimeUnit};
use parquet::record::{Field, List, Row};
use parquet::schema::types::Type;

use super::json::{parse, write_text};
use super::refusal::{LONGEST, Refusal, too_long};
use super::rows::Output;
use super::time::{date, time_of_day, timestamp};
use crate::parquet_file::{self, Damage, Unread};

/// Bytes of a row from which on the values in it may take more memory than a row may have.
const LARGE: usize = 500_000;

fn broken(reason: &Damage) -> Refusal {
    Refusal::new(format!("it cannot be read as Parquet: {reason}"))
        .help("the file may be incomplete, wrongly written, or no Parquet; `python3 -c \"import pandas; print(pandas.read_parquet('FILE'))\"` shows what it has")
}

/// Reads a file of Parquet.
pub(super) fn read(file: File, output: &mut Output<'_>) -> Result<(), Refusal> {
    let reader = parquet_file::open(file).map_err(|unread| match unread {
        Unread::Broken(reason) => broken(&reason),
        Unread::Codec { message, help } => Refusal::new(message).help(help),
    })?;
    let metadata = reader.metadata();
    let schema = metadata.file_metadata().schema();
    for column in metadata.file_metadata().schema_descr().columns() {
        if column.converted_type() == ConvertedType::INTERVAL {
            let message =
                format!("the column `{}` holds intervals, which have no form in JSON", column.path().string());
            return Err(Refusal::new(message).help("leave it out, or make it a text or a number"));
        }
    }
    if let Some(name) = twice(schema) {
        let message = format!("it has two columns, or parts of one, that are called `{name}`");
        return Err(Refusal::new(message).help("rename one of them, or leave it out"));
    }
    let mut rows = reader.rows(None);
    let mut text = Vec::new();
    let mut number = 0;
    while let Some(row) = rows.next().map_err(|reason| broken(&reason))? {
        number += 1;
        output.admit(number)?;
        text.clear();
        match write_row(&mut text, &row, Some(schema), "") {
            Ok(()) if text.len() > LONGEST => output.bad(number, &too_long(text.len() as u64)),
            Ok(()) => match (text.len() > LARGE).then(|| parse(&text)) {
                Some(Err(fault)) => output.bad(number, &fault.reason),
                _ => output.spool(number, &text)?,
            },
            Err(Damage(reason)) => output.bad(number, &reason),
        }
    }
    Ok(())
}

/// A name that two members of one group have.
fn twice(group: &Type) -> Option<&str> {
    let mut names = HashSet::new();
    let members = members(Some(group));
    let repeated = members.iter().map(|member| member.name()).find(|name| !names.insert(*name));
    repeated.or_else(|| members.iter().find_map(|member| twice(member)))
}

/// Writes an object; the type is none where it is not known. The path is that of what it stands in, for messages.
fn write_row(out: &mut Vec<u8>, row: &Row, known: Option<&Type>, path: &str) -> Result<(), Damage> {
    out.push(b'{');
    let kinds = members(known);
    for (at, (name, field)) in row.get_column_iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write_text(out, name);
        out.push(b':');
        let kind = kinds.get(at).filter(|kind| kind.name() == name);
        let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
        write(out, field, kind.map(|kind| &**kind), &path)?;
    }
    out.push(b'}');
    Ok(())
}

fn members(known: Option<&Type>) -> &[std::sync::Arc<Type>] {
    match known {
        Some(Type::GroupType { fields, .. }) => fields,
        _ => &[],
    }
}

/// Writes a value as JSON: numbers as numbers, times as ISO 8601, bytes that are UTF-8 as texts, NaN as null.
fn write(out: &mut Vec<u8>, field: &Field, known: Option<&Type>, path: &str) -> Result<(), Damage> {
    let logical = known.and_then(|kind| kind.get_basic_info().logical_type_ref());
    let utc = !matches!(logical, Some(LogicalType::Timestamp(kind)) if !kind.is_adjusted_to_u_t_c);
    if out.len() > LONGEST {
        return Err(Damage(too_long(out.len() as u64)));
    }
    let mut number = |value: &dyn std::fmt::Display| out.extend_from_slice(value.to_string().as_bytes());
    match field {
        Field::Null => number(&"null"),
        Field::Bool(value) => number(value),
        Field::Byte(value) => number(value),
        Field::Short(value) => number(value),
        Field::Int(value) => number(value),
        Field::UByte(value) => number(value),
        Field::UShort(value) => number(value),
        Field::UInt(value) => number(value),
        Field::ULong(value) => number(value),
        // The reader gives times in nanoseconds, the default of pandas, as integers.
        Field::Long(value) => match logical {
            Some(LogicalType::Timestamp(kind)) if kind.unit == TimeUnit::NANOS => {
                write_text(out, &timestamp((*value).into(), utc));
            }
            Some(LogicalType::Time(kind)) if kind.unit == TimeUnit::NANOS => {
                write_text(out, &time_of_day((*value).into()));
            }
            _ => number(value),
        },
        // By the shorter form of their own precision: 0.1 stays 0.1.
        Field::Float16(value) => write_float(out, value.to_f32().into(), &value.to_f32(), path)?,
        Field::Float(value) => write_float(out, f64::from(*value), value, path)?,
        Field::Double(value) => write_float(out, *value, value, path)?,
        Field::Decimal(_) => number(&other(field, path)?.trim_end_matches('.')),
        Field::Str(text) if text.len() > LONGEST => return Err(Damage(too_long(text.len() as u64))),
        Field::Bytes(bytes) if bytes.len() > LONGEST => return Err(Damage(too_long(bytes.len() as u64))),
        Field::Str(text) => write_text(out, text),
        Field::Bytes(bytes) => match std::str::from_utf8(bytes.data()) {
            Ok(text) => write_text(out, text),
            Err(_) => {
                return Err(Damage(format!(
                    "the column `{path}` holds bytes that are not UTF-8; leave it out of the file"
                )));
            }
        },
        Field::Date(days) => write_text(out, &date((*days).into())),
        Field::TimeMillis(value) => write_text(out, &time_of_day(i128::from(*value) * 1_000_000)),
        Field::TimeMicros(value) => write_text(out, &time_of_day(i128::from(*value) * 1_000)),
        Field::TimestampMillis(value) => write_text(out, &timestamp(i128::from(*value) * 1_000_000, utc)),
        Field::TimestampMicros(value) => write_text(out, &timestamp(i128::from(*value) * 1_000, utc)),
        Field::Group(row) => write_row(out, row, known, path)?,
        Field::ListInternal(list) => write_list(out, list, known, path)?,
        Field::MapInternal(map) => {
            let value = members(members(known).first().map(|pair| &**pair)).get(1).map(|kind| &**kind);
            let mut keys = HashSet::new();
            out.push(b'{');
            for (at, (key, field)) in map.entries().iter().enumerate() {
                if at > 0 {
                    out.push(b',');
                }
                let key = match key {
                    Field::Str(key) => key.clone(),
                    key => other(key, path)?,
                };
                write_text(out, &key);
                if !keys.insert(key) {
                    return Err(Damage(format!("the column `{path}` holds a map that has a key twice")));
                }
                out.push(b':');
                write(out, field, value, path)?;
            }
            out.push(b'}');
        }
    }
    Ok(())
}

/// The text of a value that has no other form in JSON.
fn other(field: &Field, path: &str) -> Result<String, Damage> {
    parquet_file::text(field).map_err(|reason| Damage(format!("the column `{path}` holds {reason}")))
}

fn write_list(out: &mut Vec<u8>, list: &List, known: Option<&Type>, path: &str) -> Result<(), Damage> {
    // The format's three levels: the list, a repeated group, the element in it. Older files have two.
    let inner = match known {
        Some(kind) if kind.is_group() => members(known).first().map(|inner| &**inner),
        other => other,
    };
    let element = match members(inner) {
        [element] => Some(&**element),
        _ => inner,
    };
    out.push(b'[');
    for (at, field) in list.elements().iter().enumerate() {
        if at > 0 {
            out.push(b',');
        }
        write(out, field, element, path)?;
    }
    out.push(b']');
    Ok(())
}

/// Writes a floating-point number. NaN is null, because pandas writes missing numbers as NaN.
fn write_float(out: &mut Vec<u8>, value: f64, printed: &dyn std::fmt::Debug, path: &str) -> Result<(), Damage> {
    if value.is_infinite() {
        return Err(Damage(format!("the column `{path}` holds {value}, which JSON cannot")));
    }
    let text = if value.is_nan() { "null".to_owned() } else { format!("{printed:?}") };
    out.extend_from_slice(text.as_bytes());
    Ok(())
}
