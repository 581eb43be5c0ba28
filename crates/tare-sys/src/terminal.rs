//! Pseudo terminals.

use std::fs::File;
use std::io;
use std::os::fd::FromRawFd;

/// A terminal of nobody's.
#[derive(Debug)]
pub struct Terminal {
    /// Where what is written to it can be read; an error once nobody has the other end any more.
    pub ours: File,
    /// What a program takes for a terminal.
    pub program: File,
}

impl Terminal {
    /// A new one, of 80 columns and 24 lines.
    ///
    /// # Errors
    /// Where there are no more of them, or `/dev/ptmx` is not there.
    pub fn open() -> io::Result<Terminal> {
        const FLAGS: libc::c_int = libc::O_RDWR | libc::O_NOCTTY | libc::O_CLOEXEC;
        // SAFETY: plain numbers.
        let ours = own(unsafe { libc::posix_openpt(FLAGS) })?;
        let fd = std::os::fd::AsRawFd::as_raw_fd(&ours);
        let unlocked: libc::c_int = 0;
        // SAFETY: the descriptor is ours; the kernel reads one `int` that lives through the call.
        own_rc(unsafe { libc::ioctl(fd, libc::TIOCSPTLCK, &unlocked) })?;
        // SAFETY: plain numbers (Linux 4.13); opens the other end without looking it up by name.
        let program = own(unsafe { libc::ioctl(fd, libc::TIOCGPTPEER, FLAGS) })?;
        let size = libc::winsize { ws_row: 24, ws_col: 80, ws_xpixel: 0, ws_ypixel: 0 };
        // SAFETY: the kernel reads the structure, which lives through the call.
        own_rc(unsafe { libc::ioctl(fd, libc::TIOCSWINSZ, &size) })?;
        Ok(Terminal { ours, program })
    }
}

fn own(fd: libc::c_int) -> io::Result<File> {
    own_rc(fd)?;
    // SAFETY: `fd` was just opened and nobody else has it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

fn own_rc(rc: libc::c_int) -> io::Result<()> {
    if rc < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
