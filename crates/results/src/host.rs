//! Properties of the machine.
use super::Host;

impl Host {
    /// Queries the system; unknown values are none.
    pub fn probe() -> Self {
        Host {
            os: std::env::consts::OS.to_owned(),
            arch: std::env::consts::ARCH.to_owned(),
            cpu: cpu_name(),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            memory: total_memory(),
        }
    }

    /// True if timings are comparable: the same processor with the same number of threads.
    pub fn is_as_fast_as(&self, other: &Host) -> bool {
        (&self.cpu, self.threads) == (&other.cpu, other.threads)
    }
}

#[cfg(target_os = "linux")]
fn cpu_name() -> Option<String> {
    let info = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = info.lines().find(|line| line.starts_with("model name"))?;
    line.split_once(':').map(|(_, name)| name.trim().to_owned())
}

#[cfg(not(target_os = "linux"))]
fn cpu_name() -> Option<String> {
    sysctl("machdep.cpu.brand_string")
}

/// Returns the memory of the machine or of this process's control group, whichever is less, in bytes.
#[cfg(target_os = "linux")]
fn total_memory() -> Option<u64> {
    let machine = meminfo("MemTotal")?;
    let granted = std::fs::read_to_string("/sys/fs/cgroup/memory.max").ok().and_then(|text| text.trim().parse().ok());
    Some(granted.map_or(machine, |granted: u64| granted.min(machine)))
}

#[cfg(not(target_os = "linux"))]
fn total_memory() -> Option<u64> {
    sysctl("hw.memsize")?.parse().ok()
}

/// Returns the memory that this process may still take in bytes, if the system reports it: what is available, or what is left of
/// its limit of address space.
pub fn available_memory() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return match (meminfo("MemAvailable"), address_space_left()) {
        (Some(available), Some(left)) => Some(available.min(left)),
        (available, left) => available.or(left),
    };
    #[cfg(not(target_os = "linux"))]
    return None;
}

/// Returns a field of `/proc/meminfo` in bytes.
#[cfg(target_os = "linux")]
fn meminfo(name: &str) -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kib| kib * 1024)
}

/// Returns what is left of the limit of address space (`ulimit -v`) in bytes, where there is one.
#[cfg(target_os = "linux")]
fn address_space_left() -> Option<u64> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/self/{name}")).ok();
    let limits = read("limits")?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?;
    let status = read("status")?;
    let size = status.lines().find_map(|line| line.strip_prefix("VmSize:"))?;
    let used = size.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? * 1024;
    Some(limit.saturating_sub(used))
}

#[cfg(not(target_os = "linux"))]
fn sysctl(name: &str) -> Option<String> {
    let output = std::process::Command::new("sysctl").args(["-n", name]).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
