//! Recorded steps: one that only decodes is launched as a whole once one of its shape has been.
//!
//! The first step of a shape is launched as any other, so that libraries have loaded what they need; the second is recorded and then, like
//! all further ones, launched from the record. A record names addresses, so lists of a step lie where those of the recorded one lay:
//! their lengths are part of the shape, and those that vary a little are padded (`AttentionPlan::pad`).

use std::collections::{HashMap, VecDeque};

use super::device::{Device, DeviceError, Recording};

/// Most shapes that are known at once; one more, and the oldest is forgotten.
const MOST: usize = 64;

/// Everything that a step's launches depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    pub(crate) slot: usize,
    pub(crate) tokens: usize,
    /// Rows of logits.
    pub(crate) rows: usize,
    /// Lengths of the lists of attention.
    pub(crate) lists: [usize; 4],
}

/// Shapes that were launched, with their records.
#[derive(Default)]
pub(crate) struct Graphs {
    known: HashMap<Shape, Option<Recording>>,
    /// The known shapes, the oldest first.
    order: VecDeque<Shape>,
    replayed: usize,
}

impl Graphs {
    /// Launches a step by `launch`, or from the record of its shape.
    ///
    /// # Safety
    /// As for what is launched; the record of a shape may stand for every step of that shape.
    pub(crate) unsafe fn run(
        &mut self,
        device: &dyn Device,
        shape: Shape,
        launch: &mut dyn FnMut() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let recording = match self.known.get(&shape) {
            None => {
                if self.order.len() == MOST
                    && let Some(oldest) = self.order.pop_front()
                    && let Some(recording) = self.known.remove(&oldest).flatten()
                {
                    device.forget(recording)?;
                }
                self.known.insert(shape, None);
                self.order.push_back(shape);
                return launch();
            }
            Some(&Some(recording)) => recording,
            Some(None) => {
                device.record()?;
                let launched = launch();
                // Ended in any case: a device that records does nothing else.
                let recording = device.recorded();
                launched?;
                let recording = recording?;
                self.known.insert(shape, Some(recording));
                recording
            }
        };
        self.replayed += 1;
        // SAFETY: by the caller.
        unsafe { device.replay(recording) }
    }

    /// Steps that were launched from a record.
    #[cfg(test)]
    pub(crate) fn replayed(&self) -> usize {
        self.replayed
    }
}
