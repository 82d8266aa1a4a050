//! A device around another one that times its launches, products and copies, so that nothing else knows of it.
//!
//! The device's clock notes the time before and after each launch. Before a step's first launch it copies idly for as long as the host
//! needs to ask for a step: a device that waits for the host would count the waiting as the kernel's time. What the host itself takes is
//! measured by its own clock. A recorded step is timed as a whole, whenever it is replayed.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Instant;

use super::device::{Address, Argument, Clock, DenseProduct, Device, DeviceError, DeviceInfo, Kernel, Mark, Recording};
use super::kernels::Unit;
use super::peaks::Peaks;
use super::profile::{Launch, Name, Profiler, Recorder};
use super::work::{self, Work};

/// Bytes of the idle copies: several times what a GPU keeps in its second cache (50 MB on an H100, 126 MB on a B200), so that one takes as long as
/// the memory's peak says.
const IDLE: u64 = 512 << 20;

/// Longest idling before a step, in seconds: the host's time includes waiting where the driver's queue of launches is full, and must not grow by its own
/// idling.
const LONGEST_IDLE: f64 = 20e-3;

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
        let recorder = Rc::new(RefCell::new(Recorder::new(peaks.clone())));
        let profiler = Profiler { recorder: Rc::clone(&recorder), clock };
        Ok((Profiled { device, recorder, idle }, profiler))
    }

    fn times(&self) -> bool {
        self.recorder.borrow().times()
    }

    /// Does some work between two notes of time. `called` is when the engine asked for it: what a profile does until here is no gap of the
    /// engine's.
    fn time(
        &self,
        kernel: &str,
        (shape, work): (String, Option<Work>),
        on_device: bool,
        called: Instant,
        ask: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let recorder = &mut *self.recorder.borrow_mut();
        let (from, to) = (recorder.stamp(), recorder.stamp());
        let gap = recorder.last_call.map_or(0.0, |last| called.duration_since(last).as_secs_f64());
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
        called: Instant,
        ask: impl FnOnce() -> Result<(), DeviceError>,
    ) -> Result<(), DeviceError> {
        let shape = format!("up to {} bytes", bytes.max(1).next_power_of_two());
        self.time(what, (shape, Some(Work { bytes, operations: 0 })), what == "fill", called, ask)
    }

    /// Begins a step: keeps the device busy for as long as the host will need for it.
    fn begin(&self) -> Result<(), DeviceError> {
        let asked = {
            let mut recorder = self.recorder.borrow_mut();
            recorder.last_call = None;
            recorder.asked
        };
        if let Some(([from, to], seconds)) = self.idle {
            let copies = ((1.5 * asked).min(LONGEST_IDLE) / seconds).ceil() as usize;
            for _ in 0..copies {
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
        if !self.times() {
            // SAFETY: by the caller.
            return unsafe { self.device.send(to, from, bytes) };
        }
        // SAFETY: by the caller, the host's memory is as large and does not change.
        let numbers = unsafe { std::slice::from_raw_parts(from, bytes) }.to_vec();
        self.recorder.borrow_mut().sent = (to, numbers);
        self.begin()?;
        // Idling before a step is no gap either.
        self.time_copy("copy to the device", bytes as u64, Instant::now(), || {
            // SAFETY: by the caller.
            unsafe { self.device.send(to, from, bytes) }
        })
    }

    unsafe fn receive(&self, from: Address, to: *mut u8, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: by the caller.
        let ask = || unsafe { self.device.receive(from, to, bytes) };
        if self.times() { self.time_copy("copy to the host", bytes as u64, Instant::now(), ask) } else { ask() }
    }

    fn copy(&self, from: Address, to: Address, bytes: u64) -> Result<(), DeviceError> {
        self.device.copy(from, to, bytes)
    }

    fn zero(&self, at: Address, bytes: u64) -> Result<(), DeviceError> {
        let ask = || self.device.zero(at, bytes);
        if self.times() { self.time_copy("fill", bytes, Instant::now(), ask) } else { ask() }
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
        let called = Instant::now();
        // SAFETY: by the caller.
        let ask = || unsafe { self.device.launch(kernel, grid, block, shared, arguments) };
        // An empty grid launches nothing.
        if grid.contains(&0) {
            return ask();
        }
        let (name, described) = {
            let recorder = &mut *self.recorder.borrow_mut();
            if !recorder.is_on && recorder.recording.is_none() {
                return ask();
            }
            let Some((unit, name)) = recorder.kernels.get(&kernel.0) else { return ask() };
            if let Some(tokens) = &mut recorder.recording {
                // Known also while the profile is off: the record may be replayed when it is on.
                if name == "embed" {
                    *tokens = grid[0];
                }
                return ask();
            }
            let sent = |at: Address, count: usize| recorder.integers(at, count);
            let described = work::of_launch(&recorder.units[*unit], name, grid, arguments, &sent);
            let name = name.clone();
            if name == "embed" {
                recorder.open.tokens = grid[0];
            }
            (name, described)
        };
        self.time(&name, described, true, called, ask)
    }

    fn record(&self) -> Result<(), DeviceError> {
        self.device.record()?;
        self.recorder.borrow_mut().recording = Some(0);
        Ok(())
    }

    fn recorded(&self) -> Result<Recording, DeviceError> {
        let tokens = {
            let recorder = &mut *self.recorder.borrow_mut();
            // Recording is no gap between launches.
            recorder.last_call = None;
            recorder.recording.take()
        };
        let recording = self.device.recorded()?;
        self.recorder.borrow_mut().recorded.insert(recording.0, tokens.unwrap_or(0));
        Ok(recording)
    }

    unsafe fn replay(&self, recording: Recording) -> Result<(), DeviceError> {
        // SAFETY: by the caller.
        let ask = || unsafe { self.device.replay(recording) };
        if !self.times() {
            return ask();
        }
        let tokens = {
            let recorder = &mut *self.recorder.borrow_mut();
            let tokens = recorder.recorded.get(&recording.0).copied().unwrap_or(0);
            recorder.open.tokens = tokens;
            tokens
        };
        self.time("graph", work::of_recorded_step(tokens), true, Instant::now(), ask)
    }

    fn forget(&self, recording: Recording) -> Result<(), DeviceError> {
        self.recorder.borrow_mut().recorded.remove(&recording.0);
        self.device.forget(recording)
    }

    fn has_dense_product(&self) -> bool {
        self.device.has_dense_product()
    }

    unsafe fn dense_product(&self, product: &DenseProduct) -> Result<(), DeviceError> {
        // SAFETY: by the caller.
        let ask = || unsafe { self.device.dense_product(product) };
        let called = Instant::now();
        if self.times() { self.time("cublasLt", work::of_dense_product(product), true, called, ask) } else { ask() }
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

    fn llama() -> Checkpoint {
        let folder =
            std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/engine/checkpoints/llama");
        Checkpoint::open(&folder).unwrap()
    }

    fn profiled(checkpoint: &Checkpoint, graphs: bool) -> (CudaEngine, Profiler) {
        let options = Options {
            max_batch: Some(8),
            token_budget: 96,
            kv_memory: Some(4 << 20),
            prefix_cache: false,
            graphs,
            ..Options::default()
        };
        let peaks = peaks::measure(&mut Twin::new(), Element::F32).unwrap();
        let (device, profiler) = Profiled::new(Box::new(Twin::new()), &peaks).unwrap();
        (CudaEngine::on(Box::new(device), checkpoint, &options).unwrap(), profiler)
    }

    #[test]
    fn a_profile_has_every_launch_of_a_step_and_changes_no_token() {
        if skipped() {
            return;
        }
        let checkpoint = llama();
        let (mut engine, profiler) = profiled(&checkpoint, false);
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
        assert_eq!((launches("join_norm"), launches("norm")), (5 * 2 * layers, 5));
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

    #[test]
    fn a_recorded_step_is_one_row_with_its_tokens() {
        if skipped() {
            return;
        }
        let (mut engine, profiler) = profiled(&llama(), true);
        // Steps alternate between two places of their numbers: the first two of a kind are launched, the next two recorded.
        let plain = run(&mut engine, 3, 20, 6);
        let before = engine.replayed();
        profiler.start();
        assert_eq!(run(&mut engine, 3, 20, 6), plain);
        let decoding = profiler.stop(Some(3));
        assert!(before >= 3, "{before} steps were replayed before");
        assert_eq!(engine.replayed() - before, 5);
        let row = |kernel: &str| decoding.rows.iter().find(|row| row.kernel == kernel);
        let graph = row("graph").unwrap();
        assert_eq!((graph.launches, graph.shape.as_str(), decoding.steps), (5, "3 tokens", 5));
        assert!(graph.seconds > 0.0 && graph.bytes.is_none() && graph.share_of_peak.is_none(), "{graph:?}");
        // Nothing of a record is timed by itself.
        let names: Vec<&str> = decoding.rows.iter().map(|row| row.kernel.as_str()).collect();
        assert!(names.iter().all(|name| name.starts_with("copy to") || *name == "graph"), "{names:?}");
    }
}
