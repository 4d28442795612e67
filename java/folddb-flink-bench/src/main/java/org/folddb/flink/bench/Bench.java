package org.folddb.flink.bench;

import java.nio.file.Path;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Set;

/** The command: a contest, one run of it in this process, or the table of earlier results. */
public final class Bench {
    private static final String USAGE =
            """
            bench [contest] [--workloads A,B] [--backends A,B] [--keys 1M,10K] [--per-key 1,5,50]
                  [--windows 2] [--rounds 3] [--memory-mb 64] [--heap 2g] [--checkpoints 5]
                  [--warm-up 200K] [--jvm "MORE OPTIONS"] [--out results.jsonl] [--dir DIRECTORY]
                  [--cluster SLOTS [--checkpoint-ms 1000]]
            bench table FILE...

            workloads: window-reduce window-aggregate window-list value-rmw map-join sessions
            backends: folddb folddb-native rocksdb rocksdb-heap-timers rocksdb-tuned forst heap""";

    /** What a run is told by the contest. */
    private static final Set<String> RUN =
            Set.of(
                    "workload", "backend", "keys", "per-key", "windows", "memory-mb", "checkpoints",
                    "warm-up", "cluster", "checkpoint-ms", "dir");

    private Bench() {}

    /**
     * Runs the command.
     *
     * @param words its arguments
     * @throws Exception if anything fails, or results differ
     */
    public static void main(String[] words) throws Exception {
        String command = words.length > 0 && !words[0].startsWith("-") ? words[0] : "contest";
        List<String> rest = Arrays.asList(words);
        rest = rest.subList(rest.isEmpty() || rest.get(0).startsWith("-") ? 0 : 1, rest.size());
        switch (command) {
            case "contest" -> {
                if (rest.contains("--help")) {
                    System.out.println(USAGE);
                } else {
                    new Contest(new Arguments(rest, Contest.KNOWN)).run();
                }
            }
            case "run" -> System.out.println(Json.line(run(new Arguments(rest, RUN))));
            case "table" -> {
                for (String file : rest) {
                    System.out.print(Table.of(Json.lines(Path.of(file))));
                }
            }
            default -> throw new IllegalArgumentException(USAGE);
        }
        System.exit(0); // threads of the harness must not hold the process
    }

    /** Warms up with a short load of the same kind, then measures. */
    private static Map<String, Object> run(Arguments arguments) throws Exception {
        Load load =
                new Load(
                        Workload.named(arguments.text("workload", "window-reduce")),
                        arguments.number("keys", 100_000),
                        arguments.number("per-key", 5),
                        arguments.number("windows", 2));
        Backend backend = Backend.named(arguments.text("backend", "folddb"));
        long memory = arguments.number("memory-mb", 64) << 20;
        Path directory = Path.of(arguments.text("dir", "."));
        long warmUp = arguments.number("warm-up", 200_000);
        if (arguments.number("cluster", 0) > 0) {
            return runInCluster(arguments, load, backend, memory, warmUp, directory);
        }
        if (warmUp > 0) {
            new Measurement(load.shortened(warmUp), backend, memory, 2, directory.resolve("warm-up")).run();
        }
        System.gc();
        int checkpoints = (int) arguments.number("checkpoints", 5);
        return new Measurement(load, backend, memory, checkpoints, directory.resolve("run")).run();
    }

    /** The same in a cluster. */
    private static Map<String, Object> runInCluster(
            Arguments arguments, Load load, Backend backend, long memory, long warmUp, Path directory)
            throws Exception {
        int slots = (int) arguments.number("cluster", 2);
        long interval = arguments.number("checkpoint-ms", 1000);
        if (warmUp > 0) {
            Path place = directory.resolve("warm-up");
            new ClusterRun(load.shortened(warmUp), backend, memory, slots, interval, place).run();
        }
        System.gc();
        return new ClusterRun(load, backend, memory, slots, interval, directory.resolve("run")).run();
    }
}
