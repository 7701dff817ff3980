"""Tables of users, checked before use.

A path enters `tables.read_table` (open it first) and leaves as a `Table` of finite numbers, or `read_columns`, which
keeps text and missing values for `encoding` to turn into numbers. `csv_records` makes rows of fields from bytes, and
`csv_table` columns; `parquet_table` reads Parquet.
"""
