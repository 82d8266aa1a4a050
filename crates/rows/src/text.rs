//! A file as a stream of text: hashed as it is on disk, decompressed, without its byte order mark.
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, ErrorKind, Read};
use std::rc::Rc;

use earnest_digest::hex;
use flate2::bufread::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::refusal::{Refusal, most_bytes, most_in_words};

/// Bytes at the beginning that show what a file is.
const HEAD: u64 = 4096;

/// A reader that computes the SHA-256 of what passes through it.
pub(super) struct Hashing {
    file: File,
    digest: Sha256,
    /// Bytes that were read.
    pub count: Rc<Cell<u64>>,
}

impl Hashing {
    pub fn new(file: File) -> Self {
        Hashing { file, digest: Sha256::new(), count: Rc::default() }
    }

    /// Reads what is left and returns the SHA-256 of the file, with the file.
    pub fn finish(mut self) -> io::Result<(String, File)> {
        io::copy(&mut self, &mut io::sink())?;
        Ok((hex(&self.digest.finalize()), self.file))
    }
}

impl Read for Hashing {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.file.read(buffer)?;
        self.digest.update(&buffer[..read]);
        self.count.set(self.count.get() + read as u64);
        Ok(read)
    }
}

/// Returns the content of a file, decompressed if it is to be gzip.
pub(super) fn content<'a>(file: &'a mut Hashing, gzip: bool) -> Result<Box<dyn Read + 'a>, Refusal> {
    if !gzip {
        return Ok(Box::new(file));
    }
    let count = Rc::clone(&file.count);
    let mut packed = BufReader::with_capacity(1 << 16, file);
    match packed.fill_buf().map_err(unreadable)?.first() {
        None => Err(Refusal::new("the file is empty")),
        Some(0x1f) => Ok(Box::new(Unpacked { content: MultiGzDecoder::new(packed), packed: count, count: 0 })),
        Some(_) => Err(Refusal::new("the file is not compressed with gzip").help("give it a name without .gz")),
    }
}

/// What was compressed, up to a multiple of what was read for it.
struct Unpacked<R> {
    content: R,
    packed: Rc<Cell<u64>>,
    /// Bytes that were unpacked.
    count: u64,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.content.read(buffer)?;
        self.count += read as u64;
        match self.count <= most_bytes(self.packed.get()) {
            true => Ok(read),
            false => Err(io::Error::other(format!(
                "it is unpacked to more than {}, which is the limit",
                most_in_words(self.packed.get())
            ))),
        }
    }
}

/// Text of a file.
pub(super) struct Text<'a> {
    pub reader: Box<dyn Read + 'a>,
    /// Number of bytes before it: those of a byte order mark.
    pub mark: u64,
    /// Its first byte that is not blank.
    pub first: Option<u8>,
}

/// Returns the text of a file, or refuses what is not UTF-8 text.
pub(super) fn text<'a>(mut content: Box<dyn Read + 'a>) -> Result<Text<'a>, Refusal> {
    let mut head = Vec::new();
    content.by_ref().take(HEAD).read_to_end(&mut head).map_err(unreadable)?;
    let encoding = |name: &str| {
        Refusal::new(format!("the text is {name}, not UTF-8"))
            .help(format!("`iconv -f {name} -t UTF-8 OLD > NEW` converts it"))
    };
    let mark = match head.as_slice() {
        [] => return Err(Refusal::new("the file is empty")),
        // Before UTF-16, whose mark is the beginning of this one.
        [0xff, 0xfe, 0, 0, ..] => return Err(encoding("UTF-32LE")),
        [0xff, 0xfe, ..] => return Err(encoding("UTF-16LE")),
        [0xfe, 0xff, ..] => return Err(encoding("UTF-16BE")),
        [0xef, 0xbb, 0xbf, ..] => 3,
        [0x1f, 0x8b, ..] => {
            return Err(Refusal::new("the file is compressed with gzip").help("give it a name that ends in .gz"));
        }
        [b'P', b'A', b'R', b'1', ..] => {
            return Err(Refusal::new("the file is Parquet").help("give it a name that ends in .parquet"));
        }
        [b'P', b'K', 3, 4, ..] => return Err(Refusal::new("the file is a zip archive").help("`unzip` unpacks it")),
        [0x28, 0xb5, 0x2f, 0xfd, ..] => {
            return Err(Refusal::new("the file is compressed with zstd").help("`zstd -d` decompresses it"));
        }
        [first, 0, ..] if *first != 0 => return Err(encoding("UTF-16LE")),
        [0, second, ..] if *second != 0 => return Err(encoding("UTF-16BE")),
        // A text with a zero byte or two is one with bad rows.
        head if head.iter().take(64).filter(|byte| **byte == 0).count() > 3 => {
            let reason = "there are zero bytes at its beginning: it is not a text";
            return Err(Refusal::new(reason).help("questions are JSONL, JSON, CSV, TSV or Parquet"));
        }
        _ => 0,
    };
    let first = head.iter().skip(mark).find(|byte| !byte.is_ascii_whitespace()).copied();
    let mark = mark as u64;
    let mut head = Cursor::new(head);
    head.set_position(mark);
    Ok(Text { reader: Box::new(head.chain(content)), mark, first })
}

/// Reason for a file that cannot be read to its end.
pub(super) fn unreadable(error: io::Error) -> Refusal {
    match error.kind() {
        ErrorKind::UnexpectedEof => Refusal::new("the gzip data end too early: the file is not complete")
            .help("copy or download it again; `gzip -t` checks it"),
        // What the decompressor says, e.g. "invalid gzip header", "corrupt deflate stream".
        ErrorKind::InvalidInput | ErrorKind::InvalidData => {
            Refusal::new(format!("the gzip data are broken: {error}")).help("`gzip -t` checks the file")
        }
        _ => Refusal::new(format!("it cannot be read: {error}")),
    }
}
