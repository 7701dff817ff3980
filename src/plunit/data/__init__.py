"""Users' tables, checked before use.

Start with `tables`: `read_table` turns a path into a `Table` of finite numbers; `read_columns` keeps text and missing
values, which `encoding` turns into numbers. `csv_records` splits bytes into rows of fields, `csv_table` turns them into
columns, and `parquet_table` reads Parquet.
"""
