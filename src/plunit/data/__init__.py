"""What comes from outside: tables of users, and CIFAR-10, the data set of section 5, checked before use.

A path enters `tables.read_table` (open it first) and leaves as a `Table` of finite numbers, or `read_columns`, which
keeps text and missing values. `csv_records` makes rows of fields from bytes, and `csv_table` columns; `parquet_table`
reads Parquet. `cifar10` loads the images from a folder, into which `fetch` downloads them.
"""
