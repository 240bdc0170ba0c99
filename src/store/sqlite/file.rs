//! Where the file may lie, and the look at it before the engine is asked.
//!
//! The engine's own locks and its shared memory hold within one kernel. On a file system that
//! other hosts write to as well, two replicas could both be granted one lease, so such a place
//! is refused whatever the server promises. FUSE is refused as a whole: what lies behind it
//! can't be told, and it is what host directories look like inside a virtual machine. Overlay
//! (a container's own layer) and tmpfs are of one kernel and taken.
//!
//! Must never: open the database file itself. Closing any descriptor of it drops all locks
//! that this process holds on it (POSIX advisory locks, sqlite.org/howtocorrupt.html §2.2).

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD, accessat, statfs};

use super::fault::Fault;

/// Output of jobs may hold secrets, so a new file is for its owner alone.
const NEW_FILE_MODE: u32 = 0o600;

/// File systems of other hosts, by their magic numbers (statfs(2), linux/magic.h).
const SHARED_FILE_SYSTEMS: [(u32, &str); 18] = [
    (0x0000_6969, "NFS"),
    (0x0000_517B, "SMB"),
    (0xFF53_4D42, "CIFS"),
    (0xFE53_4D42, "SMB2"),
    (0x0102_1997, "9P"),
    (0x6573_5546, "FUSE"),
    (0x00C3_6400, "Ceph"),
    (0x5346_414F, "AFS"),
    (0x6B41_4653, "AFS"),
    (0x7375_7245, "Coda"),
    (0x0000_564C, "NCP"),
    (0x7461_636F, "OCFS2"),
    (0x0116_1970, "GFS2"),
    (0x0BD0_0BD0, "Lustre"),
    (0x4750_4653, "GPFS"),
    (0x1983_0326, "BeeGFS"),
    (0x786F_4256, "VirtualBox shared folder"),
    (0xBACB_ACBC, "VMware shared folder"),
];

/// Which file it is, however it is called.
pub(super) type Identity = (u64, u64);

/// What a path leads to now; none where nothing is there.
pub(super) fn identity(path: &Path) -> Option<Identity> {
    let found = fs::metadata(path).ok()?;
    Some((found.dev(), found.ino()))
}

/// Sees that a database can be there, and makes an empty file where there is none.
pub(super) fn make_sure(path: &Path) -> Result<(), Fault> {
    let directory = path.parent().unwrap_or(Path::new("/"));
    check_directory(directory)?;
    match fs::metadata(path) {
        Ok(found) => check_file(path, &found)?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => create(path)?,
        Err(error) => return Err(no_access(path, &error)),
    }
    check_file_system(path)
}

fn check_directory(directory: &Path) -> Result<(), Fault> {
    let shown = directory.display();
    match fs::metadata(directory) {
        Ok(found) if found.is_dir() => {}
        Ok(_) => {
            return Err(Fault::refused(
                format!("{shown} is no directory"),
                "name another path",
            ));
        }
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Fault::refused(
                format!("the directory {shown} doesn't exist"),
                format!("`mkdir -p {shown}`, or name another path"),
            ));
        }
        Err(error) => return Err(no_access(directory, &error)),
    }
    // The engine makes two more files next to the database.
    check_access(directory, Access::WRITE_OK | Access::EXEC_OK)
}

fn check_file(path: &Path, found: &fs::Metadata) -> Result<(), Fault> {
    let shown = path.display();
    let kind = found.file_type();
    if kind.is_dir() {
        return Err(Fault::refused(
            format!("{shown} is a directory"),
            format!("name a file in it, such as sqlite:{shown}/soloist.db"),
        ));
    }
    if !kind.is_file() {
        let what = if kind.is_socket() {
            "a socket"
        } else {
            "a device or a pipe"
        };
        return Err(Fault::refused(
            format!("{shown} is {what}, not a file"),
            "name another path",
        ));
    }
    check_access(path, Access::READ_OK | Access::WRITE_OK)
}

/// Asks the kernel with the rights that an open(2) would have, not with those of the real user.
fn check_access(path: &Path, wanted: Access) -> Result<(), Fault> {
    accessat(CWD, path, wanted, AtFlags::EACCESS).map_err(|errno| no_access(path, &errno.into()))
}

fn create(path: &Path) -> Result<(), Fault> {
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(NEW_FILE_MODE)
        .open(path);
    match made {
        Ok(_) => Ok(()),
        // Another replica was first.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(no_access(path, &error)),
    }
}

fn check_file_system(path: &Path) -> Result<(), Fault> {
    let found = statfs(path).map_err(|errno| no_access(path, &errno.into()))?;
    // The kernel's type of the field differs with the architecture; the numbers have 32 bits.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::unnecessary_cast
    )]
    let magic = found.f_type as u32;
    match shared_file_system(magic) {
        None => Ok(()),
        Some(name) => Err(Fault::refused(
            format!(
                "{} lies on a file system that other hosts may write to ({name}), where file locks don't keep replicas apart",
                path.display()
            ),
            "name a path on a disk of this host, or use redis:// for replicas on several hosts",
        )),
    }
}

fn shared_file_system(magic: u32) -> Option<&'static str> {
    SHARED_FILE_SYSTEMS
        .iter()
        .find(|(number, _)| *number == magic)
        .map(|(_, name)| *name)
}

fn no_access(path: &Path, error: &io::Error) -> Fault {
    let shown = path.display();
    match error.kind() {
        io::ErrorKind::PermissionDenied => Fault::refused(
            format!("permission denied on {shown}"),
            format!(
                "`chmod u+rw` or `chown` {shown} for the user that soloist runs as, or name another path"
            ),
        ),
        io::ErrorKind::ReadOnlyFilesystem => Fault::refused(
            format!("{shown} lies on a read-only file system"),
            "name a path that can be written to (in a container: on a volume)",
        ),
        io::ErrorKind::StorageFull => Fault::refused("the disk is full", "free space"),
        io::ErrorKind::NotADirectory => Fault::refused(
            format!("a part of {shown} is no directory"),
            "name another path",
        ),
        _ => Fault::refused(format!("{shown}: {error}"), "name another path"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_systems_of_other_hosts_are_told_from_those_of_this_one() {
        for foreign in [0x6969, 0xFF53_4D42, 0xFE53_4D42, 0x0102_1997, 0x6573_5546] {
            assert!(shared_file_system(foreign).is_some(), "{foreign:#x}");
        }
        let (ext4, xfs, btrfs) = (0xEF53, 0x5846_5342, 0x9123_683E);
        let (tmpfs, overlay, zfs) = (0x0102_1994, 0x794C_7630, 0x2FC1_2FC1);
        for own in [ext4, xfs, btrfs, tmpfs, overlay, zfs] {
            assert_eq!(shared_file_system(own), None, "{own:#x}");
        }
    }
}
