package org.folddb.flink.example;

import java.io.File;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.time.Instant;
import java.util.Arrays;
import java.util.List;
import org.apache.flink.api.common.eventtime.WatermarkStrategy;
import org.apache.flink.api.common.typeinfo.TypeInformation;
import org.apache.flink.api.connector.source.util.ratelimit.RateLimiterStrategy;
import org.apache.flink.configuration.CheckpointingOptions;
import org.apache.flink.configuration.Configuration;
import org.apache.flink.configuration.MemorySize;
import org.apache.flink.configuration.StateBackendOptions;
import org.apache.flink.connector.datagen.source.DataGeneratorSource;
import org.apache.flink.connector.datagen.source.GeneratorFunction;
import org.apache.flink.runtime.checkpoint.AbstractCheckpointStats;
import org.apache.flink.runtime.jobgraph.JobGraph;
import org.apache.flink.runtime.minicluster.MiniCluster;
import org.apache.flink.runtime.minicluster.MiniClusterConfiguration;
import org.apache.flink.streaming.api.datastream.DataStream;
import org.apache.flink.streaming.api.environment.StreamExecutionEnvironment;
import org.apache.flink.streaming.api.functions.windowing.ProcessWindowFunction;
import org.apache.flink.streaming.api.windowing.assigners.TumblingEventTimeWindows;
import org.apache.flink.streaming.api.windowing.windows.TimeWindow;
import org.apache.flink.util.Collector;
import org.apache.flink.util.FileUtils;
import org.folddb.flink.FoldAggregates;
import org.folddb.flink.FoldDbStateBackendFactory;

/**
 * Windows over the flights of the samples, by carrier and by airport, in a cluster within this
 * process. It prints what fires, and then the sizes of the checkpoints.
 */
public final class FlightsExample {
    private static final double FLIGHTS_PER_SECOND = 4_000;
    private static final Duration DAY = Duration.ofDays(1);

    private FlightsExample() {}

    /**
     * Runs it.
     *
     * @param args the file of the samples with flights
     * @throws Exception where the job fails
     */
    public static void main(String[] args) throws Exception {
        if (args.length != 1) {
            System.err.println("usage: FlightsExample flights.csv.gz");
            System.exit(2);
        }
        Path place = Files.createTempDirectory("flights");
        try {
            run(configuration(place.toFile()), Flight.read(Path.of(args[0])));
        } finally {
            FileUtils.deleteDirectory(place.toFile());
        }
    }

    /** What a cluster would have in its configuration. */
    private static Configuration configuration(File place) {
        Configuration configuration = new Configuration();
        configuration.set(StateBackendOptions.STATE_BACKEND, FoldDbStateBackendFactory.class.getName());
        configuration.set(CheckpointingOptions.INCREMENTAL_CHECKPOINTS, true);
        configuration.set(CheckpointingOptions.CHECKPOINTING_INTERVAL, Duration.ofMillis(250));
        configuration.set(CheckpointingOptions.CHECKPOINT_STORAGE, "filesystem");
        configuration.set(CheckpointingOptions.CHECKPOINTS_DIRECTORY, place.toURI().toString());
        configuration.set(CheckpointingOptions.FS_SMALL_FILE_THRESHOLD, MemorySize.ZERO);
        return configuration;
    }

    private static void run(Configuration configuration, List<Flight> flights) throws Exception {
        JobGraph job = job(configuration, flights);
        MiniClusterConfiguration cluster =
                new MiniClusterConfiguration.Builder()
                        .setConfiguration(configuration)
                        .setNumTaskManagers(1)
                        .setNumSlotsPerTaskManager(2)
                        .withRandomPorts()
                        .build();
        MiniCluster running = new MiniCluster(cluster);
        try {
            running.start();
            running.executeJobBlocking(job);
            System.out.println("\ncheckpoint   bytes sent   bytes of all state");
            List<AbstractCheckpointStats> last =
                    running.getArchivedExecutionGraph(job.getJobID())
                            .get()
                            .getCheckpointStatsSnapshot()
                            .getHistory()
                            .getCheckpoints();
            for (int at = last.size() - 1; at >= 0; at--) {
                AbstractCheckpointStats one = last.get(at);
                System.out.printf(
                        "%10d %12d %20d%n",
                        one.getCheckpointId(), one.getCheckpointedSize(), one.getStateSize());
            }
        } finally {
            running.close();
        }
    }

    private static JobGraph job(Configuration configuration, List<Flight> all) {
        StreamExecutionEnvironment env = StreamExecutionEnvironment.createLocalEnvironment(2, configuration);
        Flight[] flights = all.toArray(new Flight[0]);
        GeneratorFunction<Long, Flight> rows = number -> flights[number.intValue()];
        DataStream<Flight> left =
                env.fromSource(
                                new DataGeneratorSource<>(
                                        rows,
                                        flights.length,
                                        RateLimiterStrategy.perSecond(FLIGHTS_PER_SECOND),
                                        TypeInformation.of(Flight.class)),
                                // The file is in order by day only.
                                WatermarkStrategy.<Flight>forBoundedOutOfOrderness(DAY)
                                        .withTimestampAssigner((flight, before) -> flight.time),
                                "flights")
                        .setParallelism(1)
                        .filter(Flight::hasLeft);
        left.keyBy(flight -> flight.carrier)
                .window(TumblingEventTimeWindows.of(DAY))
                .aggregate(FoldAggregates.stats(flight -> flight.delay), new Shown<>("carrier"))
                .print();
        left.keyBy(flight -> flight.origin)
                .window(TumblingEventTimeWindows.of(DAY))
                .aggregate(FoldAggregates.hll(flight -> flight.tail), new Shown<>("aircraft at"))
                .print();
        left.keyBy(flight -> flight.origin)
                .window(TumblingEventTimeWindows.of(DAY))
                .aggregate(
                        FoldAggregates.topK(3, flight -> (long) flight.delay, flight -> flight.tail),
                        new Shown<>("latest at"))
                .print();
        return env.getStreamGraph().getJobGraph();
    }

    /** Shows day, key and result. */
    private static final class Shown<T> extends ProcessWindowFunction<T, String, String, TimeWindow> {
        private static final long serialVersionUID = 1L;

        private final String what;

        Shown(String what) {
            this.what = what;
        }

        @Override
        public void process(String key, Context context, Iterable<T> results, Collector<String> out) {
            String day = Instant.ofEpochMilli(context.window().getStart()).toString().substring(0, 10);
            for (T result : results) {
                String shown =
                        result instanceof Object[]
                                ? Arrays.toString((Object[]) result)
                                : result.toString();
                out.collect(day + " " + what + " " + key + ": " + shown);
            }
        }
    }
}
