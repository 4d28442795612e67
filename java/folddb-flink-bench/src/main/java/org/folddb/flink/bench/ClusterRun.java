package org.folddb.flink.bench;

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.Types;
import org.apache.flink.api.java.tuple.Tuple2;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.runtime.checkpoint.AbstractCheckpointStats;
import org.apache.flink.runtime.checkpoint.CheckpointStatsSnapshot;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;

/**
 * One run of a load in a cluster within this process: one task manager with some slots, a source in
 * each, which makes the records, and the operator in each, with its share of the keys; between them
 * records are serialized and exchanged. Checkpoints come by the clock.
 */
final class ClusterRun {
    /** Their results do not depend on the order in which the sources' records meet. */
    static final Set<Workload> WORKLOADS =
            Set.of(Workload.WINDOW_REDUCE, Workload.WINDOW_AGGREGATE, Workload.SESSIONS);

    private final Load load;
    private final Backend backend;
    private final long memoryBytes;
    private final int slots;
    private final long checkpointMillis;
    private final Path state;
    private final Path target;

    /** {@code memoryBytes} is that of each slot. */
    ClusterRun(
            Load load, Backend backend, long memoryBytes, int slots, long checkpointMillis, Path directory)
            throws Exception {
        if (!WORKLOADS.contains(load.workload())) {
            throw new IllegalArgumentException("in a cluster there are only " + WORKLOADS);
        }
        this.load = load;
        this.backend = backend;
        this.memoryBytes = memoryBytes;
        this.slots = slots;
        this.checkpointMillis = checkpointMillis;
        state = Files.createDirectories(directory.toAbsolutePath().resolve("state"));
        target = Files.createDirectories(directory.toAbsolutePath().resolve("checkpoints"));
    }

    @SuppressWarnings("try") // that closing may be interrupted
    Map<String, Object> run() throws Exception {
        Results.clear();
        Configuration configuration = configuration();
        MiniClusterConfiguration shape =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(configuration)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(slots)
                        .withRandomPorts()
                        .build();
        try (MiniCluster cluster = new MiniCluster(shape)) {
            cluster.start();
            return measured(cluster, graph(configuration));
        }
    }

    private Configuration configuration() {
        Configuration configuration = new Configuration();
        backend.choose(configuration, state);
        configuration.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        configuration.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, target.toUri().toString());
        configuration.set(
                CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(checkpointMillis));
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "none");
        configuration.set(
                TaskManagerOptions.MANAGED_MEMORY_SIZE, new MemorySize(slots * memoryBytes));
        return configuration;
    }

    private long recordsOfSource() {
        return load.records() / slots;
    }

    private JobGraph graph(Configuration configuration) throws Exception {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(slots, configuration);
        long each = recordsOfSource();
        Load of = load;
        // Each source has as many numbers, one after the other, over the same time.
        long time = of.workload().millis(of);
        env.fromSource(
                        new DataGeneratorSource<>(number -> number, each * slots, Types.LONG),
                        WatermarkStrategy.<Long>forMonotonousTimestamps()
                                .withTimestampAssigner((number, none) -> number % each * time / each),
                        "numbers")
                .map(number -> Tuple2.of(Workload.keyOf(number, of), Workload.valueOf(number)))
                .returns(Types.TUPLE(Types.LONG, Types.LONG))
                .keyBy(Operators.KEY)
                .transform(
                        of.workload().title(),
                        Types.VOID,
                        Operators.of(of, backend == Backend.FOLDDB_NATIVE));
        return env.getStreamGraph().getJobGraph();
    }

    private Map<String, Object> measured(MiniCluster cluster, JobGraph graph) throws Exception {
        double loadAverage = Figures.loadAverage();
        boolean isPeakOfRun = Figures.resetPeak();
        long storage = Figures.storageBytesWritten();
        long written = Figures.callBytesWritten();
        long cpu = Figures.cpuNanos();
        long start = System.nanoTime();
        cluster.executeJobBlocking(graph);
        double seconds = (System.nanoTime() - start) / 1e9;
        double cpuMicros = (Figures.cpuNanos() - cpu) / 1e3;
        long records = recordsOfSource() * slots;
        Map<String, Object> figures = new LinkedHashMap<>();
        figures.put("backend", backend.title());
        figures.put("workload", load.workload().title());
        figures.put("slots", slots);
        figures.put("keys", load.keys());
        figures.put("per_key", load.perKey());
        figures.put("windows", load.windows());
        figures.put("memory_bytes", memoryBytes);
        figures.put("records", records);
        figures.put("seconds", seconds);
        figures.put("records_per_s", records / seconds);
        figures.put("cpu_us_per_record", cpuMicros / records);
        long resident = Figures.residentPeakBytes();
        figures.put("rss_peak_bytes", resident);
        figures.put("rss_beside_heap_bytes", Math.max(0, resident - Runtime.getRuntime().maxMemory()));
        figures.put("rss_peak_is_of_run", isPeakOfRun);
        figures.put("storage_bytes_written", Figures.storageBytesWritten() - storage);
        figures.put("call_bytes_written", Figures.callBytesWritten() - written);
        putCheckpoints(figures, cluster, graph.getJobID());
        figures.put("load_average", loadAverage);
        figures.put("results", Results.count());
        figures.put("checksum", Results.checksum());
        return figures;
    }

    /** As Flink has counted them: those of the end of its history that are complete. */
    private static void putCheckpoints(Map<String, Object> figures, MiniCluster cluster, JobID job)
            throws Exception {
        CheckpointStatsSnapshot stats = cluster.getExecutionGraph(job).get().getCheckpointStatsSnapshot();
        List<AbstractCheckpointStats> complete =
                stats.getHistory().getCheckpoints().stream()
                        .filter(each -> each.getStatus().isCompleted())
                        .toList();
        figures.put("checkpoints", complete.size());
        figures.put(
                "checkpoint_total_ms",
                complete.stream().mapToDouble(AbstractCheckpointStats::getEndToEndDuration).toArray());
        figures.put(
                "checkpoint_bytes",
                complete.stream().mapToLong(AbstractCheckpointStats::getCheckpointedSize).sum());
    }
}
