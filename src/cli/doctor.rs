//! `earnest doctor`: capabilities of this machine.
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Serialize;

use super::Exit;
use super::args::ResultsArgs;
use super::error::CliError;
use super::left_out;
use super::offered::options;
use super::printer::Printer;
use super::sandbox_args::SandboxArgs;
use super::values::named;
use earnest_engine::cuda::{self, VARIANTS, VariantCard};
use earnest_models::hub::Environment;
use earnest_models::memory::human_bytes;
use earnest_report::text_width;
use earnest_results::{Host, available_memory};
use earnest_sandbox as sandbox;

#[derive(Debug, Args)]
pub struct DoctorArgs {
    #[command(flatten)]
    pub results: ResultsArgs,

    #[command(flatten)]
    pub sandbox: SandboxArgs,

    /// Print one JSON document
    #[arg(long)]
    pub json: bool,
}

#[derive(Debug, Serialize)]
struct Findings {
    earnest: &'static str,
    host: Host,
    /// Free memory in bytes.
    available_memory: Option<u64>,
    /// Instruction sets for matrix products: name, and true if the CPU has it.
    cpu_features: Vec<(&'static str, bool)>,
    cuda: Cuda,
    sandbox: Sandbox,
    folders: Vec<Folder>,
    environment: Vec<(&'static str, Option<String>)>,
    /// Features of the program: name, and true if it was built with it.
    features: Vec<(&'static str, bool)>,
    /// Suggested changes.
    advice: Vec<String>,
}

#[derive(Debug, Serialize)]
struct Cuda {
    /// Driver version, from the kernel's files.
    driver: Option<String>,
    devices: Vec<String>,
    /// True if the engine can use the first device.
    ready: bool,
    /// Devices as CUDA's libraries report them, or their error.
    libraries: Vec<String>,
    /// Major and minor compute capability of the first device; none without one.
    capability: Option<(u32, u32)>,
    /// Values of `--cuda-variant`.
    variants: &'static [VariantCard],
}

/// Sandbox for model-written Python.
#[derive(Debug, Serialize)]
struct Sandbox {
    /// None if the sandbox does not work.
    report: Option<sandbox::Report>,
    /// Error of a sandbox that does not work.
    problem: Option<String>,
    /// Next step after the error.
    help: Option<String>,
    /// Interpreter from `--python`; none means the embedded one.
    python: Option<PathBuf>,
    /// Time limit of a program in seconds.
    wall_s: f64,
    /// Memory limit of a program in bytes.
    memory: u64,
}

#[derive(Debug, Serialize)]
struct Folder {
    purpose: &'static str,
    path: PathBuf,
    exists: bool,
    /// True if a file can be created in it, or in its nearest existing parent.
    writable: bool,
}

/// Examines the machine. Findings are not errors: the exit code is 0.
pub fn execute(args: &DoctorArgs, printer: Printer) -> Result<Exit, CliError> {
    let findings = examine(&args.results.folder, examine_sandbox(&args.sandbox));
    if args.json {
        printer.json(&findings)?;
    } else {
        printer.result(&screen(&findings, printer.known_width()))?;
    }
    Ok(Exit::Success)
}

/// Starts the sandbox and tries it out.
fn examine_sandbox(args: &SandboxArgs) -> Sandbox {
    match args.pool() {
        Ok(pool) => {
            let sandbox::Settings { python, wall, memory, .. } = pool.settings().clone();
            let report = Some(pool.report().clone());
            Sandbox { report, problem: None, help: None, python, wall_s: wall.as_secs_f64(), memory }
        }
        Err(error) => Sandbox {
            report: None,
            problem: Some(options(&error.message)),
            help: error.help.map(|help| options(&help)),
            python: args.python.clone(),
            wall_s: sandbox::Settings::WALL.as_secs_f64(),
            memory: sandbox::Settings::MEMORY,
        },
    }
}

fn examine(results: &Path, sandbox: Sandbox) -> Findings {
    let host = Host::probe();
    let available_memory = available_memory();
    let cpu_features = cpu_features();
    let cuda = examine_cuda();
    let mut folders = vec![folder("results", results.to_owned())];
    folders.extend(Environment::read(false).cache.map(|path| folder("Hugging Face cache", path)));
    let names = [
        "EARNEST_MODEL",
        "EARNEST_RESULTS",
        "EARNEST_DEVICE",
        "EARNEST_KERNELS",
        "EARNEST_CUDA_LIBRARIES",
        "HF_HUB_CACHE",
        "HF_HOME",
        "XDG_CACHE_HOME",
        "HF_HUB_OFFLINE",
    ];
    let environment = names.map(|name| (name, std::env::var(name).ok())).to_vec();
    let mut advice = Vec::new();
    for unwritable in folders.iter().filter(|folder| folder.purpose == "results" && !folder.writable) {
        advice.push(format!("{} is not writable: choose another folder with --results", unwritable.path.display()));
    }
    if cfg!(target_arch = "x86_64") && cpu_features.iter().any(|&(name, has)| name == "avx2" && !has) {
        advice.push("the CPU has no AVX2, so matrix products will be slow".to_owned());
    }
    if !cuda.devices.is_empty() && !cuda.ready {
        advice.push(
            "a GPU is present but not ready: it needs NVIDIA's driver, cublasLt of CUDA 12 or 13 in the system's library path or in \
             EARNEST_CUDA_LIBRARIES, and NVRTC if the program has no kernels for it"
                .to_owned(),
        );
    }
    match &sandbox.report {
        None => {
            let help = sandbox.help.as_ref().map_or_else(String::new, |help| format!("; {help}"));
            advice
                .push(format!("model-written Python is not run, so prompts that ask for code cannot be scored{help}"));
        }
        Some(report) if !report.confinement.missing.is_empty() => advice.push(
            "with --unconfined model-written Python may read and delete files, use the network and see the environment of other \
             processes here: --sandbox-command runs it in a container or in bubblewrap instead (docs/sandbox.md)"
                .to_owned(),
        ),
        Some(_) => {}
    }
    if available_memory.is_some_and(|bytes| bytes < 2 << 30) {
        advice
            .push("less than 2 GiB of memory is free; a model of 135 million parameters takes about 1 GiB".to_owned());
    }
    Findings {
        earnest: env!("CARGO_PKG_VERSION"),
        host,
        available_memory,
        cpu_features,
        cuda,
        sandbox,
        folders,
        environment,
        features: left_out::FEATURES.to_vec(),
        advice,
    }
}

#[cfg(target_arch = "x86_64")]
fn cpu_features() -> Vec<(&'static str, bool)> {
    let mut features = vec![
        ("avx2", std::arch::is_x86_feature_detected!("avx2")),
        ("fma", std::arch::is_x86_feature_detected!("fma")),
        ("f16c", std::arch::is_x86_feature_detected!("f16c")),
        ("avx512f", std::arch::is_x86_feature_detected!("avx512f")),
        ("avx512_vnni", std::arch::is_x86_feature_detected!("avx512vnni")),
        ("avx512_bf16", std::arch::is_x86_feature_detected!("avx512bf16")),
        ("avx_vnni", std::arch::is_x86_feature_detected!("avxvnni")),
    ];
    // The standard library cannot detect AMX yet; the kernel's list has it.
    if let Ok(info) = std::fs::read_to_string("/proc/cpuinfo") {
        let flags = info.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
        let has = |name: &str| flags.split_whitespace().any(|flag| flag == name);
        features.extend(["amx_tile", "amx_bf16", "amx_int8"].map(|name| (name, has(name))));
    }
    features
}

#[cfg(target_arch = "aarch64")]
fn cpu_features() -> Vec<(&'static str, bool)> {
    vec![
        ("neon", std::arch::is_aarch64_feature_detected!("neon")),
        ("fp16", std::arch::is_aarch64_feature_detected!("fp16")),
        ("dotprod", std::arch::is_aarch64_feature_detected!("dotprod")),
        ("i8mm", std::arch::is_aarch64_feature_detected!("i8mm")),
        ("bf16", std::arch::is_aarch64_feature_detected!("bf16")),
        ("sve", std::arch::is_aarch64_feature_detected!("sve")),
    ]
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu_features() -> Vec<(&'static str, bool)> {
    Vec::new()
}

/// Reads the driver's files and asks its library for the devices.
fn examine_cuda() -> Cuda {
    let driver = std::fs::read_to_string("/proc/driver/nvidia/version")
        .ok()
        .and_then(|text| text.lines().next().map(|line| line.trim_start_matches("NVRM version:").trim().to_owned()));
    let mut devices = Vec::new();
    for entry in std::fs::read_dir("/proc/driver/nvidia/gpus").into_iter().flatten().flatten() {
        let text = std::fs::read_to_string(entry.path().join("information")).unwrap_or_default();
        let model = text.lines().find_map(|line| line.strip_prefix("Model:"));
        devices.push(model.unwrap_or("a GPU without a name").trim().to_owned());
    }
    let found = cuda::devices();
    let ready = matches!(found.as_deref(), Ok([first, ..]) if first.has_kernels() && first.capability.0 >= 8);
    let capability = found.as_ref().ok().and_then(|found| Some(found.first()?.capability));
    let libraries = match found {
        Ok(found) => found.iter().map(describe_device).collect(),
        Err(error) => vec![error.to_string()],
    };
    Cuda { driver, devices, ready, libraries, capability, variants: &VARIANTS }
}

fn describe_device(d: &cuda::DeviceInfo) -> String {
    let compiler = d.compiler.map_or("none".to_owned(), |(major, minor)| format!("{major}.{minor}"));
    let cublaslt = d.cublaslt.map_or("none".to_owned(), |version| version.to_string());
    let kernels = match (&d.modified, &d.embedded) {
        (Some(digest), _) => format!("modified kernels {digest}"),
        (None, Some(embedded)) => format!("kernels for {embedded}"),
        (None, None) => "no kernels inside the program".to_owned(),
    };
    format!(
        "cuda:{} {}, {}, compute capability {}.{}, driver for CUDA {}.{}, {kernels}, NVRTC {compiler}, cublasLt {cublaslt}",
        d.index,
        d.name,
        human_bytes(d.total),
        d.capability.0,
        d.capability.1,
        d.driver.0,
        d.driver.1
    )
}

fn folder(purpose: &'static str, path: PathBuf) -> Folder {
    let absolute = std::path::absolute(&path).unwrap_or_else(|_| path.clone());
    let exists = absolute.is_dir();
    let nearest = absolute.ancestors().find(|folder| folder.exists());
    Folder { purpose, exists, writable: nearest.is_some_and(can_write), path }
}

/// True if a file can be created; permissions alone miss read-only and full file systems.
fn can_write(folder: &Path) -> bool {
    let probe = folder.join(format!(".earnest-doctor-{}", std::process::id()));
    let created = std::fs::write(&probe, b"1").is_ok();
    // Removed on failure too: a full disk creates the file before it fails to fill it.
    std::fs::remove_file(&probe).ok();
    created
}

/// The findings in lines, wrapped at a known width.
fn screen(findings: &Findings, width: Option<usize>) -> String {
    let host = &findings.host;
    let unknown = || "unknown".to_owned();
    let mut lines: Vec<(String, String)> = vec![
        ("earnest".into(), format!("{} on {} {}", findings.earnest, host.os, host.arch)),
        ("cpu".into(), host.cpu.clone().unwrap_or_else(unknown)),
        ("threads".into(), host.threads.to_string()),
    ];
    let list = |wanted: bool| {
        let names: Vec<&str> =
            findings.cpu_features.iter().filter(|(_, has)| *has == wanted).map(|(name, _)| *name).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(" ") }
    };
    lines.push(("cpu features".into(), list(true)));
    lines.push(("  missing".into(), list(false)));
    let total = host.memory.map_or_else(unknown, human_bytes);
    let free = findings.available_memory.map_or_else(unknown, human_bytes);
    lines.push(("memory".into(), format!("{total}, {free} free")));
    let cuda = &findings.cuda;
    lines.push(("cuda".into(), if cuda.ready { "ready" } else { "not ready" }.into()));
    lines.push(("  driver".into(), cuda.driver.clone().unwrap_or_else(|| "none".into())));
    let devices = if cuda.devices.is_empty() { "none".to_owned() } else { cuda.devices.join(", ") };
    lines.push(("  devices".into(), devices));
    lines.extend(cuda.libraries.iter().map(|text| ("  libraries".to_owned(), text.clone())));
    lines.extend(sandbox_lines(&findings.sandbox));
    for folder in &findings.folders {
        let state = match (folder.exists, folder.writable) {
            (true, true) => "writable",
            (true, false) => "not writable",
            (false, true) => "missing, can be created",
            (false, false) => "missing, cannot be created",
        };
        lines.push((folder.purpose.to_owned(), format!("{} ({state})", folder.path.display())));
    }
    for (name, value) in &findings.environment {
        if let Some(value) = value {
            lines.push(((*name).to_owned(), value.clone()));
        }
    }
    let left_out: Vec<&str> =
        findings.features.iter().filter(|(_, is_built)| !is_built).map(|(feature, _)| *feature).collect();
    if !left_out.is_empty() {
        lines.push(("built without".to_owned(), left_out.join(", ")));
    }
    let widest = lines.iter().map(|(name, _)| text_width(name)).max().unwrap_or(0);
    let mut text = String::new();
    for (name, value) in &lines {
        text += &named(name, widest + 2, value, width);
    }
    for advice in &findings.advice {
        text.push('\n');
        text += &named("*", 2, &options(advice), width);
    }
    text
}

fn sandbox_lines(sandbox: &Sandbox) -> Vec<(String, String)> {
    let Some(report) = &sandbox.report else {
        let problem = sandbox.problem.as_deref().unwrap_or("unknown error");
        return vec![("model-written Python".into(), format!("not available: {problem}"))];
    };
    let files = if sandbox.python.is_some() { "only the interpreter's files" } else { "no files" };
    let missing = |part: sandbox::Part| {
        let found = report.confinement.missing.iter().find(|missing| missing.part == part);
        found.map_or_else(|| "missing".to_owned(), |found| format!("missing: {}", found.reason))
    };
    let landlock = match report.confinement.landlock {
        Some(abi) => format!("ABI {abi}: {files}{}", if abi >= 4 { ", no TCP" } else { "" }),
        None => missing(sandbox::Part::Landlock),
    };
    let seccomp = match report.confinement.seccomp {
        true => "on: no processes, no network, no signals, no file writes".to_owned(),
        false => missing(sandbox::Part::Seccomp),
    };
    let reached = match (report.reached.as_slice(), &report.confinement.command) {
        ([], None) => format!("{}: all refused", sandbox::ATTEMPTS.join(", ")),
        ([], Some(_)) => "files, network and processes outside the command: all refused".to_owned(),
        (some, _) => format!("a program can reach {}", some.join(", ")),
    };
    let memory = human_bytes(sandbox.memory);
    let limits = match report.confinement.limits {
        true => format!("{} s, {memory}, one process, no environment variables, no file writes", sandbox.wall_s),
        false => format!("{} s; others {}", sandbox.wall_s, missing(sandbox::Part::Limits)),
    };
    let mut lines = vec![
        ("model-written Python".into(), report.interpreter.clone()),
        ("  landlock".into(), landlock),
        ("  seccomp".into(), seccomp),
        ("  tried".into(), reached),
        ("  limits".into(), limits),
    ];
    lines.extend(report.confinement.command.as_ref().map(|command| ("  command".to_owned(), command.clone())));
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn no_sandbox() -> Sandbox {
        Sandbox { report: None, problem: Some("none".into()), help: None, python: None, wall_s: 1.0, memory: 1 }
    }

    #[test]
    fn what_confines_programs_is_said() {
        let mut sandbox = no_sandbox();
        assert!(sandbox_lines(&sandbox)[0].1.contains("not available: none"));
        let landlock = sandbox::Missing { part: sandbox::Part::Landlock, reason: "an old kernel".into() };
        let confinement = sandbox::Confinement { missing: vec![landlock], ..sandbox::Confinement::default() };
        sandbox.report =
            Some(sandbox::Report { interpreter: "P 1".into(), confinement, reached: vec!["a UDP socket".into()] });
        let findings = examine(Path::new("."), sandbox);
        assert!(findings.advice.iter().any(|advice| advice.contains("container")));
        let screen = screen(&findings, None);
        assert!(screen.contains("P 1") && screen.contains("a program can reach a UDP socket"), "{screen}");
        assert!(screen.contains("missing: an old kernel"), "{screen}");
    }

    #[test]
    fn lines_are_wrapped_where_the_width_is_known() {
        let mut findings = examine(Path::new("."), no_sandbox());
        findings.cuda.libraries = vec!["a library that could not be opened".repeat(5)];
        findings.advice = vec!["advice of many words ".repeat(10)];
        // Paths of this machine may be longer than a line.
        findings.folders.clear();
        findings.environment.clear();
        let whole = screen(&findings, None);
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        for width in [80, 100] {
            let text = screen(&findings, Some(width));
            assert!(text.lines().all(|line| line.chars().count() <= width), "{width}\n{text}");
            assert_eq!(words(&text), words(&whole));
        }
        assert!(whole.lines().any(|line| line.starts_with("* advice") && line.chars().count() > 100), "{whole}");
    }

    #[test]
    fn an_unwritable_results_folder_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let fine = examine(&folder.path().join("a/b"), no_sandbox());
        assert!(fine.folders[0].writable && !fine.folders[0].exists);
        assert!(!folder.path().join("a").exists());
        std::fs::write(folder.path().join("file"), "").unwrap();
        let blocked = examine(&folder.path().join("file/below"), no_sandbox());
        assert!(!blocked.folders[0].writable);
        assert!(blocked.advice.iter().any(|advice| advice.contains("--results")));
    }

    #[test]
    fn the_probe_leaves_nothing_behind() {
        let folder = tempfile::tempdir().unwrap();
        assert!(can_write(folder.path()));
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }
}
