//! The simulated disk as the store sees it: the traits of `folddb_host`.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use folddb_host::files::FileLock;
use folddb_host::{AppendFile, AppendMode, AppendSync, Chance, Clock, Files, LockMode, ReadFile, WriteFile};

use super::SimDisk;
use super::machine::{File, FileId, Lock, Machine, NameChange, Node, name_of, no_space};
use crate::faulty_files::Call;

impl SimDisk {
    /// Makes a call: it is counted, judged, carried out and written into the diary.
    fn call<T>(
        &self,
        call: Call,
        path: &Path,
        extent: (u64, &[u8]),
        carry_out: impl FnOnce(&mut Machine) -> io::Result<T>,
    ) -> io::Result<T> {
        let machine = &mut *self.machine.lock();
        let outcome = match machine.begin(call, path) {
            Ok(()) => carry_out(machine),
            Err(failure) => Err(failure.error),
        };
        machine.note_call(call, path, extent, &outcome);
        outcome
    }
}

impl Files for SimDisk {
    fn create_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(Call::CreateDir, dir, (0, &[]), |machine| {
            let id = machine.next_id();
            machine.put_new(dir, Node::Dir(id))?;
            machine.dirs.insert(id, Default::default());
            Ok(())
        })
    }

    fn list(&self, dir: &Path) -> io::Result<Vec<String>> {
        self.call(Call::List, dir, (0, &[]), |machine| Ok(machine.dir(dir)?.now.keys().cloned().collect()))
    }

    fn len_bytes(&self, path: &Path) -> io::Result<u64> {
        self.call(Call::Len, path, (0, &[]), |machine| {
            machine.file_id(path).and_then(|id| machine.file(id)).map(|file| file.now.len_bytes())
        })
    }

    fn create(&self, path: &Path) -> io::Result<Box<dyn WriteFile>> {
        let id =
            self.call(Call::Create, path, (0, &[]), |machine| machine.create_file(path, File::default()))?;
        Ok(Box::new(self.handle(id, path)))
    }

    fn create_append(
        &self,
        path: &Path,
        len_bytes: u64,
        mode: AppendMode,
    ) -> io::Result<Box<dyn AppendFile>> {
        let id = self.call(Call::CreateAppend, path, (0, &[]), |machine| {
            if machine.free_bytes() < len_bytes {
                return Err(no_space());
            }
            let is_mapped = mode != AppendMode::Written;
            let mut file = File { is_mapped, reserved_bytes: len_bytes, ..File::default() };
            file.now.set_len(len_bytes);
            machine.create_file(path, file)
        })?;
        Ok(Box::new(self.handle(id, path)))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadFile>> {
        let id = self.call(Call::Open, path, (0, &[]), |machine| machine.file_id(path))?;
        Ok(Arc::new(self.handle(id, path)))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Rename, from, (0, &[]), |machine| {
            let node = machine.node(from)?;
            let (old_name, new_name) = (name_of(from), name_of(to));
            if from.parent() == to.parent() {
                machine.parent_mut(from)?.change(NameChange::Rename(old_name, new_name, node));
            } else {
                machine.parent_mut(to)?.change(NameChange::Put(new_name, node));
                machine.parent_mut(from)?.change(NameChange::Remove(old_name));
            }
            Ok(())
        })
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.call(Call::Remove, path, (0, &[]), |machine| {
            machine.file_id(path)?;
            machine.parent_mut(path)?.change(NameChange::Remove(name_of(path)));
            Ok(())
        })
    }

    fn cut(&self, path: &Path, len_bytes: u64) -> io::Result<()> {
        self.call(Call::Cut, path, (len_bytes, &[]), |machine| {
            let id = machine.file_id(path)?;
            machine.file_mut(id)?.cut(len_bytes);
            if name_of(path).ends_with(".values") {
                machine.file_mut(id)?.given_up = Some(len_bytes);
            }
            Ok(())
        })
    }

    fn write_over(&self, path: &Path, offset: u64, bytes: &[u8]) -> io::Result<()> {
        let id = self.machine.lock().file_id(path)?;
        Handle { end: offset, ..self.handle(id, path) }.put(Call::WriteOver, bytes)
    }

    fn sync_file(&self, path: &Path) -> io::Result<()> {
        let id = self.machine.lock().file_id(path)?;
        self.handle(id, path).sync_as(Call::WriteSync)
    }

    fn remove_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(Call::Remove, dir, (0, &[]), |machine| {
            if !machine.dir(dir)?.now.is_empty() {
                return Err(io::ErrorKind::DirectoryNotEmpty.into());
            }
            machine.parent_mut(dir)?.change(NameChange::Remove(name_of(dir)));
            Ok(())
        })
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        self.call(Call::Link, from, (0, &[]), |machine| {
            let id = machine.file_id(from)?;
            machine.put_new(to, Node::File(id))
        })
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        self.call(Call::SyncDir, dir, (0, &[]), |machine| {
            machine.dir_mut(dir)?.sync();
            Ok(())
        })
    }

    fn lock(&self, path: &Path, mode: LockMode) -> io::Result<Box<dyn FileLock>> {
        let id = self.call(Call::Lock, path, (0, &[]), |machine| {
            let id = match machine.file_id(path) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    machine.create_file(path, File::default())?
                }
                found => found?,
            };
            let lock = machine.locks.entry(id).or_default();
            let wants_all = mode == LockMode::Exclusive;
            if lock.is_exclusive || (wants_all && lock.sharers > 0) {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            if wants_all {
                lock.is_exclusive = true
            } else {
                lock.sharers += 1
            }
            Ok(id)
        })?;
        Ok(Box::new(Held { disk: self.clone(), id, mode }))
    }

    fn space_free_bytes(&self, dir: &Path) -> io::Result<u64> {
        self.call(Call::SpaceFree, dir, (0, &[]), |machine| Ok(machine.free_bytes()))
    }
}

impl Clock for SimDisk {
    fn monotonic(&self) -> Duration {
        Duration::from_nanos(self.machine.lock().clock_ns)
    }

    fn unix_seconds(&self) -> u64 {
        let machine = self.machine.lock();
        machine.wall_s + machine.clock_ns / 1_000_000_000
    }
}

impl Chance for SimDisk {
    fn next_u64(&self) -> u64 {
        self.machine.lock().chance.next_u64()
    }
}

/// A lock that a process holds.
struct Held {
    disk: SimDisk,
    id: FileId,
    mode: LockMode,
}

impl FileLock for Held {}

impl Drop for Held {
    fn drop(&mut self) {
        let mut machine = self.disk.machine.lock();
        let lock: &mut Lock = machine.locks.entry(self.id).or_default();
        match self.mode {
            LockMode::Exclusive => lock.is_exclusive = false,
            LockMode::Shared => lock.sharers = lock.sharers.saturating_sub(1),
        }
    }
}

/// An open file of any kind.
#[derive(Clone)]
struct Handle {
    disk: SimDisk,
    id: FileId,
    path: PathBuf,
    end: u64,
}

impl SimDisk {
    fn handle(&self, id: FileId, path: &Path) -> Handle {
        Handle { disk: self.clone(), id, path: path.to_owned(), end: 0 }
    }
}

impl Handle {
    /// Appends: all of it, or as much as fits, or the first half where the call is made to fail so.
    fn put(&mut self, call: Call, bytes: &[u8]) -> io::Result<()> {
        let machine = &mut *self.disk.machine.lock();
        let judged = machine.begin(call, &self.path);
        let fits = machine.fitting_bytes(self.id, self.end, bytes.len() as u64) as usize;
        let (take, outcome) = match judged {
            Err(failure) if failure.half => (fits.min(bytes.len() / 2), Err(failure.error)),
            Err(failure) => (0, Err(failure.error)),
            Ok(()) if fits < bytes.len() => (fits, Err(no_space())),
            Ok(()) => (bytes.len(), Ok(())),
        };
        machine.file_mut(self.id)?.write(self.end, &bytes[..take]);
        machine.note_call(call, &self.path, (self.end, bytes), &outcome);
        // A failed append has no effect, though the file may have some of its bytes.
        if outcome.is_ok() || call == Call::Write {
            self.end += take as u64;
        }
        outcome
    }

    fn sync_as(&self, call: Call) -> io::Result<()> {
        let machine = &mut *self.disk.machine.lock();
        let judged = machine.begin(call, &self.path);
        let was_dead = machine.is_dead;
        let mut luck = machine.luck.clone();
        let file = machine.file_mut(self.id)?;
        let outcome = match judged {
            Ok(()) => {
                file.sync();
                Ok(())
            }
            Err(failure) => {
                if !was_dead {
                    file.sync_badly(&mut luck);
                    machine.has_lost = true;
                }
                Err(failure.error)
            }
        };
        machine.luck = luck;
        machine.note_call(call, &self.path, (0, &[]), &outcome);
        outcome
    }
}

impl ReadFile for Handle {
    fn read_exact_at(&self, offset: u64, buf: &mut [u8]) -> io::Result<()> {
        let machine = &mut *self.disk.machine.lock();
        let outcome = match machine.begin(Call::Read, &self.path) {
            Ok(()) => machine.file(self.id).and_then(|file| file.read(offset, buf)),
            Err(failure) => Err(failure.error),
        };
        machine.note_call(Call::Read, &self.path, (offset, buf), &outcome);
        outcome
    }

    fn len_bytes(&self) -> io::Result<u64> {
        self.disk.call(Call::Len, &self.path, (0, &[]), |machine| Ok(machine.file(self.id)?.now.len_bytes()))
    }

    fn will_need(&self, _offset: u64, _len_bytes: u64) {}

    fn wont_need(&self, _offset: u64, _len_bytes: u64) {}
}

impl WriteFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.put(Call::Write, bytes)
    }

    fn start_writeback(&mut self) {}

    fn sync(&mut self) -> io::Result<()> {
        self.sync_as(Call::WriteSync)
    }
}

impl AppendFile for Handle {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let len_bytes = self.disk.machine.lock().file(self.id)?.now.len_bytes();
        if bytes.len() as u64 > len_bytes.saturating_sub(self.end) {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.put(Call::Append, bytes)
    }

    fn end(&self) -> u64 {
        self.end
    }

    fn syncer(&self) -> Arc<dyn AppendSync> {
        Arc::new(self.clone())
    }
}

impl AppendSync for Handle {
    fn sync(&self) -> io::Result<()> {
        self.sync_as(Call::AppendSync)
    }

    fn prepare(&self) -> io::Result<()> {
        self.disk.call(Call::Prepare, &self.path, (0, &[]), |_| Ok(()))
    }
}
