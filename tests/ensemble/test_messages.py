"""What `train` and its parts refuse before anything is trained: the value, the rule and the remedy."""

import math

import numpy as np
import pytest
from lone_members import generators

from plunit.ensemble import MLP, Rows, Validation, initial, train

NETWORK = MLP((2, 3, 1))
START = initial(NETWORK, generators([0, 1]))
X, Y, WEIGHT = np.ones((9, 2)), np.full((9, 1), 0.5), np.ones(9)


def changed(array, place, value):
    """Return a copy with another number at one place."""
    copy = np.array(array)
    copy[place] = value
    return copy


def masked(array, place):
    return np.ma.masked_equal(changed(array, place, -9999), -9999)


def stream(steps):
    return np.ones((steps, 2, 5, 1)), changed(np.ones((steps, 1, 5, 1)), (9, 0, 4), math.inf)


@pytest.mark.parametrize(
    ("rows", "text"),
    [
        *((Rows(changed(X, (7, 1), bad), Y), f"inputs .*{bad} in row 7, column 1") for bad in (math.nan, -math.inf)),
        (Rows(X, changed(Y, (7, 0), math.nan)), "targets must be finite in float32, got nan in row 7; drop such rows"),
        (Rows(X, Y, changed(WEIGHT, 7, math.inf)), "weight .*inf in row 7"),
        (Rows(masked(X, (7, 1)), Y), r"inputs must not be masked, got 1 .* first at index \(7, 1\); drop"),
        (Rows(X, masked(Y, 7)), "targets must not be masked"),
        (Rows(X, Y, masked(WEIGHT, 7)), "weight must not be masked"),
        (Rows(X, Y, changed(WEIGHT, 7, -1)), r"weight must not be negative, got -1\.0 in row 7; drop such rows"),
        (Rows(X[:, :1], Y), r"inputs must be \[rows, 2\], .*; got \(9, 1\)"),
        (Rows(X[0], Y), r"inputs .*got \(2,\)"),
        (Rows(X[..., None], Y), r"inputs .*got \(9, 2, 1\)"),
        (Rows(X, Y[:8]), r"targets must be \[rows, 1\], .* the same number in inputs and targets; got \(8, 1\)"),
        (Rows(X, Y[:, 0]), r"targets .*got \(9,\)"),
        (Rows(X[:0], Y[:0]), r"inputs .*got \(0, 2\)"),
        (Rows(X, Y, np.ones(8)), r"weight must be \[9\], one for each row; got \(8,\)"),
        (Rows(X, Y, np.ones((9, 1))), r"weight .*got \(9, 1\)"),
    ],
)
def test_rows_to_train_on_and_rows_of_validation(rows, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        train(NETWORK, START, rows, steps=4)
    with pytest.raises(ValueError, match=f"^validation: {text}"):
        train(NETWORK, START, Rows(X, Y), steps=4, validation=Validation(rows.x, rows.y, rows.weight))


WRONG_SHAPES = [
    *((X[0], Y.T), (X, Y), (X.T, Y.T[:, :8]), (X.T, X.T), (np.ones((2, 9, 3)), Y.T), (X.T, np.ones((1, 9, 5)))),
    *((X.T[:, :, None, None], Y.T), (X.T[:, :0], Y.T[:, :0])),
]


@pytest.mark.parametrize(
    ("options", "text"),
    [
        *(({"data": data}, r"must be \[[12], batch\] or \[[12], batch, 2\]") for data in WRONG_SHAPES),
        *(({"data": data}, "must be Rows, a pair") for data in (None, (X,), (X, Y, X), 3, lambda n: None)),
        ({"data": lambda n: (np.ones((3, 2, 9, 2)), np.ones((3, 1, 9, 2)))}, "a first axis of 4 steps"),
        ({"data": stream, "steps": 64}, "targets must be finite in float32, got inf in point 4, step 9; drop such"),
        (
            {"data": (changed(np.ones((2, 9, 2)), (1, 7, 1), math.nan), np.ones((1, 9, 1)))},
            "got nan in point 7, unit 1, member 1",
        ),
        *(({"theta": np.zeros(shape)}, r"theta must be \[13, members\]") for shape in ((12, 2), (13,), (13, 0))),
        *(
            ({"theta": changed(changed(START, (1, 1), bad), (3, 0), bad)}, rf"finite .*{bad} at index \(1, 1\)")
            for bad in (math.nan, math.inf)
        ),
        ({"theta": START.astype("complex64")}, "theta must hold real numbers, got complex64; pass the real part"),
        ({"data": (X.T.astype("int64").astype("datetime64[D]"), Y.T)}, r"inputs .*datetime64\[D\]; subtract a date"),
        ({"data": (X.T, Y.T.astype("int64").astype("timedelta64[s]"))}, r"targets .*timedelta64\[s\]; divide it"),
        ({"theta": START.astype(np.float64), "engine": "native"}, "needs float32, got float64; use engine='numpy'"),
        ({"engine": "eager"}, "unknown engine 'eager'; choose native or numpy"),
        *(({name: bad}, f"{name} must be") for name in ("steps", "stride") for bad in (-1, True, 2**70, 1.5, "many")),
        *(({"checkpoints": bad}, "increasing steps from 0 to 4, got") for bad in ([6], [3, 1], 5, ("a",))),
        *(({"lr": bad}, r"lr must be from 0 to 3\.4e\+38, got") for bad in (-1.0, math.nan)),
        ({"lr": "fast"}, "lr must hold real numbers, got .*fast"),
        ({"lr": [0.1, 0.2, 0.3]}, r"lr must be a number or an array \[2\], got the shape \(3,\)"),
        ({"decay": -0.1}, "decay must be from 0 to"),
        ({"decay": [[0.1]]}, r"decay must be a number or an array \[2\], got the shape \(1, 1\)"),
        *(({"alpha": bad}, rf"alpha must be from 0 to 3\.4e\+38, got {bad}") for bad in (math.inf, None)),
        ({"c": -1.0}, "c must be from 0 to"),
        *(({"loss": bad}, "unknown loss .*; choose one of square, logistic, softmax") for bad in ("hinge", ["square"])),
        *(
            (
                {"data": Rows(X, changed(Y, (7, 0), bad)), "loss": loss},
                f"{loss} must be from 0 to 1, got {bad} in row 7",
            )
            for loss in ("logistic", "softmax")
            for bad in (-0.5, 1.5)
        ),
        ({"adam": "keras"}, "unknown variant of Adam 'keras'; choose one of pytorch, tensorflow"),
        ({"schedule": -1.0}, r"schedule must be from 0 to 1\.8e\+308, got -1\.0"),
        ({"schedule": [math.nan]}, r"schedule .*got nan at index \(0,\)"),
        ({"schedule": 1j}, "schedule must hold real numbers, got complex128"),
        ({"schedule": [1, 1, 1]}, r"schedule must be a number or an array \[4\], got the shape \(3,\)"),
        ({"data": Rows(X, Y, None, 3)}, "draws need one seed for each of 2 members, got 0 with batch 3"),
        *(({"data": Rows(X, Y, None, 3, [1, bad])}, f"seeds must be integers, got {bad!r}") for bad in (1.5, "3")),
        ({"validation": Validation(X, Y, np.zeros(9))}, "validation: weight must be positive in some row"),
    ],
)
def test_train(options, text):
    with pytest.raises(ValueError, match=text):
        train(NETWORK, **{"theta": START, "data": (X.T, Y.T), "steps": 4, **options})


@pytest.mark.parametrize(
    ("make", "options", "text"),
    [
        *((Rows, {"batch": bad}, "batch must be") for bad in (-1, 2**70, 1.5, "many")),
        *((Validation, {"every": bad}, "every must be") for bad in (0, 2**70, 1.5)),
        *((Validation, {"patience": bad}, f"patience must be > 0 .*got {bad}") for bad in (0, math.nan)),
        (Validation, {"tolerance": -1.0}, "tolerance >= 0, got inf and -1"),
        *((Validation, {"average": bad}, f"from 0 to 1, got {bad}") for bad in (-0.1, 1.1, math.nan)),
        (lambda x, y: initial(NETWORK, []), {}, "one generator for each member, got none; pass"),
        *((lambda x, y, widths=widths: MLP(widths), {}, "widths must be") for widths in ((3,), (1, 0, 1), (1, 2.5))),
        (lambda x, y: MLP((1, 2), "swish"), {}, "unknown activation 'swish'; choose one of tanh"),
    ],
)
def test_parts(make, options, text):
    with pytest.raises(ValueError, match=text):
        make(X, Y, **options)
