//! Profile of a device's work: time, bytes and operations by kernel and shape, and the host's share.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use super::device::{Address, Clock, Device, DeviceError};
use super::kernels::Unit;
use super::peaks::Peaks;
use super::work::Work;

/// Profile of a device's work.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct Profile {
    /// Clock of the kernels' times.
    pub clock: Clock,
    /// Steps of the engine that were profiled.
    pub steps: usize,
    /// Device seconds of an average step, from its first launch to its last.
    pub step_s: f64,
    /// Those in which a launch, product or copy ran.
    pub busy_s: f64,
    /// The host's share in an average step.
    pub host: HostTime,
    /// Launches by kernel and shape, those that took most time first.
    pub rows: Vec<ProfileRow>,
}

/// Time that the host takes to ask for a step, without what profiling adds.
#[derive(Debug, Clone, Copy, Default, PartialEq, serde::Serialize)]
pub struct HostTime {
    /// Launches, products and copies of a step.
    pub launches: f64,
    /// Seconds of a step inside the driver's and the library's functions.
    pub calls_s: f64,
    /// Seconds of a step between them.
    pub gaps_s: f64,
    /// The longest of those gaps.
    pub longest_gap_s: f64,
}

/// Launches of one kernel at one shape.
#[derive(Debug, Clone, PartialEq, serde::Serialize)]
pub struct ProfileRow {
    /// Name of the kernel, library or copy.
    pub kernel: String,
    /// Sizes of its operands.
    pub shape: String,
    /// Number of launches in all steps.
    pub launches: usize,
    /// Their device seconds.
    pub seconds: f64,
    /// Their share of the busy time.
    pub fraction: f64,
    /// Bytes that they move at least; none if the launch does not tell.
    pub bytes: Option<u64>,
    /// Their operations; none if the launch does not tell.
    pub operations: Option<u64>,
    /// The time that the measured peaks allow, divided by the time taken; above 1 where a cache helps. None for copies to and from the host.
    pub share_of_peak: Option<f64>,
}

/// Handle of the profile of a device that an engine owns.
#[derive(Clone)]
pub struct Profiler {
    pub(super) recorder: Rc<RefCell<Recorder>>,
    pub(super) clock: Clock,
}

impl Profiler {
    /// Begins a new profile.
    pub fn start(&self) {
        let mut recorder = self.recorder.borrow_mut();
        (recorder.rows, recorder.steps) = (HashMap::new(), HashMap::new());
        recorder.is_on = true;
    }

    /// Ends the profile and returns it: of all steps, or of those that computed so many tokens. The engine must have finished its steps.
    pub fn stop(&self, tokens: Option<usize>) -> Profile {
        let mut recorder = self.recorder.borrow_mut();
        recorder.is_on = false;
        recorder.profile(self.clock, tokens)
    }
}

/// A launch's row in a profile.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct Name {
    pub(super) kernel: String,
    pub(super) shape: String,
}

/// A launch between its notes of time.
pub(super) struct Launch {
    pub(super) name: Name,
    pub(super) work: Option<Work>,
    /// Inside the device's memory, so that the peaks are its measure.
    pub(super) on_device: bool,
    pub(super) from: usize,
    pub(super) to: usize,
}

#[derive(Default)]
struct Sum {
    launches: usize,
    seconds: f64,
    /// None as soon as one launch's work is unknown.
    work: Option<Work>,
    on_device: bool,
    /// Seconds that the peaks allow.
    least: f64,
}

#[derive(Default)]
struct StepSum {
    steps: usize,
    seconds: f64,
    busy: f64,
    launches: usize,
    calls: f64,
    gaps: f64,
    longest_gap: f64,
}

/// A step that was asked for.
#[derive(Default)]
pub(super) struct Step {
    pub(super) tokens: usize,
    pub(super) launches: Vec<Launch>,
    pub(super) calls: f64,
    pub(super) gaps: f64,
    pub(super) longest_gap: f64,
}

pub(super) struct Recorder {
    pub(super) is_on: bool,
    pub(super) peaks: Peaks,
    pub(super) units: Vec<Unit>,
    /// The unit and name of a kernel.
    pub(super) kernels: HashMap<u64, (usize, String)>,
    /// Tokens of the step that is being recorded; none if nothing is.
    pub(super) recording: Option<usize>,
    /// Tokens of a recorded step.
    pub(super) recorded: HashMap<u64, usize>,
    pub(super) free: Vec<usize>,
    pub(super) stamps: usize,
    /// Numbers of this step as the host sent them, and their address on the device.
    pub(super) sent: (Address, Vec<u8>),
    pub(super) open: Step,
    pub(super) marked: [Vec<Step>; 2],
    pub(super) last_call: Option<Instant>,
    rows: HashMap<(usize, Name), Sum>,
    steps: HashMap<usize, StepSum>,
    /// Start of the open step.
    pub(super) begun: Option<Instant>,
    /// Seconds of the host for the step before, with what profiling adds.
    pub(super) asked: f64,
}

impl Recorder {
    /// Creates a recorder that is off.
    pub(super) fn new(peaks: Peaks) -> Recorder {
        Recorder {
            is_on: false,
            peaks,
            units: vec![],
            kernels: HashMap::new(),
            recording: None,
            recorded: HashMap::new(),
            free: vec![],
            stamps: 0,
            sent: (0, vec![]),
            open: Step::default(),
            marked: [vec![], vec![]],
            last_call: None,
            rows: HashMap::new(),
            steps: HashMap::new(),
            begun: None,
            asked: 1e-3,
        }
    }

    /// True if launches are to be timed: those that are only recorded take no time.
    pub(super) fn times(&self) -> bool {
        self.is_on && self.recording.is_none()
    }

    /// Takes the number of a note of time that nobody uses.
    pub(super) fn stamp(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.stamps += 1;
            self.stamps - 1
        })
    }

    /// Integers that the host has sent to an address.
    pub(super) fn integers(&self, at: Address, count: usize) -> Option<Vec<i32>> {
        let offset = usize::try_from(at.checked_sub(self.sent.0)?).ok()?;
        let bytes = self.sent.1.get(offset..offset + 4 * count)?;
        Some(bytes.chunks_exact(4).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    /// Adds the steps of a mark that the device came by.
    pub(super) fn settle(&mut self, slot: usize, device: &dyn Device) -> Result<(), DeviceError> {
        for step in std::mem::take(&mut self.marked[slot]) {
            let (Some(first), Some(last)) = (step.launches.first(), step.launches.last()) else { continue };
            let sum = self.steps.entry(step.tokens).or_default();
            // Waiting for rows of logits cuts a step: only its first part has looked tokens up.
            sum.steps += usize::from(step.tokens > 0);
            sum.seconds += device.seconds(first.from, last.to)?;
            sum.launches += step.launches.len();
            (sum.calls, sum.gaps) = (sum.calls + step.calls, sum.gaps + step.gaps);
            sum.longest_gap = sum.longest_gap.max(step.longest_gap);
            for launch in step.launches {
                let seconds = device.seconds(launch.from, launch.to)?;
                sum.busy += seconds;
                self.free.extend([launch.from, launch.to]);
                let row = self.rows.entry((step.tokens, launch.name)).or_insert_with(|| Sum {
                    work: Some(Work::default()),
                    on_device: launch.on_device,
                    ..Sum::default()
                });
                row.launches += 1;
                row.seconds += seconds;
                row.least += launch.work.map_or(0.0, |work| least(&self.peaks, work));
                row.work = row
                    .work
                    .zip(launch.work)
                    .map(|(a, b)| Work { bytes: a.bytes + b.bytes, operations: a.operations + b.operations });
            }
        }
        Ok(())
    }

    fn profile(&self, clock: Clock, tokens: Option<usize>) -> Profile {
        let wanted = |of: usize| tokens.is_none_or(|tokens| tokens == of);
        let mut all = StepSum::default();
        for (_, step) in self.steps.iter().filter(|(of, _)| wanted(**of)) {
            all.steps += step.steps;
            all.launches += step.launches;
            (all.seconds, all.busy) = (all.seconds + step.seconds, all.busy + step.busy);
            (all.calls, all.gaps) = (all.calls + step.calls, all.gaps + step.gaps);
            all.longest_gap = all.longest_gap.max(step.longest_gap);
        }
        let mut sums: HashMap<&Name, Sum> = HashMap::new();
        for ((_, name), row) in self.rows.iter().filter(|((of, _), _)| wanted(*of)) {
            let sum = sums.entry(name).or_insert_with(|| Sum {
                work: Some(Work::default()),
                on_device: row.on_device,
                ..Sum::default()
            });
            sum.launches += row.launches;
            (sum.seconds, sum.least) = (sum.seconds + row.seconds, sum.least + row.least);
            sum.work = sum
                .work
                .zip(row.work)
                .map(|(a, b)| Work { bytes: a.bytes + b.bytes, operations: a.operations + b.operations });
        }
        let mut rows: Vec<ProfileRow> = sums
            .into_iter()
            .map(|(name, sum)| ProfileRow {
                kernel: name.kernel.clone(),
                shape: name.shape.clone(),
                launches: sum.launches,
                seconds: sum.seconds,
                fraction: ratio(sum.seconds, all.busy),
                bytes: sum.work.map(|work| work.bytes),
                operations: sum.work.map(|work| work.operations),
                share_of_peak: sum.work.filter(|_| sum.on_device).map(|_| ratio(sum.least, sum.seconds)),
            })
            .collect();
        rows.sort_by(|a, b| {
            b.seconds.total_cmp(&a.seconds).then_with(|| (&a.kernel, &a.shape).cmp(&(&b.kernel, &b.shape)))
        });
        let of_step = |x: f64| ratio(x, all.steps as f64);
        let host = HostTime {
            launches: of_step(all.launches as f64),
            calls_s: of_step(all.calls),
            gaps_s: of_step(all.gaps),
            longest_gap_s: all.longest_gap,
        };
        Profile { clock, steps: all.steps, step_s: of_step(all.seconds), busy_s: of_step(all.busy), host, rows }
    }
}

/// Seconds that the peaks allow.
fn least(peaks: &Peaks, work: Work) -> f64 {
    (work.bytes as f64 / peaks.bytes_per_s).max(work.operations as f64 / peaks.operations_per_s)
}

/// A quotient; 0 of nothing.
fn ratio(a: f64, b: f64) -> f64 {
    if b > 0.0 { a / b } else { 0.0 }
}
