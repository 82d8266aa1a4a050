//! The unit of this machine, which the system is asked for.
use super::unit::TileUnit;
use crate::cpu::kernels::lanes::Isa;

impl TileUnit {
    /// Asks the system for AMX, once a process: the flags of the CPU, the permission of the kernel, and a product tried in a child
    /// process. The environment variable `EARNEST_AMX=off` answers for it.
    ///
    /// # Errors
    /// The reason why there is no AMX, to be read after "without AMX: ".
    pub fn amx() -> Result<TileUnit, &'static str> {
        #[cfg(all(target_arch = "x86_64", target_os = "linux"))]
        {
            use std::sync::OnceLock;
            static REASON: OnceLock<Option<String>> = OnceLock::new();
            match REASON.get_or_init(|| super::probe::ask().err().map(|reason| reason.to_string())) {
                None => Ok(TileUnit { amx: true }),
                Some(reason) => Err(reason),
            }
        }
        #[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
        Err("it is used on Linux on x86-64 only")
    }

    /// AMX where the system has it, else vectors.
    pub fn best() -> TileUnit {
        TileUnit::amx().unwrap_or(TileUnit::VECTORS)
    }

    /// Its name for people, of kernels on `isa`.
    pub(crate) fn describe(self, isa: Isa) -> String {
        match (self.amx, TileUnit::amx()) {
            (true, _) => "AMX bf16".to_owned(),
            (false, Err(reason)) => format!("{} bf16 (without AMX: {reason})", isa.name()),
            (false, Ok(_)) => format!("{} bf16", isa.name()),
        }
    }

    /// AMX whose instructions the emulator executes.
    #[cfg(all(test, target_arch = "x86_64", target_os = "linux"))]
    pub(super) fn emulated(_: &super::emulator::Emulated) -> TileUnit {
        TileUnit { amx: true }
    }
}
