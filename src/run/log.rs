//! `samples.jsonl`: one [`Sample`] a line, written in batches, readable after any interruption.
use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{RunError, SAMPLE_FORMAT, Sample, SampleKey};

/// Rows are written at the latest after so many ...
const BATCH_ROWS: usize = 64;
/// ... or so long after the previous write.
const BATCH_TIME: Duration = Duration::from_secs(1);

/// A file that can be cut, which undoes a write that succeeded in part.
pub trait Cut: Write {
    /// Cuts or extends to so many bytes.
    fn cut(&mut self, length: u64) -> io::Result<()>;
    /// Brings everything to the disk.
    fn sync(&mut self) -> io::Result<()>;
}

impl Cut for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }
    fn sync(&mut self) -> io::Result<()> {
        self.sync_data()
    }
}

/// Appends rows.
#[derive(Debug)]
pub struct SampleLog<F: Cut = File> {
    path: PathBuf,
    file: F,
    /// Bytes of whole rows in the file.
    written: u64,
    buffer: Vec<u8>,
    rows: usize,
    last_write: Instant,
}

/// How reading a log ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogEnd {
    /// Rows read.
    pub rows: usize,
    /// Bytes of those rows.
    pub length: u64,
    /// An unfinished last line follows: the writer was killed in the middle of it.
    pub torn: bool,
}

impl SampleLog {
    /// Opens a log for appending after `end`; a torn last line is cut off, because its sample will be asked again.
    pub fn append(path: &Path, end: LogEnd) -> Result<Self, RunError> {
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(path)
            .map_err(|source| RunError::io("open", path, source))?;
        if end.torn {
            file.cut(end.length).map_err(|source| RunError::io("repair", path, source))?;
        }
        Ok(SampleLog::over(file, path, end.length))
    }

    /// Reads all rows of one run in file order. A missing file has none.
    pub fn read(path: &Path, run: &str, mut row: impl FnMut(Sample)) -> Result<LogEnd, RunError> {
        Self::read_lines(path, run, |sample, _, _| row(sample))
    }

    /// [`SampleLog::read`] with each row's offset and length in bytes (line end included).
    fn read_lines(path: &Path, run: &str, mut row: impl FnMut(Sample, u64, u64)) -> Result<LogEnd, RunError> {
        let mut end = LogEnd { rows: 0, length: 0, torn: false };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(end),
            Err(source) => return Err(RunError::io("open", path, source)),
        };
        let mut lines = BufReader::with_capacity(1 << 16, file);
        let mut line = Vec::new();
        loop {
            line.clear();
            let bytes = lines.read_until(b'\n', &mut line).map_err(|source| RunError::io("read", path, source))? as u64;
            if bytes == 0 {
                return Ok(end);
            }
            let complete = line.last() == Some(&b'\n');
            let parsed = if complete { parse(&line, path, run) } else { Err(Unreadable::Torn) };
            match parsed {
                Ok(sample) => row(sample, end.length, bytes),
                Err(Unreadable::Refused(error)) => return Err(error),
                Err(unreadable) => {
                    // Only the last line can be unfinished; what lies before was complete once and is damage now.
                    let more = lines.fill_buf().map_err(|source| RunError::io("read", path, source))?;
                    if more.is_empty() {
                        end.torn = true;
                        return Ok(end);
                    }
                    let reason = unreadable.to_string();
                    return Err(RunError::Damaged { path: path.to_owned(), line: end.rows + 1, reason });
                }
            }
            end.rows += 1;
            end.length += bytes;
        }
    }

    /// Puts the rows into the plan's order, one a sample (the last one written), so that the file does not tell how the
    /// engine scheduled or how often the run was interrupted. The file is replaced in one step.
    pub fn arrange(path: &Path, run: &str, place: &HashMap<SampleKey, usize>) -> Result<(), RunError> {
        let mut spans: Vec<Option<(u64, u64)>> = vec![None; place.len()];
        let mut stranger = None;
        let mut ordered = true;
        let mut previous = None;
        let end = Self::read_lines(path, run, |sample, offset, length| match place.get(&sample.key()) {
            Some(&index) if index < spans.len() => {
                ordered &= previous < Some(index);
                previous = Some(index);
                spans[index] = Some((offset, length));
            }
            _ => stranger = stranger.take().or(Some(sample.key())),
        })?;
        if let Some((item, sample)) = stranger {
            let reason = format!("sample {sample} of {item} is not in the run's plan");
            return Err(RunError::Damaged { path: path.to_owned(), line: end.rows, reason });
        }
        if ordered && !end.torn {
            return Ok(());
        }
        let beside = path.with_extension("jsonl.tmp");
        let copied = copy_spans(path, &beside, spans.into_iter().flatten());
        let replaced = copied.and_then(|()| std::fs::rename(&beside, path));
        replaced.map_err(|source| {
            // The rows are all in the unordered file; an unfinished copy must not stay on a full disk.
            std::fs::remove_file(&beside).ok();
            RunError::io("write", beside.as_path(), source)
        })
    }
}

impl<F: Cut> SampleLog<F> {
    /// Appends to a file that holds `written` bytes of whole rows.
    pub fn over(file: F, path: &Path, written: u64) -> Self {
        SampleLog { path: path.to_owned(), file, written, buffer: Vec::new(), rows: 0, last_write: Instant::now() }
    }

    /// Takes a row; it is written with its batch.
    pub fn push(&mut self, sample: &Sample) -> Result<(), RunError> {
        serde_json::to_writer(&mut self.buffer, sample)
            .map_err(|error| RunError::io("write", self.path.as_path(), error.into()))?;
        self.buffer.push(b'\n');
        self.rows += 1;
        if self.rows >= BATCH_ROWS { self.write() } else { self.write_if_due() }
    }

    /// Writes waiting rows if the last write is long ago.
    pub fn write_if_due(&mut self) -> Result<(), RunError> {
        if self.rows > 0 && self.last_write.elapsed() >= BATCH_TIME { self.write() } else { Ok(()) }
    }

    /// Writes waiting rows. If not all fits, whole rows stay and the rest is cut off.
    pub fn write(&mut self) -> Result<(), RunError> {
        let mut done = 0;
        let outcome = loop {
            match self.file.write(&self.buffer[done..]) {
                Ok(0) if done < self.buffer.len() => break Err(io::ErrorKind::WriteZero.into()),
                Ok(bytes) => done += bytes,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
            if done == self.buffer.len() {
                break Ok(());
            }
        };
        let whole = match outcome {
            Ok(()) => done,
            Err(_) => self.buffer[..done].iter().rposition(|&byte| byte == b'\n').map_or(0, |last| last + 1),
        };
        self.written += whole as u64;
        self.buffer.drain(..whole);
        self.rows = self.buffer.iter().filter(|&&byte| byte == b'\n').count();
        self.last_write = Instant::now();
        outcome.map_err(|source| {
            if whole < done {
                // If even this fails, the reader recognises the torn line.
                self.file.cut(self.written).ok();
            }
            RunError::io("write", self.path.as_path(), source)
        })
    }

    /// Writes waiting rows and brings them to the disk.
    pub fn finish(&mut self) -> Result<(), RunError> {
        self.write()?;
        self.file.sync().map_err(|source| RunError::io("write", self.path.as_path(), source))
    }
}

/// Why a line is not a row.
enum Unreadable {
    Torn,
    NotASample(String),
    Refused(RunError),
}

impl std::fmt::Display for Unreadable {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Unreadable::Torn => formatter.write_str("the line has no end"),
            Unreadable::NotASample(reason) => formatter.write_str(reason),
            Unreadable::Refused(error) => error.fmt(formatter),
        }
    }
}

fn parse(line: &[u8], path: &Path, run: &str) -> Result<Sample, Unreadable> {
    #[derive(serde::Deserialize)]
    struct Head {
        format: u32,
    }
    let not = |error: serde_json::Error| Unreadable::NotASample(error.to_string());
    let head: Head = serde_json::from_slice(line).map_err(not)?;
    if head.format > SAMPLE_FORMAT {
        let refusal = RunError::LaterFormat { path: path.to_owned(), found: head.format, known: SAMPLE_FORMAT };
        return Err(Unreadable::Refused(refusal));
    }
    let sample: Sample = serde_json::from_slice(line).map_err(not)?;
    if sample.run != run {
        return Err(Unreadable::NotASample(format!("the row belongs to the run {}", sample.run)));
    }
    Ok(sample)
}

fn copy_spans(from: &Path, to: &Path, spans: impl Iterator<Item = (u64, u64)>) -> io::Result<()> {
    let mut source = BufReader::with_capacity(1 << 16, File::open(from)?);
    let mut target = BufWriter::with_capacity(1 << 16, File::create(to)?);
    let mut at = 0u64;
    for (offset, length) in spans {
        if offset != at {
            source.seek(SeekFrom::Start(offset))?;
        }
        io::copy(&mut source.by_ref().take(length), &mut target)?;
        at = offset + length;
    }
    target.into_inner().map_err(io::IntoInnerError::into_error)?.sync_data()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn sample(item: &str, number: u32) -> Sample {
        Sample {
            format: SAMPLE_FORMAT,
            run: "r".into(),
            suite: "s".into(),
            item: item.into(),
            sample: number,
            task: "t".into(),
            cluster: "c".into(),
            covariates: BTreeMap::new(),
            gold: "4\n\"".into(),
            prompt_sha256: String::new(),
            prompt_tokens: 3,
            budget: 5,
            max_tokens: 5,
            completion: None,
            verdict: None,
            failure: None,
        }
    }

    /// A disk of so many bytes.
    struct SmallDisk {
        bytes: Vec<u8>,
        size: usize,
    }

    impl Write for SmallDisk {
        fn write(&mut self, data: &[u8]) -> io::Result<usize> {
            let room = self.size - self.bytes.len();
            if room == 0 && !data.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            let taken = room.min(data.len());
            self.bytes.extend(&data[..taken]);
            Ok(taken)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    impl Cut for SmallDisk {
        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.bytes.truncate(length as usize);
            Ok(())
        }
        fn sync(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn keys(path: &Path) -> (Vec<SampleKey>, LogEnd) {
        let mut keys = Vec::new();
        let end = SampleLog::read(path, "r", |sample| keys.push(sample.key())).unwrap();
        (keys, end)
    }

    #[test]
    fn a_full_disk_keeps_whole_rows_only_at_every_size() {
        let row = serde_json::to_vec(&sample("a", 0)).unwrap().len() + 1;
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        for size in 0..3 * row {
            let mut log = SampleLog::over(SmallDisk { bytes: Vec::new(), size }, &path, 0);
            for number in 0..3 {
                log.push(&sample("a", number)).unwrap();
            }
            let error = log.finish().unwrap_err();
            assert!(matches!(&error, RunError::DiskFull { path: named, .. } if *named == path), "{error}");
            std::fs::write(&path, &log.file.bytes).unwrap();
            let (read, end) = keys(&path);
            assert_eq!(read.len(), size / row);
            assert!(!end.torn);
            // With space freed, the same log writes the rest and nothing twice.
            log.file.size = usize::MAX;
            log.finish().unwrap();
            std::fs::write(&path, &log.file.bytes).unwrap();
            assert_eq!(keys(&path).0, (0..3).map(|number| ("a".to_owned(), number)).collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_device_without_room_is_named() {
        let path = Path::new("/dev/full");
        let Ok(file) = OpenOptions::new().write(true).open(path) else {
            return; // not on this system
        };
        let mut log = SampleLog::over(file, path, 0);
        log.push(&sample("a", 0)).unwrap();
        let error = log.write().unwrap_err();
        assert!(matches!(error, RunError::DiskFull { .. }));
        assert!(error.to_string().contains("/dev/full"), "{error}");
    }

    #[test]
    fn a_torn_last_line_is_cut_at_every_byte() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let mut whole = SampleLog::append(&path, LogEnd { rows: 0, length: 0, torn: false }).unwrap();
        whole.push(&sample("a", 0)).unwrap();
        whole.push(&sample("b", 0)).unwrap();
        whole.finish().unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let first = bytes.iter().position(|&byte| byte == b'\n').unwrap() + 1;
        for cut in first..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let (read, end) = keys(&path);
            assert_eq!((read.len(), end.torn), (1, cut > first), "cut at {cut}");
            let mut log = SampleLog::append(&path, end).unwrap();
            log.push(&sample("b", 0)).unwrap();
            log.finish().unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), bytes);
        }
    }

    #[test]
    fn damage_in_the_middle_is_named_not_skipped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let row = serde_json::to_string(&sample("a", 0)).unwrap();
        std::fs::write(&path, format!("{row}\n{}\n{row}\n", &row[..20])).unwrap();
        let error = SampleLog::read(&path, "r", |_| ()).unwrap_err();
        assert!(matches!(error, RunError::Damaged { line: 2, .. }), "{error}");
        let later = row.replace("\"format\":1", "\"format\":99,\"new\":true");
        std::fs::write(&path, format!("{later}\n")).unwrap();
        let error = SampleLog::read(&path, "r", |_| ()).unwrap_err();
        assert!(matches!(error, RunError::LaterFormat { found: 99, .. }), "{error}");
        std::fs::write(&path, format!("{row}\n{row}\n")).unwrap();
        let error = SampleLog::read(&path, "other", |_| ()).unwrap_err();
        assert!(matches!(error, RunError::Damaged { line: 1, .. }), "{error}");
    }

    #[test]
    fn rows_are_arranged_by_plan_and_the_last_one_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("samples.jsonl");
        let mut log = SampleLog::append(&path, LogEnd { rows: 0, length: 0, torn: false }).unwrap();
        for (item, tokens) in [("c", 1), ("a", 1), ("b", 1), ("a", 2)] {
            log.push(&Sample { prompt_tokens: tokens, ..sample(item, 0) }).unwrap();
        }
        log.finish().unwrap();
        let place = ["a", "b", "c"].iter().enumerate().map(|(at, item)| (((*item).to_owned(), 0), at)).collect();
        SampleLog::arrange(&path, "r", &place).unwrap();
        let mut read = Vec::new();
        SampleLog::read(&path, "r", |sample| read.push((sample.item, sample.prompt_tokens))).unwrap();
        assert_eq!(read, [("a".into(), 2), ("b".into(), 1), ("c".into(), 1)]);
        let before = std::fs::read(&path).unwrap();
        SampleLog::arrange(&path, "r", &place).unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), before);
        assert!(!path.with_extension("jsonl.tmp").exists());
        let fewer = HashMap::from([(("a".to_owned(), 0), 0)]);
        assert!(matches!(SampleLog::arrange(&path, "r", &fewer), Err(RunError::Damaged { .. })));
    }
}
