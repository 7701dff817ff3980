"""Tables of users, checked before use.

A path enters `tables.read_table` (open it first) and leaves as a `Table` of finite numbers, or `read_columns` and
leaves as a `RawTable` of columns as they are, which `encoding` turns into numbers; `csv_table` and `parquet_table` read
the bytes.
"""
