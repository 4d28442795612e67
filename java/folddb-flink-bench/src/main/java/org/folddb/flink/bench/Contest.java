package org.folddb.flink.bench;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Comparator;
import java.util.HashMap;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.stream.Stream;

/**
 * Runs loads over backends, each run in a process of its own. Backends take turns, and another one
 * begins each round. A run whose results are not those of the others fails all.
 */
final class Contest {
    static final Set<String> KNOWN =
            new LinkedHashSet<>(
                    List.of(
                            "workloads", "backends", "keys", "per-key", "windows", "rounds",
                            "memory-mb", "heap", "jvm", "checkpoints", "warm-up", "cluster",
                            "checkpoint-ms", "out", "dir"));

    /** What the contest itself looks after; the rest goes to the runs. */
    private static final Set<String> OWN =
            Set.of("workloads", "backends", "keys", "per-key", "rounds", "heap", "jvm", "out", "dir");

    private final Arguments arguments;
    private final Path out;
    private final Path directory;
    private final Map<String, String> checksums = new HashMap<>();
    private final List<Map<String, Object>> done = new ArrayList<>();

    Contest(Arguments arguments) {
        this.arguments = arguments;
        String target = System.getProperty("folddb.bench.target", ".");
        out = Path.of(arguments.text("out", target + "/results.jsonl"));
        directory = Path.of(arguments.text("dir", target + "/work"));
    }

    void run() throws Exception {
        String all =
                arguments.number("cluster", 0) > 0
                        ? "window-reduce,window-aggregate,sessions"
                        : "window-reduce,window-aggregate,window-list,value-rmw,map-join,sessions";
        for (String workload : arguments.list("workloads", all)) {
            for (String keys : arguments.list("keys", "1M")) {
                for (String perKey : arguments.list("per-key", "5")) {
                    rounds(Workload.named(workload), keys, perKey);
                }
            }
        }
        System.out.print("\n" + Table.of(done));
    }

    private void rounds(Workload workload, String keys, String perKey) throws Exception {
        List<Backend> backends = new ArrayList<>();
        for (String name :
                arguments.list(
                        "backends",
                        "folddb,folddb-native,rocksdb,rocksdb-heap-timers,rocksdb-tuned,heap")) {
            if (Backend.named(name).runs(workload)) {
                backends.add(Backend.named(name));
            }
        }
        for (long round = 0; round < arguments.number("rounds", 3); round++) {
            for (Backend backend : backends) {
                keep(child(workload, backend, keys, perKey));
            }
            Collections.rotate(backends, -1);
        }
    }

    /** Writes the line of a run down, if its results are right. */
    private void keep(String line) throws IOException {
        Map<String, Object> figures = Json.parsed(line);
        String load = Table.loadOf(figures);
        String checksum = figures.get("results") + " results, " + figures.get("checksum");
        String expected = checksums.putIfAbsent(load, checksum);
        if (expected != null && !expected.equals(checksum)) {
            throw new IllegalStateException(
                    load + ": " + figures.get("backend") + " has " + checksum + ", others " + expected);
        }
        done.add(figures);
        Files.writeString(out, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        System.out.println(line);
    }

    /** The line of one run. */
    private String child(Workload workload, Backend backend, String keys, String perKey)
            throws Exception {
        Path own = Files.createTempDirectory(Files.createDirectories(directory), "run");
        List<String> command = jvm(own);
        command.addAll(List.of(Bench.class.getName(), "run"));
        command.addAll(List.of("--workload", workload.title(), "--backend", backend.title()));
        command.addAll(List.of("--keys", keys, "--per-key", perKey, "--dir", own.toString()));
        command.addAll(arguments.words(OWN));
        Process process =
                new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        try {
            String line = lastLine(process);
            if (process.waitFor() != 0) {
                throw new IllegalStateException(workload.title() + " over " + backend.title() + " failed");
            }
            return line;
        } finally {
            process.destroyForcibly();
            delete(own);
        }
    }

    /** The heap is all there from the start, so that what is beside it can be told. */
    private List<String> jvm(Path own) {
        String heap = arguments.text("heap", "2g");
        List<String> command = new ArrayList<>();
        command.add(Path.of(System.getProperty("java.home"), "bin", "java").toString());
        if (!arguments.text("jvm", "").isEmpty()) {
            command.addAll(List.of(arguments.text("jvm", "").split(" +")));
        }
        command.addAll(
                List.of(
                        "-Xms" + heap,
                        "-Xmx" + heap,
                        "-XX:+AlwaysPreTouch",
                        "-XX:+UseG1GC",
                        "-Djava.io.tmpdir=" + own.toAbsolutePath(),
                        "--add-opens=java.base/java.lang=ALL-UNNAMED",
                        "--add-opens=java.base/java.util=ALL-UNNAMED",
                        "--add-opens=java.base/java.util.concurrent=ALL-UNNAMED",
                        "-cp",
                        System.getProperty("java.class.path")));
        return command;
    }

    private static String lastLine(Process process) throws IOException {
        try (BufferedReader said = process.inputReader()) {
            String last = "";
            for (String line = said.readLine(); line != null; line = said.readLine()) {
                last = line;
            }
            return last;
        }
    }

    private static void delete(Path directory) throws IOException {
        try (Stream<Path> files = Files.walk(directory)) {
            files.sorted(Comparator.reverseOrder()).forEach(Contest::deleteOne);
        }
    }

    private static void deleteOne(Path file) {
        try {
            Files.deleteIfExists(file);
        } catch (IOException failure) {
            throw new UncheckedIOException(failure);
        }
    }
}
