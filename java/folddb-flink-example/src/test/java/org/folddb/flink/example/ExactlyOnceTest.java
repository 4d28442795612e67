package org.folddb.flink.example;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;

import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;
import java.util.concurrent.ExecutionException;
import java.util.function.Function;
import org.apache.flink.api.common.JobID;
import org.apache.flink.api.common.JobStatus;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.RestartStrategyOptions;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.configuration.StateRecoveryOptions;
import org.apache.flink.configuration.TaskManagerOptions;
import org.apache.flink.core.execution.RecoveryClaimMode;
import org.apache.flink.core.execution.SavepointFormatType;
import org.apache.flink.runtime.checkpoint.CheckpointStatsCounts;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.jobgraph.SavepointRestoreSettings;
import org.apache.flink.runtime.jobmaster.JobResult;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.folddb.flink.FoldAggregate;
import org.folddb.flink.FoldAggregates;
import org.folddb.flink.FoldDbOptions;
import org.folddb.flink.FoldDbStateBackendFactory;
import org.folddb.flink.FoldValue;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;

/**
 * The results of a job that fails again and again, and changes its parallelism in between, are those
 * of a plain computation. {@code
 * -Dfailures=100 -Dseed=7} are how often, and where; with an odd seed tasks are restored from what
 * has stayed on their machine, where they can be.
 */
class ExactlyOnceTest {
    private static final int FAILURES = Integer.getInteger("folddb.failures", 5);
    private static final int TASK_MANAGERS = 3;

    /** A savepoint after so many failures. */
    private static final int FAILURES_BETWEEN = 4;

    private static final long SEED = Long.getLong("folddb.seed", 1);

    @TempDir Path folder;

    private final Random random = new Random(SEED);
    private MiniCluster cluster;
    private JobID job;

    /** The numbers of task managers that run, of all that have been started. */
    private final List<Integer> alive = new ArrayList<>(List.of(0, 1, 2));

    private int started = TASK_MANAGERS;
    private int savepoints;
    private long restored;

    private Configuration configuration() {
        Configuration configuration = new Configuration();
        configuration.set(StateBackendOptions.STATE_BACKEND, FoldDbStateBackendFactory.class.getName());
        configuration.set(FoldDbOptions.LOCAL_DIRECTORY, folder.resolve("local").toString());
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        configuration.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(50));
        configuration.set(CheckpointingOptions.TOLERABLE_FAILURE_NUMBER, Integer.MAX_VALUE);
        configuration.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        configuration.set(
                CheckpointingOptions.CHECKPOINTS_DIRECTORY, folder.resolve("checkpoints").toUri().toString());
        configuration.set(CheckpointingOptions.FS_SMALL_FILE_THRESHOLD, MemorySize.ZERO);
        boolean isLocal = SEED % 2 != 0;
        configuration.set(CheckpointingOptions.LOCAL_BACKUP_ENABLED, isLocal);
        configuration.set(StateRecoveryOptions.LOCAL_RECOVERY, isLocal);
        configuration.set(RestartStrategyOptions.RESTART_STRATEGY, "fixed-delay");
        configuration.set(
                RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_ATTEMPTS, Integer.MAX_VALUE);
        configuration.set(
                RestartStrategyOptions.RESTART_STRATEGY_FIXED_DELAY_DELAY, Duration.ofMillis(10));
        configuration.set(TaskManagerOptions.MANAGED_MEMORY_SIZE, MemorySize.ofMebiBytes(64));
        return configuration;
    }

    @Test
    void failuresChangeNoResult() throws Exception {
        Configuration configuration = configuration();
        cluster =
                new MiniCluster(
                        new MiniClusterConfiguration.Builder()
                                .setConfiguration(configuration)
                                .setNumTaskManagers(TASK_MANAGERS)
                                .setNumSlotsPerTaskManager(1)
                                .withRandomPorts()
                                .build());
        cluster.start();
        try {
            start(configuration, 2, SavepointRestoreSettings.none());
            for (int failure = 0; failure < FAILURES; failure++) {
                FlightsJob.fastUntil = Flights.count() / (FAILURES + 1) * (failure + 1);
                fail();
                if (failure % FAILURES_BETWEEN == FAILURES_BETWEEN - 1) {
                    changeParallelism(configuration);
                }
            }
            FlightsJob.fastUntil = Flights.count();
            JobResult result = cluster.requestJobResult(job).get();
            assertTrue(result.isSuccess(), () -> "seed " + SEED + ": " + result.getSerializedThrowable());
            restored += counts().getNumberOfRestoredCheckpoints();
            assertTrue(FAILURES == 0 || restored > savepoints, "restored " + restored + " times");
            System.out.println(
                    FAILURES + " failures, restored " + restored + " times, " + savepoints
                            + " savepoints, " + FlightsJob.RESULTS.size() + " results");
        } finally {
            cluster.close();
        }
        assertEquals(List.of(), List.copyOf(FlightsJob.CONFLICTS), "seed " + SEED);
        TreeMap<String, String> expected = new Expected().results;
        TreeMap<String, String> found = new TreeMap<>(FlightsJob.RESULTS);
        for (Map.Entry<String, String> each : expected.entrySet()) {
            assertEquals(each.getValue(), found.remove(each.getKey()), "seed " + SEED + ": " + each.getKey());
        }
        assertEquals(Map.of(), found, "and there are no others");
        assertTrue(expected.size() > 10_000, expected.size() + " results");
        String[] stores = folder.resolve("local").toFile().list();
        assertEquals(0, stores.length, "stores are removed: " + String.join(", ", stores));
    }

    private void start(Configuration configuration, int parallelism, SavepointRestoreSettings from)
            throws Exception {
        StreamExecutionEnvironment env =
                StreamExecutionEnvironment.createLocalEnvironment(parallelism, configuration);
        FlightsJob.build(env);
        JobGraph graph = env.getStreamGraph().getJobGraph();
        graph.setSavepointRestoreSettings(from);
        job = graph.getJobID();
        cluster.submitJob(graph).get();
    }

    /** Stops with a savepoint, which fails if the job does at that moment, and goes on from it. */
    private void changeParallelism(Configuration configuration) throws Exception {
        SavepointFormatType format =
                random.nextBoolean() ? SavepointFormatType.NATIVE : SavepointFormatType.CANONICAL;
        String target = folder.resolve("savepoints").toUri().toString();
        String savepoint = null;
        int refused = 0;
        while (savepoint == null) {
            awaitProgress();
            try {
                savepoint = cluster.stopWithSavepoint(job, target, false, format).get();
            } catch (ExecutionException failure) {
                // It may not have been running again yet.
                assertTrue(++refused < 20, () -> "seed " + SEED + ": " + failure);
            }
        }
        assertTrue(cluster.requestJobResult(job).get().isSuccess());
        restored += counts().getNumberOfRestoredCheckpoints();
        RecoveryClaimMode mode =
                random.nextBoolean() ? RecoveryClaimMode.CLAIM : RecoveryClaimMode.NO_CLAIM;
        start(
                configuration,
                1 + random.nextInt(TASK_MANAGERS),
                SavepointRestoreSettings.forPath(savepoint, false, mode));
        savepoints++;
    }

    private CheckpointStatsCounts counts() throws Exception {
        return cluster.getArchivedExecutionGraph(job).get().getCheckpointStatsSnapshot().getCounts();
    }

    private JobStatus status() throws Exception {
        JobStatus status = cluster.getJobStatus(job).get();
        assertFalse(status.isGloballyTerminalState(), "it has ended: " + status);
        return status;
    }

    /** Waits until the job runs, and mostly until a checkpoint more is complete. */
    private void awaitProgress() throws Exception {
        while (status() != JobStatus.RUNNING) {
            Thread.sleep(5);
        }
        if (random.nextInt(4) > 0) {
            long before = counts().getNumberOfCompletedCheckpoints();
            while (counts().getNumberOfCompletedCheckpoints() == before) {
                status();
                Thread.sleep(5);
            }
        }
        Thread.sleep(random.nextInt(120));
    }

    private void fail() throws Exception {
        awaitProgress();
        int way = random.nextInt(3);
        if (way == 0) {
            FlightsJob.SOURCE_FAILS.set(true);
        } else if (way == 1) {
            FlightsJob.OPERATOR_FAILS.set(true);
        } else {
            int killed = alive.remove(random.nextInt(TASK_MANAGERS));
            cluster.terminateTaskManager(killed).get();
            cluster.startTaskManager();
            alive.add(started++);
        }
        while (FlightsJob.SOURCE_FAILS.get() || FlightsJob.OPERATOR_FAILS.get()) {
            status();
            Thread.sleep(1);
        }
    }

    /** The same results by plain loops. */
    private static final class Expected {
        private final TreeMap<String, String> results = new TreeMap<>();
        private final List<Flight> flights = new ArrayList<>();

        Expected() {
            for (int number = 0; number < Flights.count(); number++) {
                flights.add(Flights.get(number));
            }
            List<Flight> left = new ArrayList<>(flights);
            left.removeIf(flight -> !flight.hasLeft());
            FoldAggregate<Flight, ?> stats = FoldAggregates.stats(flight -> flight.delay);
            windows("stats", left, flight -> flight.carrier, FlightsJob.DAY, 1, of -> folded(stats, of));
            FoldAggregate<Flight, ?> top =
                    FoldAggregates.topK(3, flight -> (long) flight.delay, flight -> flight.tail);
            windows("top", left, flight -> flight.origin, FlightsJob.DAY, 1, of -> folded(top, of));
            windows("mean", left, flight -> flight.dest, FlightsJob.QUARTER, 2, Expected::mean);
            windows("chain", flights, flight -> flight.carrier + flight.dest, FlightsJob.QUARTER, 1, Expected::chain);
            windows("list", flights, flight -> flight.origin, FlightsJob.QUARTER, 1, Expected::list);
            sessions();
            by(flights, flight -> flight.carrier)
                    .forEach((key, of) -> results.put(FlightsJob.name("totals", key, FlightsJob.END), totals(of)));
        }

        private static TreeMap<String, List<Flight>> by(List<Flight> flights, Function<Flight, String> key) {
            TreeMap<String, List<Flight>> all = new TreeMap<>();
            for (Flight flight : flights) {
                all.computeIfAbsent(key.apply(flight), none -> new ArrayList<>()).add(flight);
            }
            return all;
        }

        /** Windows that begin each {@code slide}, and last for several of these. */
        private void windows(
                String kind,
                List<Flight> flights,
                Function<Flight, String> key,
                Duration slide,
                int slides,
                Function<List<Flight>, String> result) {
            TreeMap<String, List<Flight>> all = new TreeMap<>();
            for (Flight flight : flights) {
                for (int back = 0; back < slides; back++) {
                    long start = (flight.time / slide.toMillis() - back) * slide.toMillis();
                    String name = FlightsJob.name(kind, key.apply(flight), start);
                    all.computeIfAbsent(name, none -> new ArrayList<>()).add(flight);
                }
            }
            all.forEach((name, of) -> results.put(name, result.apply(of)));
        }

        private static <OUT> String folded(FoldAggregate<Flight, OUT> function, List<Flight> flights) {
            FoldValue value = function.createAccumulator();
            for (Flight flight : flights) {
                value = function.add(flight, value);
            }
            return FlightsJob.shown(function.getResult(value));
        }

        private static String mean(List<Flight> flights) {
            return flights.size() + " " + flights.stream().mapToDouble(flight -> flight.delay).sum();
        }

        private static String chain(List<Flight> flights) {
            long chain = flights.get(0).time;
            for (Flight flight : flights.subList(1, flights.size())) {
                chain = chain * 31 + flight.time;
            }
            Flight first = flights.get(0);
            return "(" + first.carrier + first.dest + "," + chain + "," + flights.size() + ")";
        }

        private static String list(List<Flight> flights) {
            long chain = 0;
            for (Flight flight : flights) {
                chain = chain * 31 + flight.time + flight.dest.hashCode();
            }
            return "" + chain;
        }

        private void sessions() {
            List<Flight> tailed = new ArrayList<>(flights);
            tailed.removeIf(flight -> flight.tail == null);
            by(tailed, flight -> flight.tail)
                    .forEach(
                            (tail, of) -> {
                                long[] times = of.stream().mapToLong(flight -> flight.time).sorted().toArray();
                                int begin = 0;
                                for (int at = 1; at <= times.length; at++) {
                                    // Windows that touch are one.
                                    if (at == times.length
                                            || times[at] - times[at - 1] > FlightsJob.GAP.toMillis()) {
                                        results.put(
                                                FlightsJob.name("sessions", tail, times[begin]),
                                                "" + (at - begin));
                                        begin = at;
                                    }
                                }
                            });
        }

        private static String totals(List<Flight> flights) {
            TreeMap<String, Long> dests = new TreeMap<>();
            flights.forEach(flight -> dests.merge(flight.dest, 1L, Long::sum));
            long latest = flights.stream().mapToLong(flight -> flight.time).max().getAsLong();
            FoldAggregate<Flight, ?> aircraft = FoldAggregates.hll(flight -> flight.tail);
            return flights.size() + " " + latest + " " + folded(aircraft, flights) + " " + dests;
        }
    }
}
