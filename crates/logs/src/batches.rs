//! Records that are read one after another, parsed on all cores, and handed on in order.
use std::mem::take;

use rayon::prelude::*;

use crate::LogError;

/// Records of a batch at most, and their bytes, so that memory is bounded: what a byte of JSON becomes may take a hundred.
const RECORDS: usize = 256;
const BYTES: u64 = 4 << 20;

/// Takes records with their sizes from `next` until there is none, and hands on what `parse` makes of them.
pub(super) fn in_order<R: Send, P: Send>(
    mut next: impl FnMut() -> Result<Option<(R, u64)>, LogError>,
    parse: impl Fn(R) -> P + Sync,
    mut each: impl FnMut(P) -> Result<(), LogError>,
) -> Result<(), LogError> {
    let mut batch = Vec::new();
    let mut more = true;
    while more {
        let mut bytes = 0;
        while batch.len() < RECORDS && bytes < BYTES {
            match next()? {
                Some((record, size)) => {
                    bytes += size;
                    batch.push(record);
                }
                // Not asked again: what it reads may go on with something else.
                None => {
                    more = false;
                    break;
                }
            }
        }
        // In pieces, because a short record is parsed in less time than it takes to hand it to another thread.
        let parsed: Vec<P> = take(&mut batch).into_par_iter().with_min_len(8).map(&parse).collect();
        parsed.into_iter().try_for_each(&mut each)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_is_kept_and_every_record_is_parsed() {
        let mut numbers = 0..1000u64;
        let mut found = Vec::new();
        in_order(
            || Ok(numbers.next().map(|number| (number, BYTES / 3))),
            |number| number * 2,
            |double| {
                found.push(double);
                Ok(())
            },
        )
        .unwrap();
        assert_eq!(found, (0..1000).map(|number| number * 2).collect::<Vec<_>>());
    }
}
