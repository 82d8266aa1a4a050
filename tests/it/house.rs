//! The map of the workspace: modules of a crate that use each other in a circle, and the crates' edges beside those of docs/architecture.md.
//! house_texts.rs has the rules on what code says.
//! `cargo test --release --test it house -- --nocapture` prints the circles.
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::unsafe_code::root;

/// A path by names, from the crate's root.
type Names = Vec<String>;

/// Modules of a crate with what they re-export, and the paths that their code uses.
#[derive(Default)]
struct Crate {
    /// File of a module.
    file_of: BTreeMap<Names, usize>,
    files: Vec<PathBuf>,
    /// Names that a module re-exports, and the modules of which it re-exports all.
    reexported: BTreeMap<(Names, String), Names>,
    all_of: BTreeMap<Names, Vec<Names>>,
    /// Names that a module defines.
    defined: BTreeSet<(Names, String)>,
    /// Paths that the code of a file uses.
    uses: Vec<(usize, Names)>,
}

impl Crate {
    /// Reads the modules of the crate in a folder without their tests.
    fn read(folder: &Path) -> Crate {
        let main = ["src/lib.rs", "src/main.rs"].into_iter().map(|file| folder.join(file)).find(|file| file.exists());
        let mut found = Crate::default();
        found.file(&main.unwrap(), Vec::new());
        found
    }

    fn file(&mut self, path: &Path, module: Names) {
        let text = std::fs::read_to_string(path).unwrap();
        let tokens: TokenStream = text.parse().unwrap();
        let index = self.files.len();
        self.files.push(path.to_owned());
        self.file_of.insert(module.clone(), index);
        // Files of inner modules are beside `mod.rs` and `lib.rs`, or in the folder with the module's name.
        let stem = path.file_stem().unwrap();
        let is_root = ["mod", "lib", "main"].iter().any(|name| stem == *name);
        let folder = if is_root { path.parent().unwrap().to_owned() } else { path.with_extension("") };
        self.items(tokens.into_iter().collect(), &module, index, &folder);
    }

    /// The items of a module, or code within one.
    fn items(&mut self, tokens: Vec<TokenTree>, module: &Names, file: usize, folder: &Path) {
        let word = |index: usize| match tokens.get(index) {
            Some(TokenTree::Ident(ident)) => ident.to_string(),
            _ => String::new(),
        };
        let is = |index: usize, sign: char| matches!(tokens.get(index), Some(TokenTree::Punct(punct)) if punct.as_char() == sign);
        let mut index = 0;
        while index < tokens.len() {
            if is(index, '#') {
                let attribute = tokens.get(index + 1).map(ToString::to_string).unwrap_or_default();
                index += 2;
                if is_of_tests(&attribute) {
                    index = after_item(&tokens, index);
                }
                continue;
            }
            match word(index).as_str() {
                "use" => {
                    let end = (index..tokens.len()).find(|&at| is(at, ';')).unwrap_or(tokens.len());
                    let is_public = index > 0 && (word(index - 1) == "pub" || index > 1 && word(index - 2) == "pub");
                    let mut leaves = Vec::new();
                    leaves_of(&tokens[index + 1..end], &Vec::new(), &mut leaves);
                    for (path, name) in leaves {
                        let Some(path) = self.absolute(path, module) else { continue };
                        match (is_public, name) {
                            (true, Some(name)) => drop(self.reexported.insert((module.clone(), name), path)),
                            (true, None) => self.all_of.entry(module.clone()).or_default().push(path),
                            (false, _) => self.uses.push((file, path)),
                        }
                    }
                    index = end;
                }
                "mod" if !word(index + 1).is_empty() => {
                    let inner = [&module[..], &[word(index + 1)]].concat();
                    self.defined.insert((module.clone(), word(index + 1)));
                    match tokens.get(index + 2) {
                        Some(TokenTree::Group(group)) => {
                            self.file_of.insert(inner.clone(), file);
                            let folder = folder.join(word(index + 1));
                            self.items(group.stream().into_iter().collect(), &inner, file, &folder);
                        }
                        _ => {
                            let name = word(index + 1);
                            let beside = folder.join(format!("{name}.rs"));
                            let within = folder.join(&name).join("mod.rs");
                            if let Some(path) = [beside, within].into_iter().find(|path| path.exists()) {
                                self.file(&path, inner);
                            }
                        }
                    }
                    index += 3;
                    continue;
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union" => {
                    self.defined.insert((module.clone(), word(index + 1)));
                }
                first
                    if !first.is_empty()
                        && is(index + 1, ':')
                        && is(index + 2, ':')
                        && !(index > 0 && is(index - 1, ':')) =>
                {
                    let mut path = vec![first.to_owned()];
                    while is(index + 1, ':') && is(index + 2, ':') && !word(index + 3).is_empty() {
                        path.push(word(index + 3));
                        index += 3;
                    }
                    let is_module = self.file_of.contains_key(&[&module[..], &path[..1]].concat());
                    if ["crate", "self", "super"].contains(&path[0].as_str()) || is_module {
                        let path = self.absolute(path, module);
                        self.uses.extend(path.map(|path| (file, path)));
                    }
                }
                _ => {}
            }
            if let Some(TokenTree::Group(group)) = tokens.get(index) {
                self.items(group.stream().into_iter().collect(), module, file, folder);
            }
            index += 1;
        }
    }

    /// The path from the crate's root; none for one of another crate.
    fn absolute(&self, path: Names, module: &Names) -> Option<Names> {
        let (mut at, mut rest) = (module.clone(), &path[..]);
        match path.first()?.as_str() {
            "crate" => (at, rest) = (Vec::new(), &path[1..]),
            "self" => rest = &path[1..],
            "super" => {
                while rest.first().is_some_and(|name| name == "super") {
                    at.pop()?;
                    rest = &rest[1..];
                }
            }
            name => {
                let inner = [&module[..], &[name.to_owned()]].concat();
                let is_declared =
                    self.file_of.contains_key(&inner) || self.defined.contains(&(module.clone(), name.to_owned()));
                is_declared.then_some(())?;
            }
        }
        Some([&at[..], rest].concat())
    }

    /// The file in which what a path names is defined, through re-exports.
    fn defining(&self, path: &Names, depth: usize) -> Option<usize> {
        let length = (0..=path.len()).rev().find(|&length| self.file_of.contains_key(&path[..length]))?;
        let (module, rest) = (path[..length].to_vec(), &path[length..]);
        let own = self.file_of[&module];
        let Some(name) = rest.first().filter(|_| depth < 8) else { return Some(own) };
        let through = |target: &Names| self.defining(&[&target[..], &rest[1..]].concat(), depth + 1);
        if let Some(target) = self.reexported.get(&(module.clone(), name.clone())) {
            return through(target);
        }
        if !self.defined.contains(&(module.clone(), name.clone())) {
            for target in self.all_of.get(&module).into_iter().flatten() {
                if self.defined.contains(&(target.clone(), name.clone()))
                    || self.reexported.contains_key(&(target.clone(), name.clone()))
                {
                    return self.defining(&[&target[..], rest].concat(), depth + 1);
                }
            }
        }
        Some(own)
    }

    /// Files by circle, the largest first: each uses all others, directly or by way of one another.
    fn circles(&self) -> Vec<Vec<&Path>> {
        let mut edges = vec![BTreeSet::new(); self.files.len()];
        for (file, path) in &self.uses {
            edges[*file].extend(self.defining(path, 0).filter(|to| to != file));
        }
        let reach: Vec<BTreeSet<usize>> = (0..edges.len())
            .map(|from| {
                let (mut seen, mut open) = (BTreeSet::new(), vec![from]);
                while let Some(next) = open.pop() {
                    open.extend(edges[next].iter().filter(|to| seen.insert(**to)).copied());
                }
                seen
            })
            .collect();
        let mut left: BTreeSet<usize> = (0..edges.len()).collect();
        let mut found = Vec::new();
        while let Some(first) = left.pop_first() {
            let circle: Vec<usize> = left
                .iter()
                .copied()
                .filter(|other| reach[first].contains(other) && reach[*other].contains(&first))
                .collect();
            left.retain(|other| !circle.contains(other));
            if !circle.is_empty() {
                found.push([first].iter().chain(&circle).map(|file| self.files[*file].as_path()).collect::<Vec<_>>());
            }
        }
        found.sort_by_key(|circle| std::cmp::Reverse(circle.len()));
        found
    }

    /// What files of a circle use of each other, for whoever wants to cut it.
    fn edges_of(&self, circle: &[&Path]) -> Vec<String> {
        let mut found = BTreeSet::new();
        for (file, path) in &self.uses {
            let Some(to) = self.defining(path, 0) else { continue };
            let (from, to) = (self.files[*file].as_path(), self.files[to].as_path());
            if from != to && circle.contains(&from) && circle.contains(&to) {
                found.insert(format!("{} uses {} of {}", from.display(), path.join("::"), to.display()));
            }
        }
        found.into_iter().collect()
    }
}

/// True for the attribute of what only tests compile.
pub fn is_of_tests(attribute: &str) -> bool {
    let attribute = attribute.replace(' ', "");
    attribute.starts_with("[cfg(test)") || attribute.starts_with("[cfg(all(test,")
}

/// The index after the item that begins at an index.
pub fn after_item(tokens: &[TokenTree], mut index: usize) -> usize {
    while index < tokens.len() {
        match &tokens[index] {
            TokenTree::Punct(punct) if punct.as_char() == ';' => return index + 1,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => return index + 1,
            _ => index += 1,
        }
    }
    index
}

/// Paths of a `use` with the names that they get; none for `*`.
fn leaves_of(tokens: &[TokenTree], before: &Names, into: &mut Vec<(Names, Option<String>)>) {
    let mut path = before.clone();
    let mut index = 0;
    while index < tokens.len() {
        match &tokens[index] {
            TokenTree::Ident(ident) if ident == "as" => {
                let name = tokens.get(index + 1).map(ToString::to_string);
                into.push((path, name));
                return;
            }
            TokenTree::Ident(ident) => path.push(ident.to_string()),
            TokenTree::Punct(punct) if punct.as_char() == '*' => return into.push((path, None)),
            TokenTree::Group(group) => {
                let inner: Vec<TokenTree> = group.stream().into_iter().collect();
                for part in inner.split(|token| matches!(token, TokenTree::Punct(punct) if punct.as_char() == ',')) {
                    if !part.is_empty() {
                        leaves_of(part, &path, into);
                    }
                }
                return;
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => {}
        }
        index += 1;
    }
    if path.last().is_some_and(|name| name == "self") {
        path.pop();
    }
    let name = path.last().cloned();
    into.push((path, name));
}

/// Files of the crate in a folder that are more than tests.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    Crate::read(folder).files
}

/// Files that a circle of modules may have.
const MOST: usize = 5;

/// Crates with their folders; the program is `earnest`.
pub fn crates() -> Vec<(String, PathBuf)> {
    let mut found = vec![("earnest".to_owned(), root().to_owned())];
    for entry in std::fs::read_dir(root().join("crates")).unwrap() {
        let entry = entry.unwrap();
        found.push((entry.file_name().into_string().unwrap(), entry.path()));
    }
    found.sort();
    found
}

#[test]
fn no_crate_has_a_large_circle_of_modules() {
    for (name, folder) in crates() {
        let found = Crate::read(&folder);
        let circles = found.circles();
        println!(
            "{name}: {} files, circles of {:?}",
            found.files.len(),
            circles.iter().map(Vec::len).collect::<Vec<_>>()
        );
        let largest = circles.first().map_or(0, Vec::len);
        let first = circles.first().map(|circle| found.edges_of(circle).join("\n")).unwrap_or_default();
        assert!(largest <= MOST, "{largest} files of {name} use each other, more than {MOST}:\n{first}");
    }
}

/// Everything that a name leads to.
fn closure(edges: &BTreeMap<String, BTreeSet<String>>) -> BTreeMap<String, BTreeSet<String>> {
    let of = |from: &String| {
        let (mut seen, mut open) = (BTreeSet::new(), vec![from.clone()]);
        while let Some(next) = open.pop() {
            open.extend(edges.get(&next).into_iter().flatten().filter(|to| seen.insert((*to).clone())).cloned());
        }
        seen
    };
    edges.keys().map(|from| (from.clone(), of(from))).filter(|(_, to)| !to.is_empty()).collect()
}

/// Our crates in a manifest's dependencies, also those of some systems alone, without those of tests.
fn dependencies(manifest: &toml::Table) -> impl Iterator<Item = (&str, &toml::Value)> {
    let of_systems =
        manifest.get("target").and_then(toml::Value::as_table).into_iter().flat_map(|systems| systems.values());
    let tables = [manifest].into_iter().chain(of_systems.filter_map(toml::Value::as_table));
    tables
        .flat_map(|table| ["dependencies", "build-dependencies"].map(|name| table.get(name)))
        .filter_map(|found| found.and_then(toml::Value::as_table))
        .flatten()
        .filter_map(|(name, dependency)| {
            let package = dependency.get("package").and_then(toml::Value::as_str).unwrap_or(name);
            Some((package.strip_prefix("earnest-")?, dependency))
        })
}

#[test]
fn crates_use_each_other_as_the_map_says() {
    let mut edges: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut optional: BTreeSet<(String, String)> = BTreeSet::new();
    for (name, folder) in crates() {
        let manifest: toml::Table = std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        for (other, dependency) in dependencies(&manifest) {
            if dependency.get("optional").and_then(toml::Value::as_bool) == Some(true) {
                optional.insert((name.clone(), other.to_owned()));
            }
            edges.entry(name.clone()).or_default().insert(other.to_owned());
        }
    }
    let page = std::fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let map = page.split("```mermaid").nth(1).unwrap().split("```").next().unwrap();
    let mut drawn: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    let mut dashed: BTreeSet<(String, String)> = BTreeSet::new();
    for line in map.lines() {
        let Some((from, to)) = line.split_once("-->").or_else(|| line.split_once("-.->")) else { continue };
        let id = |text: &str| text.trim().split('[').next().unwrap().trim().to_owned();
        let to = to.trim().strip_prefix('|').and_then(|rest| rest.split_once('|')).map_or(to, |(_, to)| to);
        if line.contains("-.->") {
            dashed.insert((id(from), id(to)));
        }
        drawn.entry(id(from)).or_default().insert(id(to));
    }
    // What another crate of the map leads to has no line of its own.
    let of_features: BTreeSet<_> =
        optional.into_iter().filter(|(from, to)| drawn.get(from).is_some_and(|others| others.contains(to))).collect();
    assert_eq!(of_features, dashed, "crates that a feature brings, and the dashed lines of docs/architecture.md");
    let (ours, drawn) = (closure(&edges), closure(&drawn));
    for (name, others) in &ours {
        assert_eq!(Some(others), drawn.get(name), "crates that {name} uses, and those that docs/architecture.md draws");
    }
    assert!(drawn.keys().all(|name| ours.contains_key(name)), "{drawn:?}");
}
