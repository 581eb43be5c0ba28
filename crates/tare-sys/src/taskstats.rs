//! What the kernel counted of each task when it ends (`TASKSTATS`, by generic netlink): its run to the nanosecond, and whose child it
//! was. Nothing is asked while tasks run, and nobody is woken: what ended is kept in the socket's buffer until it is read.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// One message holds one task, and at the end of a process its sum as well.
const MESSAGE_BYTES_MAX: usize = 8 << 10;
/// Room in the socket's buffer, if that is allowed: some 10,000 ends.
const BUFFER_BYTES: libc::c_int = 16 << 20;

const GENL_ID_CTRL: u16 = 16;
const CTRL_CMD_GETFAMILY: u8 = 3;
const CTRL_ATTR_FAMILY_ID: u16 = 1;
const CTRL_ATTR_FAMILY_NAME: u16 = 2;
const TASKSTATS_CMD_GET: u8 = 1;
const REGISTER_CPUMASK: u16 = 3;
const TYPE_PID: u16 = 1;
const TYPE_STATS: u16 = 3;
const TYPE_AGGR_PID: u16 = 4;
/// `nlmsghdr`, and behind it `genlmsghdr`.
const HEADER_BYTES: usize = 16;
const GENERIC_BYTES: usize = 4;

/// A task that ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The thread.
    pub tid: u32,
    /// Its process.
    pub pid: u32,
    /// The process that had it as a child then.
    pub parent: u32,
    /// Its name, ended by a 0.
    pub name: [u8; 16],
    /// Time on a CPU.
    pub run_ns: u64,
    /// Time runnable without one.
    pub wait_ns: u64,
    /// From its start to its end.
    pub life_ns: u64,
    /// User and kernel part of its run, as ticks found it.
    pub user_ns: u64,
    /// See `user_ns`.
    pub system_ns: u64,
}

/// A socket to which the kernel reports every task that ends.
#[derive(Debug)]
pub struct Exits(OwnedFd);

impl Exits {
    /// From now on the kernel reports to it tasks that end on these CPUs, as in `0-3,6`.
    ///
    /// # Errors
    /// As the kernel says: it reports to root in the machine's own namespaces, to nobody else.
    pub fn open(cpus: &str) -> io::Result<Exits> {
        let kind = libc::SOCK_RAW | libc::SOCK_CLOEXEC;
        // SAFETY: no pointers are passed.
        let fd = unsafe { libc::socket(libc::AF_NETLINK, kind, libc::NETLINK_GENERIC) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: socket just returned this descriptor and nobody else holds it.
        let exits = Exits(unsafe { OwnedFd::from_raw_fd(fd) });
        exits.set_buffer();
        let family = exits.family()?;
        let mut register = Vec::new();
        attribute(&mut register, REGISTER_CPUMASK, &[cpus.as_bytes(), &[0]].concat());
        exits.send(family, TASKSTATS_CMD_GET, &register)?;
        exits.acknowledged()?;
        Ok(exits)
    }

    /// The next message, into `buffer`; `None` where there is none yet.
    ///
    /// # Errors
    /// `ENOBUFS` where some were lost for want of room.
    pub fn read<'b>(&self, buffer: &'b mut [u8]) -> io::Result<Option<&'b [u8]>> {
        // SAFETY: the pointer and the length are those of `buffer`, which nobody else has.
        let got = unsafe {
            let to = buffer.as_mut_ptr().cast();
            libc::recv(self.0.as_raw_fd(), to, buffer.len(), libc::MSG_DONTWAIT)
        };
        match usize::try_from(got) {
            Ok(got) => Ok(Some(&buffer[..got.min(buffer.len())])),
            Err(_) => match io::Error::last_os_error() {
                error if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
                error => Err(error),
            },
        }
    }

    /// What a buffer for [`read`](Exits::read) must hold.
    pub fn buffer() -> Vec<u8> {
        vec![0; MESSAGE_BYTES_MAX]
    }

    /// Root may have more than the limit; with less, more is lost.
    fn set_buffer(&self) {
        let (bytes, length) = (BUFFER_BYTES, size_of::<libc::c_int>() as libc::socklen_t);
        for option in [libc::SO_RCVBUF, libc::SO_RCVBUFFORCE] {
            // SAFETY: `bytes` lives through the call, and `length` is its size.
            unsafe {
                let value = (&raw const bytes).cast();
                libc::setsockopt(self.0.as_raw_fd(), libc::SOL_SOCKET, option, value, length)
            };
        }
    }

    fn family(&self) -> io::Result<u16> {
        let mut name = Vec::new();
        attribute(&mut name, CTRL_ATTR_FAMILY_NAME, b"TASKSTATS\0");
        self.send(GENL_ID_CTRL, CTRL_CMD_GETFAMILY, &name)?;
        let mut buffer = Exits::buffer();
        let answer = self.read(&mut buffer)?.unwrap_or_default();
        if let Some(error) = refusal(answer) {
            return Err(error);
        }
        let content = answer.get(HEADER_BYTES + GENERIC_BYTES..).unwrap_or_default();
        let id = attributes(content).find(|(kind, _)| *kind == CTRL_ATTR_FAMILY_ID);
        let id = id.and_then(|(_, id)| number(id, 0).map(u16::from_ne_bytes));
        self.acknowledged()?;
        id.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    fn send(&self, family: u16, command: u8, attributes: &[u8]) -> io::Result<()> {
        let length = HEADER_BYTES + GENERIC_BYTES + attributes.len();
        let flags = (libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let mut bytes = vec![0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&(length as u32).to_ne_bytes());
        bytes[4..6].copy_from_slice(&family.to_ne_bytes());
        bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
        bytes.extend([command, 1, 0, 0]);
        bytes.extend(attributes);
        // SAFETY: the pointer and the length are those of `bytes`, which lives through the call.
        let sent = unsafe { libc::send(self.0.as_raw_fd(), bytes.as_ptr().cast(), bytes.len(), 0) };
        if sent < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// The kernel answers within the call that asked.
    fn acknowledged(&self) -> io::Result<()> {
        let mut buffer = Exits::buffer();
        match self.read(&mut buffer)? {
            Some(answer) => refusal(answer).map_or(Ok(()), Err),
            None => Err(io::ErrorKind::UnexpectedEof.into()),
        }
    }
}

/// The error that a message tells; the code 0 is none.
fn refusal(message: &[u8]) -> Option<io::Error> {
    let kind = number(message, 4).map(u16::from_ne_bytes)?;
    let code = number(message, HEADER_BYTES).map(i32::from_ne_bytes)?;
    (kind == libc::NLMSG_ERROR as u16 && code != 0).then(|| io::Error::from_raw_os_error(-code))
}

/// The task of a message; `None` for the sum of a process, and for a layout that is not known.
pub fn exit(message: &[u8]) -> Option<Exit> {
    let length = number(message, 0).map(u32::from_ne_bytes)? as usize;
    let content = message.get(HEADER_BYTES + GENERIC_BYTES..length)?;
    let (_, of_task) = attributes(content).find(|(kind, _)| *kind == TYPE_AGGR_PID)?;
    let of = |wanted| attributes(of_task).find(|(kind, _)| *kind == wanted).map(|(_, content)| content);
    let (tid, stats) = (number(of(TYPE_PID)?, 0).map(u32::from_ne_bytes)?, of(TYPE_STATS)?);
    let short = |at| number(stats, at).map(u32::from_ne_bytes);
    let long = |at| number(stats, at).map(u64::from_ne_bytes);
    // Offsets in `struct taskstats`, which grows at its end; where somebody put a field between, the number says so.
    if short(128)? != tid {
        return None;
    }
    Some(Exit {
        tid,
        // Before Linux 5.20 the process of a thread is not reported; those of one thread are most.
        pid: short(368).filter(|pid| *pid != 0).unwrap_or(tid),
        parent: short(132)?,
        name: number(stats, 80)?,
        run_ns: long(72)?,
        wait_ns: long(24)?,
        life_ns: long(144)?.saturating_mul(1000),
        user_ns: long(152)?.saturating_mul(1000),
        system_ns: long(160)?.saturating_mul(1000),
    })
}

fn attribute(bytes: &mut Vec<u8>, kind: u16, content: &[u8]) {
    bytes.extend(((4 + content.len()) as u16).to_ne_bytes());
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(content);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// Type and content of each attribute.
fn attributes(bytes: &[u8]) -> impl Iterator<Item = (u16, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let length = usize::from(u16::from_ne_bytes(number(rest, 0)?));
        let kind = u16::from_ne_bytes(number(rest, 2)?);
        let content = rest.get(4..length)?;
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, content))
    })
}

fn number<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::process::Command;
    use std::time::{Duration, Instant};

    #[test]
    fn a_child_that_ended_is_reported_with_its_parent_or_nothing_may_be_reported() {
        let cpus = std::fs::read_to_string("/sys/devices/system/cpu/possible").unwrap_or_default();
        let Ok(exits) = Exits::open(cpus.trim()) else { return };
        let mut child = Command::new("sh").args(["-c", "true"]).spawn().unwrap();
        let pid = child.id();
        assert!(child.wait().unwrap().success());
        let (mut buffer, until) = (Exits::buffer(), Instant::now() + Duration::from_secs(5));
        while Instant::now() < until {
            let Ok(Some(message)) = exits.read(&mut buffer) else { continue };
            if let Some(exit) = exit(message).filter(|exit| exit.pid == pid) {
                assert_eq!((exit.tid, exit.parent), (pid, std::process::id()));
                assert!(exit.name.starts_with(b"sh\0") && exit.life_ns >= exit.run_ns);
                return;
            }
        }
        panic!("the child's end was not reported");
    }

    proptest! {
        #[test]
        fn garbage_is_no_task(bytes in prop::collection::vec(any::<u8>(), 0..700)) {
            let mut framed = bytes.clone();
            if framed.len() >= 24 {
                let length = framed.len() as u32;
                framed[..4].copy_from_slice(&length.to_ne_bytes());
                framed[22..24].copy_from_slice(&TYPE_AGGR_PID.to_ne_bytes());
            }
            exit(&bytes);
            exit(&framed);
            refusal(&bytes);
        }
    }
}
