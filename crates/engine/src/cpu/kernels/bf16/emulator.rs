//! Executes instructions of AMX where the CPU has none, for tests: a handler of SIGILL that follows the Intel SDM, volume 2. So the
//! addresses, loops and layouts of `tiles` are tested on every CPU; that a CPU computes what the manual says is not.

use std::cell::UnsafeCell;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::tests::{add_flushed, fma_flushed};

/// Configuration and contents of a thread's tiles.
struct Tiles {
    configured: bool,
    rows: [usize; 8],
    row_bytes: [usize; 8],
    data: [[[u8; 64]; 16]; 8],
    executed: usize,
}

thread_local! {
    static TILES: UnsafeCell<Tiles> = const {
        UnsafeCell::new(Tiles {
            configured: false,
            rows: [0; 8],
            row_bytes: [0; 8],
            data: [[[0; 64]; 16]; 8],
            executed: 0,
        })
    };
}

static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());

/// The emulator while it is installed.
pub(super) struct Emulated {
    previous: libc::sigaction,
    _alone: MutexGuard<'static, ()>,
}

impl Emulated {
    /// Installs it for the process.
    pub(super) fn install() -> Emulated {
        let alone = ONE_AT_A_TIME.lock().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: a zeroed struct of integers and pointers, filled in as the call wants it.
        let mut action: libc::sigaction = unsafe { std::mem::zeroed() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_illegal;
        action.sa_sigaction = handler as usize;
        action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
        let mut previous = action;
        // SAFETY: both are valid structs; the handler does nothing but arithmetic on its thread's tiles.
        assert_eq!(unsafe { libc::sigaction(libc::SIGILL, &raw const action, &raw mut previous) }, 0);
        Emulated { previous, _alone: alone }
    }

    /// Instructions that it executed on this thread.
    pub(super) fn executed(&self) -> usize {
        // SAFETY: the handler runs only in an instruction of this thread, which this is not.
        TILES.with(|tiles| unsafe { (*tiles.get()).executed })
    }

    /// True if this thread's tiles are released.
    pub(super) fn released(&self) -> bool {
        // SAFETY: as above.
        TILES.with(|tiles| unsafe { !(*tiles.get()).configured })
    }
}

impl Drop for Emulated {
    fn drop(&mut self) {
        // SAFETY: the struct that the system returned.
        unsafe { libc::sigaction(libc::SIGILL, &raw const self.previous, std::ptr::null_mut()) };
    }
}

extern "C" fn on_illegal(_: libc::c_int, _: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel hands over the thread's context, whose instruction pointer is at an instruction.
    unsafe {
        let registers = &mut (*context.cast::<libc::ucontext_t>()).uc_mcontext.gregs;
        let done = TILES.with(|tiles| execute(&mut *tiles.get(), registers));
        match done {
            Some(length) => registers[libc::REG_RIP as usize] += length as i64,
            None => {
                // Not one of ours: the default action, when the instruction runs again.
                libc::signal(libc::SIGILL, libc::SIG_DFL);
            }
        }
    }
}

/// General registers in the order of their numbers.
const GENERAL: [libc::c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];

/// Executes the instruction; its length, or none if it is another than those of AMX.
unsafe fn execute(tiles: &mut Tiles, registers: &[i64; 23]) -> Option<usize> {
    let general = |number: u8| registers[GENERAL[number as usize] as usize] as usize;
    let code = registers[libc::REG_RIP as usize] as *const u8;
    // SAFETY: an instruction of AMX is at least five bytes long, and bytes are looked at in its order.
    let byte = |i: usize| unsafe { *code.add(i) };
    // The three-byte VEX prefix, map 0F38, W0, 128 bits.
    if byte(0) != 0xC4 || byte(1) & 0x1F != 2 || byte(2) & 0x84 != 0 {
        return None;
    }
    let (extend_index, extend_base) = (u8::from(byte(1) & 0x40 == 0) * 8, u8::from(byte(1) & 0x20 == 0) * 8);
    let (vvvv, prefix, opcode, modrm) = (!(byte(2) >> 3) & 15, byte(2) & 3, byte(3), byte(4));
    let (mode, reg, rm) = (modrm >> 6, (modrm >> 3 & 7) as usize, (modrm & 7) as usize);
    // Base, index, scale, displacement, length.
    let memory = || -> Option<(usize, usize, usize)> {
        let sib = if rm == 4 { Some(byte(5)) } else { None };
        let at = if sib.is_some() { 6 } else { 5 };
        let base = sib.map_or(rm as u8, |sib| sib & 7);
        let (displacement, length) = match mode {
            0 if base != 5 => (0, at),
            1 => (isize::from(byte(at) as i8), at + 1),
            2 => (i32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)]) as isize, at + 4),
            _ => return None,
        };
        let stride = match sib.map(|sib| (sib >> 3 & 7 | extend_index, sib >> 6)) {
            None | Some((4, _)) => 0,
            Some((index, scale)) => general(index) << scale,
        };
        Some((general(base | extend_base).wrapping_add_signed(displacement), stride, length))
    };
    let length = match (opcode, prefix, mode) {
        // ldtilecfg
        (0x49, 0, 0..=2) if reg == 0 => {
            let (address, stride, length) = memory()?;
            assert_eq!(stride, 0);
            // SAFETY: the instruction's operand has 64 bytes.
            let bytes = unsafe { *(address as *const [u8; 64]) };
            assert!(bytes[0] == 1 && bytes[1] == 0, "palette or row to resume at");
            assert!(bytes[2..16].iter().chain(&bytes[32..48]).chain(&bytes[56..]).all(|&b| b == 0), "reserved bytes");
            for tile in 0..8 {
                tiles.row_bytes[tile] = usize::from(u16::from_le_bytes([bytes[16 + 2 * tile], bytes[17 + 2 * tile]]));
                tiles.rows[tile] = usize::from(bytes[48 + tile]);
                assert!(tiles.row_bytes[tile] <= 64 && tiles.rows[tile] <= 16);
                assert_eq!(tiles.row_bytes[tile] == 0, tiles.rows[tile] == 0);
            }
            tiles.data = [[[0; 64]; 16]; 8];
            tiles.configured = true;
            length
        }
        // tilerelease
        (0x49, 0, 3) if modrm == 0xC0 => {
            tiles.configured = false;
            5
        }
        // tilezero
        (0x49, 3, 3) if rm == 0 => {
            assert!(tiles.configured && tiles.rows[reg] > 0);
            tiles.data[reg] = [[0; 64]; 16];
            5
        }
        // tileloadd, tilestored
        (0x4B, 2 | 3, 0..=2) if rm == 4 => {
            let (address, stride, length) = memory()?;
            assert!(tiles.configured && tiles.rows[reg] > 0);
            if prefix == 3 {
                tiles.data[reg] = [[0; 64]; 16];
            }
            for row in 0..tiles.rows[reg] {
                let bytes = tiles.row_bytes[reg];
                let (memory, tile) = ((address + row * stride) as *mut u8, tiles.data[reg][row].as_mut_ptr());
                // SAFETY: the instruction's operand has the rows.
                unsafe {
                    let (from, to) = if prefix == 3 { (memory, tile) } else { (tile, memory) };
                    std::ptr::copy_nonoverlapping(from, to, bytes);
                }
            }
            length
        }
        // tdpbf16ps
        (0x5C, 2, 3) => {
            multiply(tiles, reg, rm, vvvv as usize);
            5
        }
        _ => return None,
    };
    tiles.executed += 1;
    Some(length)
}

/// `tdpbf16ps sums, left, right`
fn multiply(tiles: &mut Tiles, sums: usize, left: usize, right: usize) {
    assert!(tiles.configured && sums != left && sums != right && left != right);
    assert_eq!(tiles.rows[left], tiles.rows[sums]);
    assert_eq!(tiles.row_bytes[left] / 4, tiles.rows[right]);
    assert_eq!(tiles.row_bytes[right], tiles.row_bytes[sums]);
    let half = |row: &[u8; 64], i: usize| {
        let bits = u16::from_le_bytes([row[2 * i], row[2 * i + 1]]);
        let zeroed = if bits & 0x7F80 == 0 { bits & 0x8000 } else { bits };
        f32::from_bits(u32::from(zeroed) << 16)
    };
    for m in 0..tiles.rows[sums] {
        for n in 0..tiles.row_bytes[sums] / 4 {
            let mut chains = [0f32; 2];
            for k in 0..tiles.row_bytes[left] / 4 {
                for (odd, chain) in chains.iter_mut().enumerate() {
                    let (a, b) = (half(&tiles.data[left][m], 2 * k + odd), half(&tiles.data[right][k], 2 * n + odd));
                    *chain = fma_flushed(a, b, *chain);
                }
            }
            let place = &mut tiles.data[sums][m][4 * n..4 * n + 4];
            let previous = f32::from_le_bytes([place[0], place[1], place[2], place[3]]);
            place.copy_from_slice(&add_flushed(previous, add_flushed(chains[0], chains[1])).to_le_bytes());
        }
    }
    // Rows that are not configured are zero.
    for row in tiles.rows[sums]..16 {
        tiles.data[sums][row] = [0; 64];
    }
}
