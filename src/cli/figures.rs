//! Figures as files: options and writing.
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use clap::builder::{EnumValueParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::error::CliError;
use super::output::{self, write_file};
use earnest_report::plot::{Figure, Format};
use earnest_results::RowsError;

/// File format of figures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum FigureFormat {
    Svg,
    #[cfg_attr(not(feature = "figures"), value(hide = true))]
    Pdf,
    #[cfg_attr(not(feature = "figures"), value(hide = true))]
    Png,
}

impl From<FigureFormat> for Format {
    fn from(format: FigureFormat) -> Self {
        match format {
            FigureFormat::Svg => Format::Svg,
            FigureFormat::Pdf => Format::Pdf,
            FigureFormat::Png => Format::Png,
        }
    }
}

/// Folder and formats of figures.
#[derive(Debug, Clone, Args)]
pub struct FigureArgs {
    /// Write the figures as files into this folder too
    #[arg(long, value_name = "DIR", alias = "svg")]
    pub figures: Option<PathBuf>,

    /// Formats of these files, separated by commas
    #[arg(long, value_name = "FORMAT", value_delimiter = ',', default_value = "svg", requires = "figures", value_parser = built_format())]
    pub figure_format: Vec<FigureFormat>,
}

/// Reads a format that this program can draw.
fn built_format() -> impl TypedValueParser<Value = FigureFormat> {
    EnumValueParser::<FigureFormat>::new().try_map(|format| match Format::from(format).is_built() {
        true => Ok(format),
        false => Err(Format::NOT_BUILT),
    })
}

impl FigureArgs {
    /// Writes figures into a folder, in every format; returns the paths of each figure. Figures of one name, such as those of the models
    /// `a/b` and `a b`, get a number.
    pub fn write<'a>(
        &self,
        folder: &Path,
        figures: impl IntoIterator<Item = &'a Figure>,
    ) -> Result<Vec<Vec<PathBuf>>, CliError> {
        std::fs::create_dir_all(folder).map_err(|source| RowsError::Write { path: folder.to_owned(), source })?;
        let mut taken = HashSet::new();
        let one = |figure: &Figure| {
            let name = free_name(&figure.name, &mut taken);
            let file = |format: Format| -> Result<PathBuf, CliError> {
                let path = folder.join(format!("{name}.{}", format.ending()));
                put(&path, figure, format)?;
                Ok(path)
            };
            self.figure_format.iter().map(|format| file((*format).into())).collect::<Result<Vec<PathBuf>, CliError>>()
        };
        figures.into_iter().map(one).collect()
    }
}

/// Returns a name that is not taken yet, also where letters of both cases are one, and takes it.
fn free_name(name: &str, taken: &mut HashSet<String>) -> String {
    let numbered = (2..).map(|number| format!("{name}-{number}"));
    let mut names = std::iter::once(name.to_owned()).chain(numbered);
    names.find(|name| taken.insert(name.to_ascii_lowercase())).unwrap_or_else(|| name.to_owned())
}

/// Reads the path of a figure, whose ending says the format; `-` is standard output.
pub fn figure_file(text: &str) -> Result<PathBuf, String> {
    let path = PathBuf::from(text);
    match format_of(&path) {
        Some(format) if !format.is_built() => Err(Format::NOT_BUILT.to_owned()),
        Some(_) => output::allowed(&path).map(|()| path).map_err(|error| error.to_string()),
        None => Err("a figure is a file that ends in .svg, .pdf or .png".to_owned()),
    }
}

fn format_of(path: &Path) -> Option<Format> {
    if path == Path::new("-") {
        return Some(Format::Svg);
    }
    Format::of_ending(path.extension()?.to_str()?)
}

/// Writes a figure in the format that the path's ending says.
pub fn write_figure(path: &Path, figure: &Figure) -> Result<(), CliError> {
    put(path, figure, format_of(path).unwrap_or(Format::Svg))
}

fn put(path: &Path, figure: &Figure, format: Format) -> Result<(), CliError> {
    let content = format.draw(figure)?;
    write_file(path, |out| {
        out.write_all(&content).map_err(|source| RowsError::Write { path: path.to_owned(), source })
    })?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_of_one_name_are_several_files() {
        let mut taken = HashSet::new();
        let names =
            ["heat-a-b", "heat-a-b", "heat-A-b", "heat-a-b-2", "heat-c"].map(|name| free_name(name, &mut taken));
        assert_eq!(names, ["heat-a-b", "heat-a-b-2", "heat-A-b-3", "heat-a-b-2-2", "heat-c"]);
    }
}
