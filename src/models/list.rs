//! The jobs behind `callme model list` and `callme model path`: folders -> text.
//!
//! **Invariant:** nothing is written but to the given writer, and the network is not touched.

use std::io::Write;
use std::path::PathBuf;

use super::locate::{in_dirs, own_files};
use super::{AUTO, ModelError, catalog, locate, shown, size};

/// Prints the catalogue as a table, then the GGUF files in `dirs` that are the user's own.
///
/// # Errors
///
/// [`ModelError::Print`] where `out` takes no more.
pub fn list(dirs: &[PathBuf], out: &mut dyn Write) -> Result<(), ModelError> {
    let catalog = catalog()?;
    let mut rows = vec![["NAME", "SIZE", "LICENCE", "SOURCE", "PRESENT"].map(str::to_owned)];
    for model in catalog.models() {
        let present = in_dirs(&model.file_name(), dirs);
        rows.push([
            model.name.clone(),
            model.size_bytes.map_or("?".to_owned(), size),
            model.license.clone(),
            model.source.to_string(),
            present.map_or("-".to_owned(), |path| shown(&path)),
        ]);
    }
    for (stem, path) in own_files(&catalog, dirs) {
        let bytes = path.metadata().map_or("?".to_owned(), |file| size(file.len()));
        let name = stem.escape_debug().to_string();
        rows.push([name, bytes, "-".to_owned(), "your own file".to_owned(), shown(&path)]);
    }
    let fallback: Vec<&str> = catalog.fallback().map(|model| model.name.as_str()).collect();
    let more = format!(
        "\n`callme model fetch NAME` fetches one; without a name it takes {}.\n",
        fallback.join(", or where that cannot be reached ")
    );
    out.write_all((table(&rows) + &more).as_bytes()).map_err(ModelError::Print)
}

/// Prints the path of a model that is present; without a name, of the one that `auto` takes.
///
/// # Errors
///
/// Those of [`locate()`], and [`ModelError::Print`] where `out` takes no more.
pub fn path(name: Option<&str>, dirs: &[PathBuf], out: &mut dyn Write) -> Result<(), ModelError> {
    let path = locate(name.unwrap_or(AUTO), dirs)?;
    writeln!(out, "{}", path.display()).map_err(ModelError::Print)
}

/// Columns as wide as their widest cell, two blanks apart; sizes to the right.
fn table(rows: &[[String; 5]]) -> String {
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let [name, bytes, license, source, _] = [0, 1, 2, 3, 4].map(width);
    let lines = rows.iter().map(|row| {
        let [n, b, l, s, present] = row;
        format!("{n:name$}  {b:>bytes$}  {l:license$}  {s:source$}  {present}\n")
    });
    lines.collect()
}
