"""Encoding of rows with text and missing values as numbers, by scikit-learn's transformers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

VALUES = 20
"""The maximum number of indicator columns of a text column."""

OTHER = {"infrequent_sklearn": "other", None: "missing"}
"""The names of scikit-learn's infrequent values, and of missing text."""


def column_encoder(numbers: Sequence[int], texts: Sequence[int]) -> Any:
    """Return a transformer that fills and flags missing numbers, and one-hot encodes text, in these columns."""
    from sklearn.compose import ColumnTransformer
    from sklearn.impute import SimpleImputer
    from sklearn.preprocessing import OneHotEncoder

    fill = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    indicate = OneHotEncoder(
        drop="if_binary",
        max_categories=VALUES,
        handle_unknown="infrequent_if_exist",
        sparse_output=False,
        feature_name_combiner=_indicator,
    )
    return ColumnTransformer([("numbers", fill, numbers), ("texts", indicate, texts)])


def _indicator(column: str, value: str | None) -> str:
    return f"{column} is {OTHER.get(value, value)}"
