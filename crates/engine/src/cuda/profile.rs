//! Device time of every launch, library product and copy, summed by kernel and shape.
//!
//! [`Profiled`] is a device around another one, so nothing else knows of it. A device's clock notes the time before and after each launch. Before a step's
//! first launch it copies idly for as long as the host needs to ask for a step: a device that waits for the host would count the waiting as the
//! kernel's time. What the host itself takes is measured by its own clock.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use super::device::{Address, Argument, Clock, DenseProduct, Device, DeviceError, DeviceInfo, Kernel, Mark};
use super::kernels::Unit;
use super::peaks::Peaks;
use super::work::{self, Work};

/// Bytes of the idle copies.
const IDLE: u64 = 32 << 20;

/// Most idle copies before a step.
const MOST_IDLE: usize = 2000;

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
    recorder: Rc<RefCell<Recorder>>,
    clock: Clock,
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
struct Name {
    kernel: String,
    shape: String,
}

/// A launch between its notes of time.
struct Launch {
    name: Name,
    work: Option<Work>,
    /// Inside the device's memory, so that the peaks are its measure.
    on_device: bool,
    from: usize,
    to: usize,
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
struct Step {
    tokens: usize,
    launches: Vec<Launch>,
    calls: f64,
    gaps: f64,
    longest_gap: f64,
}

struct Recorder {
    is_on: bool,
    peaks: Peaks,
    units: Vec<Unit>,
    /// The unit and name of a kernel.
    kernels: HashMap<u64, (usize, String)>,
    free: Vec<usize>,
    stamps: usize,
    /// Numbers of this step as the host sent them, and their address on the device.
    sent: (Address, Vec<u8>),
    open: Step,
    marked: [Vec<Step>; 2],
    last_call: Option<Instant>,
    rows: HashMap<(usize, Name), Sum>,
    steps: HashMap<usize, StepSum>,
    /// Start of the open step.
    begun: Option<Instant>,
    /// Seconds of the host for the step before, with what profiling adds.
    asked: f64,
}

impl Recorder {
    fn stamp(&mut self) -> usize {
        self.free.pop().unwrap_or_else(|| {
            self.stamps += 1;
            self.stamps - 1
        })
    }

    /// Integers that the host has sent to an address.
    fn integers(&self, at: Address, count: usize) -> Option<Vec<i32>> {
        let offset = usize::try_from(at.checked_sub(self.sent.0)?).ok()?;
        let bytes = self.sent.1.get(offset..offset + 4 * count)?;
        Some(bytes.chunks_exact(4).map(|b| i32::from_ne_bytes([b[0], b[1], b[2], b[3]])).collect())
    }

    /// Adds the steps of a mark that the device came by.
    fn settle(&mut self, slot: usize, device: &dyn Device) -> Result<(), DeviceError> {
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

/// A device whose launches, products and copies are timed while its [`Profiler`] is on.
pub(crate) struct Profiled {
    device: Box<dyn Device>,
    recorder: Rc<RefCell<Recorder>>,
    /// Memory for idle copies, and the seconds of one; none where kernels run as they are asked for.
    idle: Option<([Address; 2], f64)>,
}

impl Profiled {
    /// Wraps a device whose peaks were measured.
    pub(crate) fn new(device: Box<dyn Device>, peaks: &Peaks) -> Result<(Profiled, Profiler), DeviceError> {
        device.enter()?;
        let clock = device.clock();
        let idle = match clock {
            Clock::Host => None,
            Clock::DeviceEvents => {
                let memory = [device.allocate(IDLE, "profiling")?, device.allocate(IDLE, "profiling")?];
                Some((memory, 2.0 * IDLE as f64 / peaks.bytes_per_s))
            }
        };
        let recorder = Rc::new(RefCell::new(Recorder {
            is_on: false,
            peaks: peaks.clone(),
            units: vec![],
            kernels: HashMap::new(),
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
        }));
        let profiler = Profiler { recorder: Rc::clone(&recorder), clock };
        Ok((Profiled { device, recorder, idle }, profiler))
    }

    fn is_on(&self) -> bool {
        self.recorder.borrow().is_on
    }

    /// Does some work between two notes of time.
    fn time(
        &self,
        kernel: &str,
        (shape, work): (String, Option<Work>),
        on_device: bool,
        ask: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let recorder = &mut *self.recorder.borrow_mut();
        let (from, to) = (recorder.stamp(), recorder.stamp());
        let gap = recorder.last_call.map_or(0.0, |last| last.elapsed().as_secs_f64());
        self.device.stamp(from)?;
        let start = Instant::now();
        ask()?;
        let call = start.elapsed().as_secs_f64();
        self.device.stamp(to)?;
        let step = &mut recorder.open;
        (step.calls, step.gaps, step.longest_gap) = (step.calls + call, step.gaps + gap, step.longest_gap.max(gap));
        step.launches.push(Launch { name: Name { kernel: kernel.to_owned(), shape }, work, on_device, from, to });
        recorder.last_call = Some(Instant::now());
        Ok(())
    }

    /// Times a copy to or from the host.
    fn time_copy(
        &self,
        what: &str,
        bytes: u64,
        ask: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let shape = format!("up to {} bytes", bytes.max(1).next_power_of_two());
        self.time(what, (shape, Some(Work { bytes, operations: 0 })), what == "fill", ask)
    }

    /// Begins a step: keeps the device busy for as long as the host will need for it.
    fn begin(&self) -> Result<(), DeviceError> {
        let asked = {
            let mut recorder = self.recorder.borrow_mut();
            recorder.last_call = None;
            recorder.asked
        };
        if let Some(([from, to], seconds)) = self.idle {
            let copies = (1.5 * asked / seconds).ceil() as usize;
            for _ in 0..copies.min(MOST_IDLE) {
                self.device.copy(from, to, IDLE)?;
            }
        }
        self.recorder.borrow_mut().begun = Some(Instant::now());
        Ok(())
    }
}

impl Device for Profiled {
    fn info(&self) -> Result<DeviceInfo, DeviceError> {
        self.device.info()
    }

    fn enter(&self) -> Result<(), DeviceError> {
        self.device.enter()
    }

    fn allocate(&self, bytes: u64, what: &'static str) -> Result<Address, DeviceError> {
        self.device.allocate(bytes, what)
    }

    fn free(&self, at: Address) -> Result<(), DeviceError> {
        self.device.free(at)
    }

    fn host_memory(&self, bytes: usize) -> Result<*mut u8, DeviceError> {
        self.device.host_memory(bytes)
    }

    fn upload(&self, to: Address, from: &[u8]) -> Result<(), DeviceError> {
        self.device.upload(to, from)
    }

    unsafe fn send(&self, to: Address, from: *const u8, bytes: usize) -> Result<(), DeviceError> {
        if !self.is_on() {
            // SAFETY: by the caller.
            return unsafe { self.device.send(to, from, bytes) };
        }
        // SAFETY: by the caller, the host's memory is as large and does not change.
        let numbers = unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec();
        self.recorder.borrow_mut().sent = (to, numbers);
        self.begin()?;
        self.time_copy("copy to the device", bytes as u64, || {
            // SAFETY: by the caller.
            unsafe { self.device.send(to, from, bytes) }
        })
    }

    unsafe fn receive(&self, from: Address, to: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: by the caller.
        let ask = || unsafe { self.device.receive(from, to, bytes) };
        if self.is_on() { self.time_copy("copy to the host", bytes as u64, ask) } else { ask() }
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError> {
        self.device.copy(from, to, bytes)
    }

    fn zero(&self, at: Address, bytes: u64) -> Result<(), DeviceError> {
        let ask = || self.device.zero(at, bytes);
        if self.is_on() { self.time_copy("fill", bytes, ask) } else { ask() }
    }

    fn mark(&self, slot: usize) -> Result<Mark, DeviceError> {
        let mark = self.device.mark(slot)?;
        let recorder = &mut *self.recorder.borrow_mut();
        let step = std::mem::take(&mut recorder.open);
        if !step.launches.is_empty() {
            recorder.asked = recorder.begun.take().map_or(recorder.asked, |begun| begun.elapsed().as_secs_f64());
            recorder.marked[slot].push(step);
        }
        Ok(mark)
    }

    fn wait(&self, mark: Mark) -> Result<(), DeviceError> {
        self.device.wait(mark)?;
        let mut recorder = self.recorder.borrow_mut();
        // Waiting is no gap between launches.
        recorder.last_call = None;
        recorder.settle(mark.0 as usize, &*self.device)
    }

    fn stamp(&self, number: usize) -> Result<(), DeviceError> {
        self.device.stamp(number)
    }

    fn seconds(&self, from: usize, to: usize) -> Result<f64, DeviceError> {
        self.device.seconds(from, to)
    }

    fn clock(&self) -> Clock {
        self.device.clock()
    }

    fn load(&mut self, unit: &Unit) -> Result<usize, DeviceError> {
        let number = self.device.load(unit)?;
        let units = &mut self.recorder.borrow_mut().units;
        units.resize(units.len().max(number + 1), unit.clone());
        units[number] = unit.clone();
        Ok(number)
    }

    fn kernel(&mut self, unit: usize, name: &str, shared: u32) -> Result<Kernel, DeviceError> {
        let kernel = self.device.kernel(unit, name, shared)?;
        self.recorder.borrow_mut().kernels.insert(kernel.0, (unit, name.to_owned()));
        Ok(kernel)
    }

    unsafe fn launch(
        &self,
        kernel: Kernel,
        grid: [usize; 3],
        block: u32,
        shared: u32,
        arguments: &[Argument],
    ) -> Result<(), DeviceError> {
        // SAFETY: by the caller.
        let ask = || unsafe { self.device.launch(kernel, grid, block, shared, arguments) };
        // An empty grid launches nothing.
        if !self.is_on() || grid.contains(&0) {
            return ask();
        }
        let (name, described) = {
            let recorder = &mut *self.recorder.borrow_mut();
            let Some((unit, name)) = recorder.kernels.get(&kernel.0) else { return ask() };
            let sent = |at: Address, count: usize| recorder.integers(at, count);
            let described = work::of_launch(&recorder.units[*unit], name, grid, arguments, &sent);
            let name = name.clone();
            if name == "embed" {
                recorder.open.tokens = grid[0];
            }
            (name, described)
        };
        self.time(&name, described, true, ask)
    }

    fn has_dense_product(&self) -> bool {
        self.device.has_dense_product()
    }

    unsafe fn dense_product(&self, product: &DenseProduct) -> Result<(), DeviceError> {
        // SAFETY: by the caller.
        let ask = || unsafe { self.device.dense_product(product) };
        if self.is_on() { self.time("cublasLt", work::of_dense_product(product), true, ask) } else { ask() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::random_prompts;
    use crate::cuda::device::Element;
    use crate::cuda::peaks;
    use crate::cuda::twin::{Twin, skipped};
    use crate::cuda::{CudaEngine, Options};
    use crate::{Engine, Event, Request, RequestId};
    use earnest_models::checkpoint::Checkpoint;

    fn run(engine: &mut CudaEngine, prompts: usize, length: usize, new: usize) -> Vec<Vec<u32>> {
        for (i, prompt) in random_prompts(prompts, 0, length, 500).into_iter().enumerate() {
            engine.submit(Request::greedy(RequestId(i as u64), prompt, new)).unwrap();
        }
        let mut all = vec![vec![]; prompts];
        loop {
            let events = engine.poll().unwrap();
            if events.is_empty() {
                return all;
            }
            for event in events {
                if let Event::Finished(completion) = event {
                    all[completion.id.0 as usize] = completion.ids;
                }
            }
        }
    }

    #[test]
    fn a_profile_has_every_launch_of_a_step_and_changes_no_token() {
        if skipped() {
            return;
        }
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama");
        let checkpoint = Checkpoint::open(&folder).unwrap();
        let options = Options {
            max_batch: 8,
            token_budget: 96,
            kv_memory: Some(4 << 20),
            prefix_cache: false,
            ..Options::default()
        };
        let peaks = peaks::measure(&mut Twin::new(), Element::F32).unwrap();
        let (device, profiler) = Profiled::new(Box::new(Twin::new()), &peaks).unwrap();
        let mut engine = CudaEngine::on(Box::new(device), &checkpoint, &options).unwrap();
        let plain = run(&mut engine, 3, 20, 6);
        profiler.start();
        let profiled = run(&mut engine, 3, 20, 6);
        let decoding = profiler.stop(Some(3));
        assert_eq!(plain, profiled);
        let layers = checkpoint.config.layers.len();
        let launches = |kernel: &str| -> usize {
            decoding.rows.iter().filter(|row| row.kernel == kernel).map(|row| row.launches).sum()
        };
        // Six tokens each: one after the prompts' step, five decoded together.
        assert_eq!((decoding.clock, decoding.steps), (Clock::Host, 5));
        assert_eq!(launches("embed"), 5);
        assert_eq!(launches("norm"), 5 * (2 * layers + 1));
        assert_eq!(launches("cublasLt"), 5 * (4 * layers + 1));
        assert_eq!(launches("attend_plain"), 5 * layers);
        assert_eq!((launches("copy to the device"), launches("copy to the host")), (5, 5));
        let total: f64 = decoding.rows.iter().map(|row| row.seconds).sum();
        assert!((total / decoding.steps as f64 - decoding.busy_s).abs() < 1e-9 && decoding.step_s >= decoding.busy_s);
        assert!(decoding.rows.windows(2).all(|two| two[0].seconds >= two[1].seconds));
        assert!((decoding.rows.iter().map(|row| row.fraction).sum::<f64>() - 1.0).abs() < 1e-9);
        let attention = decoding.rows.iter().find(|row| row.kernel == "attend_plain").unwrap();
        assert!(attention.operations.unwrap() > 0 && attention.share_of_peak.unwrap() > 0.0, "{attention:?}");
        // Nothing was recorded before the start, and a new profile begins with nothing.
        profiler.start();
        let nothing = profiler.stop(None);
        assert_eq!((nothing.steps, nothing.rows.len(), nothing.busy_s), (0, 0, 0.0));
    }
}
