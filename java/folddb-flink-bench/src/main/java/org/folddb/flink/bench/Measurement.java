package org.folddb.flink.bench;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.core.memory.ManagedMemoryUseCase;
import org.apache.flink.runtime.operators.testutils.MockEnvironment;
import org.apache.flink.runtime.operators.testutils.MockEnvironmentBuilder;
import org.apache.flink.streaming.util.KeyedOneInputStreamOperatorTestHarness;

/** One run of a load over one backend in this process, and all that was seen of it. */
final class Measurement {
    private static final int KEY_GROUPS = 128;

    private final Load load;
    private final Backend backend;
    private final long memoryBytes;
    private final int checkpoints;
    private final Path state;
    private final Path target;

    Measurement(Load load, Backend backend, long memoryBytes, int checkpoints, Path directory)
            throws IOException {
        this.load = load;
        this.backend = backend;
        this.memoryBytes = memoryBytes;
        this.checkpoints = checkpoints;
        state = Files.createDirectories(directory.toAbsolutePath().resolve("state"));
        target = Files.createDirectories(directory.toAbsolutePath().resolve("checkpoints"));
    }

    /** Runs it; the figures by name. */
    @SuppressWarnings("try") // that closing may be interrupted
    Map<String, Object> run() throws Exception {
        Results.clear();
        try (MockEnvironment environment = environment()) {
            KeyedOneInputStreamOperatorTestHarness<Long, Tuple2<Long, Long>, Void> harness =
                    new KeyedOneInputStreamOperatorTestHarness<>(
                            Operators.of(load, backend == Backend.FOLDDB_NATIVE),
                            Operators.KEY,
                            Types.LONG,
                            environment);
            // As a job does for the only operator of a slot.
            harness.getStreamConfig()
                    .setManagedMemoryFractionOperatorOfUseCase(ManagedMemoryUseCase.STATE_BACKEND, 1.0);
            harness.getStreamConfig().setStateBackendUsesManagedMemory(backend != Backend.HEAP);
            harness.setStateBackend(backend.open(state));
            harness.open();
            Checkpoints taken = new Checkpoints(harness, target, state);
            try (harness) {
                return measured(harness, taken);
            } finally {
                taken.stop();
            }
        }
    }

    private MockEnvironment environment() {
        return new MockEnvironmentBuilder()
                .setManagedMemorySize(memoryBytes)
                .setMaxParallelism(KEY_GROUPS)
                .setParallelism(1)
                .setSubtaskIndex(0)
                .build();
    }

    private Map<String, Object> measured(
            KeyedOneInputStreamOperatorTestHarness<Long, Tuple2<Long, Long>, Void> harness,
            Checkpoints taken)
            throws Exception {
        double loadAverage = Figures.loadAverage();
        Meter meter = new Meter(harness, taken, Math.max(1, load.records() / checkpoints));
        boolean isPeakOfRun = Figures.resetPeak();
        long storage = Figures.storageBytesWritten();
        long written = Figures.callBytesWritten();
        long cpu = Figures.cpuNanos();
        long start = System.nanoTime();
        load.workload().run(load, meter);
        double seconds = (System.nanoTime() - start) / 1e9;
        taken.complete();
        double cpuMicros = (Figures.cpuNanos() - cpu) / 1e3;
        Map<String, Object> figures = new LinkedHashMap<>();
        figures.put("backend", backend.title());
        figures.put("workload", load.workload().title());
        figures.put("keys", load.keys());
        figures.put("per_key", load.perKey());
        figures.put("windows", load.windows());
        figures.put("memory_bytes", memoryBytes);
        figures.put("records", meter.records());
        figures.put("seconds", seconds);
        figures.put("records_per_s", meter.records() / seconds);
        figures.put("cpu_us_per_record", cpuMicros / meter.records());
        putLatencies(figures, meter);
        long resident = Figures.residentPeakBytes();
        figures.put("rss_peak_bytes", resident);
        figures.put("rss_beside_heap_bytes", Math.max(0, resident - Runtime.getRuntime().maxMemory()));
        figures.put("rss_peak_is_of_run", isPeakOfRun);
        figures.put("storage_bytes_written", Figures.storageBytesWritten() - storage);
        figures.put("call_bytes_written", Figures.callBytesWritten() - written);
        figures.put("disk_end_bytes", Figures.diskBytes(state));
        figures.put("disk_peak_bytes", taken.diskPeak());
        putCheckpoints(figures, taken);
        figures.put("load_average", loadAverage);
        figures.put("results", Results.count());
        figures.put("checksum", Results.checksum());
        return figures;
    }

    private static void putLatencies(Map<String, Object> figures, Meter meter) {
        figures.put("call_p50_us", meter.calls.micros(0.5));
        figures.put("call_p99_us", meter.calls.micros(0.99));
        figures.put("call_p999_us", meter.calls.micros(0.999));
        figures.put("call_max_us", meter.calls.longestMicros());
        figures.put("watermark_s", meter.watermarkSeconds());
        figures.put("watermark_max_us", meter.watermarks.longestMicros());
    }

    private static void putCheckpoints(Map<String, Object> figures, Checkpoints taken) {
        long bytes = 0;
        double[] synchronous = new double[taken.costs().size()];
        double[] total = new double[synchronous.length];
        for (int at = 0; at < total.length; at++) {
            Checkpoints.Cost cost = taken.costs().get(at);
            synchronous[at] = cost.synchronous() / 1e6;
            total[at] = cost.total() / 1e6;
            bytes += cost.bytes();
        }
        figures.put("checkpoints", total.length);
        figures.put("checkpoint_sync_ms", synchronous);
        figures.put("checkpoint_total_ms", total);
        figures.put("checkpoint_bytes", bytes);
    }
}
