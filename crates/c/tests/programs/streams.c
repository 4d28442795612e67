/* Large values, piece by piece. */
#include "check.h"

int main(int argc, char **argv) {
    CHECK(argc == 2);
    char *err = NULL;
    folddb_options *options = folddb_options_create(&err);
    CHECK(folddb_options_set(options, "stream_piece_bytes", "4096", &err));
    folddb_store *store = folddb_create(in(argv[1], "s.folddb"), options, &err);
    folddb_options_destroy(options);
    folddb_table *table = folddb_table_create(store, "t", "blob", &err);
    OK(err);
    char piece[1000];
    folddb_writer *writer = folddb_writer_create(table, FOLDDB_STREAM_OP_PUT, S("k"), &err);
    OK(err);
    for (int i = 0; i < 50; i++) {
        memset(piece, 'a' + i % 26, sizeof piece);
        CHECK(folddb_writer_write(writer, piece, sizeof piece, &err));
    }
    CHECK(!folddb_contains(table, S("k"), &err) && folddb_writer_finish(writer, &err));
    OK(err);
    CHECK(!folddb_writer_write(writer, piece, 1, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "finished");
    folddb_writer_destroy(writer);

    folddb_reader *reader = folddb_reader_create(table, S("k"), &err);
    OK(err);
    CHECK(folddb_reader_len(reader, &err) == 50000);
    size_t read = 0, all = 0;
    while ((read = folddb_reader_read(reader, piece, 777, &err)) > 0) {
        CHECK(piece[0] == (char)('a' + all / 1000 % 26));
        all += read;
    }
    OK(err);
    CHECK(all == 50000);
    CHECK(folddb_reader_seek(reader, 49999, &err) && folddb_reader_read(reader, piece, 777, &err) == 1);
    CHECK(piece[0] == 'a' + 49 % 26);
    CHECK(!folddb_reader_read(reader, NULL, 777, &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "the buffer is NULL");
    folddb_reader_destroy(reader);
    CHECK(!folddb_reader_create(table, S("nobody"), &err));
    OK(err);

    /* one that is not finished was not written */
    writer = folddb_writer_create(table, FOLDDB_STREAM_OP_PUT_IF_ABSENT, S("l"), &err);
    CHECK(folddb_writer_write(writer, piece, sizeof piece, &err));
    folddb_writer_destroy(writer);
    CHECK(!folddb_contains(table, S("l"), &err));
    CHECK(!folddb_writer_create(table, 9, S("l"), &err));
    FAILED(err, FOLDDB_ERROR_INVALID_INPUT, "not one of folddb_stream_op");
    folddb_table_destroy(table);
    CHECK(folddb_close(store, &err));
    OK(err);
    return 0;
}
