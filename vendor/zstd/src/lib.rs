//! The part of zstd's interface that parquet uses, without its C library; see ../README.md.

/// Compression of whole buffers.
pub mod bulk {
    use std::error::Error;
    use std::io::{self, Cursor, Read};

    use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
    use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};
    use ruzstd::encoding::{CompressionLevel, compress_to_vec};

    /// Writer of frames.
    pub struct Compressor<'a> {
        level: std::marker::PhantomData<&'a i32>,
    }

    impl Compressor<'static> {
        /// A compressor; the one level that the encoder has stands for every level.
        pub fn new(_level: i32) -> io::Result<Self> {
            Ok(Compressor { level: std::marker::PhantomData })
        }
    }

    impl Compressor<'_> {
        /// Writes a frame at the position of the buffer and returns its length.
        pub fn compress_to_buffer(&mut self, source: &[u8], to: &mut Cursor<&mut Vec<u8>>) -> io::Result<usize> {
            let frame = compress_to_vec(source, CompressionLevel::Fastest);
            let start = position(to);
            let out = &mut **to.get_mut();
            out.truncate(start);
            out.extend_from_slice(&frame);
            Ok(frame.len())
        }
    }

    /// Reader of frames.
    pub struct Decompressor<'a> {
        decoder: FrameDecoder,
        lifetime: std::marker::PhantomData<&'a ()>,
    }

    impl Decompressor<'static> {
        /// A decompressor.
        pub fn new() -> io::Result<Self> {
            Ok(Decompressor { decoder: FrameDecoder::new(), lifetime: std::marker::PhantomData })
        }
    }

    impl Decompressor<'_> {
        /// Reads frames to the position of the buffer, no more than it has room for, and returns their length.
        pub fn decompress_to_buffer(&mut self, source: &[u8], to: &mut Cursor<&mut Vec<u8>>) -> io::Result<usize> {
            let start = position(to);
            let out = &mut **to.get_mut();
            out.truncate(start);
            let room = out.capacity() - start;
            // A frame reserves the window that it asks for: no more than it can fill, and 8 MiB for encoders that do not know the length.
            self.decoder.set_max_window_size((room as u64).max(8 << 20));
            let read = self.frames(source, out, start, room);
            // Each column of a file has a decompressor: what they reserve between two pages would add up.
            self.decoder = FrameDecoder::new();
            read.map_err(|error| {
                out.truncate(start);
                let said = format!("not the Zstandard frames that were expected: {error}");
                io::Error::new(io::ErrorKind::InvalidData, said)
            })?;
            Ok(out.len() - start)
        }

        /// The room is not filled before there is something for it: its size is only what a file says.
        fn frames(&mut self, mut source: &[u8], out: &mut Vec<u8>, start: usize, room: usize) -> io::Result<()> {
            while !source.is_empty() {
                match self.decoder.init(&mut source) {
                    Ok(()) => {}
                    Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame { length, .. })) => {
                        source = source.get(length as usize..).ok_or(io::ErrorKind::UnexpectedEof)?;
                        continue;
                    }
                    Err(error) => return Err(in_words(&error)),
                }
                loop {
                    let some = BlockDecodingStrategy::UptoBytes(1 << 20);
                    self.decoder.decode_blocks(&mut source, some).map_err(|error| in_words(&error))?;
                    let left = room - (out.len() - start);
                    self.decoder.by_ref().take(left as u64 + 1).read_to_end(out)?;
                    if out.len() - start > room {
                        return Err(io::Error::other(format!("they hold more than {room} bytes")));
                    }
                    if self.decoder.is_finished() && self.decoder.can_collect() == 0 {
                        break;
                    }
                }
            }
            Ok(())
        }
    }

    /// The cause of a decoder's error in words: the errors around it have the names of types.
    fn in_words(error: &FrameDecoderError) -> io::Error {
        use FrameDecoderError as Frame;
        if let Frame::ReadFrameHeaderError(ReadFrameHeaderError::BadMagicNumber(_)) = error {
            return io::Error::other("they do not begin as such frames do");
        }
        let mut cause: &dyn Error = error;
        while let Some(next) = cause.source() {
            cause = next;
        }
        io::Error::other(cause.to_string().lines().next().unwrap_or("they are damaged").trim_end().to_owned())
    }

    fn position(buffer: &Cursor<&mut Vec<u8>>) -> usize {
        usize::try_from(buffer.position()).unwrap_or(usize::MAX).min(buffer.get_ref().len())
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn a_window_is_no_larger_than_what_is_read() {
            // A frame without content: magic number, no length, and a window of 2^(10 + exponent) bytes.
            let frame = |exponent: u8| [0x28, 0xb5, 0x2f, 0xfd, 0, exponent << 3, 1, 0, 0];
            let mut out = Vec::with_capacity(100);
            let mut read = |frame: &[u8]| Decompressor::new().unwrap().decompress_to_buffer(frame, &mut Cursor::new(&mut out));
            assert_eq!(read(&frame(13)).unwrap(), 0);
            assert!(read(&frame(14)).unwrap_err().to_string().contains("window"));
        }

        #[test]
        fn a_frame_is_read_into_the_room_that_there_is() {
            let text = b"twelve bytes".repeat(1000);
            let mut frame = b"head".to_vec();
            let mut to = Cursor::new(&mut frame);
            to.set_position(4);
            let length = Compressor::new(3).unwrap().compress_to_buffer(&text, &mut to).unwrap();
            assert_eq!((frame.len(), &frame[..4]), (4 + length, &b"head"[..]));
            let read = |room: usize| {
                let mut out = Vec::with_capacity(room);
                let length = Decompressor::new().unwrap().decompress_to_buffer(&frame[4..], &mut Cursor::new(&mut out));
                length.map(|length| (length, out == text))
            };
            assert_eq!(read(text.len()).unwrap(), (text.len(), true));
            assert!(read(text.len() - 1).unwrap_err().to_string().ends_with("more than 11999 bytes"));
            assert_eq!(read(1 << 30).unwrap(), (text.len(), true));
            let mut out = Vec::with_capacity(100);
            let other = Decompressor::new().unwrap().decompress_to_buffer(b"no frames", &mut Cursor::new(&mut out));
            let said = other.unwrap_err().to_string();
            assert_eq!(said, "not the Zstandard frames that were expected: they do not begin as such frames do");
        }
    }
}

/// Sizes of frames.
pub mod zstd_safe {
    /// A frame whose header cannot be read.
    #[derive(Debug)]
    pub struct ContentSizeError;

    /// Size of the content that a frame's header names; none here, where buffers have the size that parquet knows.
    pub fn get_frame_content_size(_frame: &[u8]) -> Result<Option<u64>, ContentSizeError> {
        Ok(None)
    }

    /// Largest length of a frame: its content in raw blocks of at most 128 KiB with 3 bytes before each, and 18 bytes around them.
    pub fn compress_bound(size: usize) -> usize {
        size.saturating_add(3 * (size / (128 << 10) + 1)).saturating_add(18)
    }
}
