"""Rows with text and missing values as numbers, by transformers of scikit-learn."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

VALUES = 20
"""The most indicator columns of a column of text."""

OTHER = {"infrequent_sklearn": "other", None: "missing"}
"""The names of what scikit-learn calls rare values, and of a text that is missing."""


def column_encoder(numbers: Sequence[int], texts: Sequence[int]) -> Any:
    """Return the transformer of rows with numbers and texts in these columns: fill and flag, and one-hot encode."""
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
