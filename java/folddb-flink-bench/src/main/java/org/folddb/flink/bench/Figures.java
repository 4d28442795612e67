package org.folddb.flink.bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.HashSet;
import java.util.Set;
import java.util.stream.Stream;

/** What the system says of this process: time of processors, memory, bytes. Linux only. */
final class Figures {
    private static final OperatingSystemMXBean SYSTEM =
            (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

    private Figures() {}

    /** Of all threads, user and system. */
    static long cpuNanos() {
        return SYSTEM.getProcessCpuTime();
    }

    /** How many processes of the machine ran or waited, in the last minute. */
    static double loadAverage() {
        return SYSTEM.getSystemLoadAverage();
    }

    /** A line of {@code /proc/self/FILE} that begins so; 0 where there is none. */
    private static long line(String file, String name) throws IOException {
        for (String line : Files.readAllLines(Path.of("/proc/self", file))) {
            if (line.startsWith(name + ":")) {
                return Long.parseLong(line.substring(name.length() + 1).replaceAll("[^0-9]", ""));
            }
        }
        return 0;
    }

    static long residentPeakBytes() throws IOException {
        return line("status", "VmHWM") * 1024;
    }

    /** Bytes of pages that this process made dirty for the first time since they were clean. */
    static long storageBytesWritten() throws IOException {
        return line("io", "write_bytes");
    }

    /** Bytes given to calls that write. */
    static long callBytesWritten() throws IOException {
        return line("io", "wchar");
    }

    /** Lets the peak begin anew; says whether that is allowed here. */
    static boolean resetPeak() {
        try {
            Files.writeString(Path.of("/proc/self/clear_refs"), "5");
            return true;
        } catch (IOException refused) {
            return false;
        }
    }

    /** Bytes of all files below a directory, which may change meanwhile; links count once. */
    static long diskBytes(Path directory) throws IOException {
        Set<Object> seen = new HashSet<>();
        try (Stream<Path> files = Files.walk(directory)) {
            return files.mapToLong(file -> newBytesOf(file, seen)).sum();
        } catch (UncheckedIOException vanished) {
            return diskBytes(directory);
        }
    }

    private static long newBytesOf(Path file, Set<Object> seen) {
        try {
            BasicFileAttributes of = Files.readAttributes(file, BasicFileAttributes.class);
            return of.isRegularFile() && seen.add(of.fileKey()) ? of.size() : 0;
        } catch (NoSuchFileException vanished) {
            return 0;
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
