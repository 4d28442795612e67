package org.folddb.flink;

/** One of the members that {@link FoldAggregates#topK} keeps. */
public final class Ranked {
    /** The member. */
    public String member;

    /** Its largest score. */
    public long score;

    /** For serializers. */
    public Ranked() {}

    Ranked(String member, long score) {
        this.member = member;
        this.score = score;
    }

    @Override
    public String toString() {
        return member + " " + score;
    }
}
