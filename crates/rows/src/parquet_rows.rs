//! Rows of a Parquet file as JSON values.
use std::path::Path;
use std::sync::Arc;

use parquet::basic::ConvertedType;
use parquet::errors::ParquetError;
use parquet::record::{Field, Row};
use parquet::schema::types::{Type, TypePtr};
use serde_json::{Map, Number, Value};

use earnest_digest::input;

use crate::FileError;
use crate::parquet_file::{self, Damage, Reader, Unread};

/// A Parquet file that was opened.
pub struct ParquetFile {
    reader: Reader,
}

fn broken(path: &Path, reason: &Damage) -> FileError {
    FileError::unread(path, format!("it cannot be read as Parquet: {reason}")).hint(
        "the file may be incomplete: copy it again; if it is as its tool wrote it, write it again with another codec",
    )
}

impl ParquetFile {
    /// Opens a file.
    ///
    /// # Errors
    /// Files that are damaged or compressed in a way that is not read.
    pub fn open(path: &Path) -> Result<Self, FileError> {
        let file = input::open(path).map_err(|source| FileError::input(path.display(), source))?;
        match parquet_file::open(file) {
            Ok(reader) => Ok(ParquetFile { reader }),
            Err(Unread::Broken(reason)) => Err(broken(path, &reason)),
            Err(Unread::Codec { message, help }) => Err(FileError::unread(path, message).hint(help)),
        }
    }

    fn root(&self) -> &Type {
        self.reader.metadata().file_metadata().schema()
    }

    /// Number of rows.
    pub fn len(&self) -> usize {
        self.reader.len()
    }

    /// True if there is no row.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Names of the columns.
    pub fn columns(&self) -> Vec<&str> {
        self.root().get_fields().iter().map(|field| field.name()).collect()
    }

    /// The note of this name in the file's metadata.
    pub fn note(&self, name: &str) -> Option<String> {
        let notes = self.reader.metadata().file_metadata().key_value_metadata()?;
        notes.iter().find(|note| note.key == name).and_then(|note| note.value.clone())
    }

    /// Names of the members of a column that is a group.
    pub fn members(&self, column: &str) -> Vec<&str> {
        let field = self.root().get_fields().iter().find(|field| field.name() == column && field.is_group());
        field.into_iter().flat_map(|field| field.get_fields()).map(|field| field.name()).collect()
    }

    /// Hands on each row from 1 with the columns for which `keep` is true; it is asked for columns, and for their members with the
    /// names of both.
    ///
    /// # Errors
    /// Those of the file, which the caller's own errors wrap, and the caller's.
    pub fn rows<E: From<FileError>>(
        &self,
        path: &Path,
        keep: &dyn Fn(&str, Option<&str>) -> bool,
        each: &mut dyn FnMut(u64, Map<String, Value>) -> Result<(), E>,
    ) -> Result<(), E> {
        let failed = |reason: Damage| E::from(broken(path, &reason));
        let projection = parquet_file::guarded(|| projection(self.root(), keep)).map_err(failed)?;
        let mut rows = self.reader.rows(Some(projection));
        let mut number = 0;
        // Not around the receiver: its panics are its own.
        while let Some(row) = rows.next().map_err(failed)? {
            number += 1;
            let row = object(row).map_err(|reason| failed(Damage(format!("row {number}: {reason}"))))?;
            each(number, row)?;
        }
        Ok(())
    }
}

/// The schema with some columns and members.
fn projection(root: &Type, keep: &dyn Fn(&str, Option<&str>) -> bool) -> Result<Type, ParquetError> {
    let mut fields: Vec<TypePtr> = Vec::new();
    for field in root.get_fields().iter().filter(|field| keep(field.name(), None)) {
        let info = field.get_basic_info();
        let plain =
            field.is_group() && info.logical_type_ref().is_none() && info.converted_type() == ConvertedType::NONE;
        if !plain {
            fields.push(Arc::clone(field));
            continue;
        }
        let members = field.get_fields().iter().filter(|member| keep(field.name(), Some(member.name())));
        let members: Vec<TypePtr> = members.map(Arc::clone).collect();
        if members.is_empty() {
            continue;
        }
        let group = Type::group_type_builder(field.name()).with_fields(members).with_repetition(info.repetition());
        fields.push(Arc::new(group.build()?));
    }
    Type::group_type_builder(root.name()).with_fields(fields).build()
}

fn object(row: Row) -> Result<Map<String, Value>, Damage> {
    let named = |(name, field)| match value(field) {
        Ok(value) => Ok((name, value)),
        Err(reason) => Err(Damage(format!("column `{name}`: {reason}"))),
    };
    row.into_columns().into_iter().map(named).collect()
}

/// A value; numbers that JSON cannot hold become texts, as in the logs that Python writes.
fn value(field: Field) -> Result<Value, Damage> {
    let float = |value: f64| match Number::from_f64(value) {
        Some(number) => Value::Number(number),
        None if value.is_nan() => "NaN".into(),
        None => if value > 0.0 { "Infinity" } else { "-Infinity" }.into(),
    };
    Ok(match field {
        Field::Null => Value::Null,
        Field::Bool(value) => value.into(),
        Field::Byte(value) => value.into(),
        Field::Short(value) => value.into(),
        Field::Int(value) => value.into(),
        Field::Long(value) => value.into(),
        Field::UByte(value) => value.into(),
        Field::UShort(value) => value.into(),
        Field::UInt(value) => value.into(),
        Field::ULong(value) => value.into(),
        Field::Float16(value) => float(f64::from(f32::from(value))),
        Field::Float(value) => float(f64::from(value)),
        Field::Double(value) => float(value),
        Field::Str(text) => text.into(),
        Field::Bytes(bytes) => String::from_utf8_lossy(bytes.data()).into_owned().into(),
        Field::Group(row) => object(row)?.into(),
        Field::ListInternal(list) => list.elements().iter().cloned().map(value).collect::<Result<_, _>>()?,
        Field::MapInternal(map) => {
            let text = |field: &Field| match field {
                Field::Str(text) => Ok(text.clone()),
                other => parquet_file::text(other),
            };
            let entries = map.entries().iter().map(|(key, field)| Ok((text(key)?, value(field.clone())?)));
            Value::Object(entries.collect::<Result<_, Damage>>()?)
        }
        // Dates and decimals are no part of scores.
        other => parquet_file::text(&other)?.into(),
    })
}
