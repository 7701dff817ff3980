"""What `train` and its parts refuse before anything is trained: the value, the rule and the remedy."""

import math

import numpy as np
import pytest
from lone_members import generators

from plunit.ensemble import MLP, Rows, Validation, initial, train

NETWORK = MLP((2, 3, 1))
START = initial(NETWORK, generators([0, 1]))
X, Y, WEIGHT = np.ones((9, 2)), np.full((9, 1), 0.5), np.ones(9)
BATCH = X.T, Y.T


def call(data=BATCH, theta=START, network=NETWORK, **options):
    train(network, theta, data, **{"steps": 4, **options})


def changed(array, place, value, dtype=None):
    """Return a copy with another number at one place."""
    copy = np.array(array, dtype=dtype)
    copy[place] = value
    return copy


def masked(array, place):
    return np.ma.masked_equal(changed(array, place, -9999), -9999)


def stream(steps):
    return np.ones((steps, 2, 5, 1)), changed(np.ones((steps, 1, 5, 1)), (9, 0, 4), math.inf)


MASKED = "must not be masked, got 1 masked numbers, the first at index"
WRONG_ROWS = [
    (
        Rows(changed(X, (7, 1), bad), Y),
        rf"inputs must be finite in float32, got {bad} in row 7, column 1; drop such rows",
    )
    for bad in (math.nan, math.inf, -math.inf)
] + [
    (Rows(X, changed(Y, (7, 0), math.nan)), "targets must be finite in float32, got nan in row 7; drop such rows"),
    (Rows(X, Y, changed(WEIGHT, 7, math.inf)), "weight must be finite in float32, got inf in row 7; drop such rows"),
    (Rows(masked(X, (7, 1)), Y), rf"inputs {MASKED} \(7, 1\); drop"),
    (Rows(X, masked(Y, 7)), rf"targets {MASKED} \(7, 0\); drop"),
    (
        Rows(X, Y, masked(WEIGHT, 7)),
        rf"weight {MASKED} \(7,\); drop",
    ),
    (Rows(X, Y, changed(WEIGHT, 7, -1)), r"weight must not be negative, got -1\.0 in row 7; drop such rows"),
    (Rows(X[:, :1], Y), r"inputs must be \[rows, 2\], .*; got \(9, 1\)"),
    (Rows(X[0], Y), r"inputs must be \[rows, 2\], .*; got \(2,\)"),
    (Rows(X, Y[:8]), r"targets must be \[rows, 1\], .* as many in inputs and targets; got \(8, 1\)"),
    (Rows(X, Y[:, 0]), r"targets must be \[rows, 1\], .*; got \(9,\)"),
    (Rows(X[:0], Y[:0]), r"inputs must be \[rows, 2\], one row or more, .*; got \(0, 2\)"),
    (Rows(X, Y, np.ones(8)), r"weight must be \[9\], one for each row; got \(8,\)"),
    (Rows(X, Y, np.ones((9, 1))), r"weight must be \[9\], one for each row; got \(9, 1\)"),
]


@pytest.mark.parametrize(("rows", "text"), WRONG_ROWS)
def test_rows_to_train_on_and_rows_of_validation(engine, rows, text):
    with pytest.raises(ValueError, match=f"^{text}"):
        call(rows, engine=engine)
    looks = Validation(rows.x, rows.y, rows.weight)
    with pytest.raises(ValueError, match=f"^validation: {text}"):
        call(Rows(X, Y), validation=looks, engine=engine)


@pytest.mark.parametrize("loss", ["logistic", "softmax"])
@pytest.mark.parametrize("bad", [-0.5, 1.5])
def test_targets_that_are_no_probabilities(loss, bad):
    rows = Rows(X, changed(Y, (7, 0), bad))
    with pytest.raises(ValueError, match=f"targets of the loss {loss} must be from 0 to 1, got {bad} in row 7; scale"):
        call(rows, loss=loss)


SHAPES = r"(inputs|targets) must be \[[12], batch\] or \[[12], batch, 2\]"
PAIR = r"data must be Rows, a pair \(inputs, targets\) or a function of such, got"
COUNT = "must be (an integer of at least|at most)"
CHECKPOINTS = "checkpoints must be increasing steps from 0 to 4, got"


@pytest.mark.parametrize(
    ("options", "text"),
    [
        *(
            ({"data": data}, SHAPES)
            for data in (
                (X[0], Y.T),
                (X, Y),
                (X.T, Y.T[:, :8]),
                (X.T, X.T),
                (np.ones((2, 9, 3)), Y.T),
                (X.T, np.ones((1, 9, 5))),
                (X.T[:, :, None, None], Y.T),
                (X.T[:, :0], Y.T[:, :0]),
            )
        ),
        *(({"data": data}, PAIR) for data in (None, (X,), (X, Y, X), 3, lambda n: None)),
        ({"data": lambda n: (np.ones((3, 2, 9, 2)), np.ones((3, 1, 9, 2)))}, "a first axis of 4 steps"),
        ({"data": stream, "steps": 64}, "targets must be finite in float32, got inf in point 4, step 9; drop such"),
        (
            {"data": (changed(np.ones((2, 9, 2)), (1, 7, 1), math.nan), np.ones((1, 9, 1)))},
            "inputs must be finite in float32, got nan in point 7, unit 1, member 1",
        ),
        *(({"theta": np.zeros(shape)}, r"theta must be \[13, members\]") for shape in ((12, 2), (13,), (13, 0))),
        *(
            (
                {"theta": changed(changed(START, (1, 1), bad), (3, 0), bad)},
                rf"theta must be finite in some member, got {bad} at index \(1, 1\)",
            )
            for bad in (math.nan, math.inf)
        ),
        ({"theta": START.astype("complex64")}, "theta must hold real numbers, got complex64; pass the real part"),
        (
            {"data": (X.T.astype("int64").astype("datetime64[D]"), Y.T)},
            r"inputs must hold real numbers, got datetime64\[D\]; subtract a date and divide by a unit",
        ),
        (
            {"data": (X.T, Y.T.astype("int64").astype("timedelta64[s]"))},
            r"targets must hold real numbers, got timedelta64\[s\]; divide it by a unit",
        ),
        ({"theta": START.astype(np.float64), "engine": "native"}, "takes float32, got float64; take engine='numpy'"),
        ({"engine": "eager"}, "unknown engine 'eager'; choose native or numpy"),
        *(({name: bad}, f"{name} {COUNT}") for name in ("steps", "stride") for bad in (-1, True, 2**70, 1.5, "many")),
        *(({"checkpoints": bad}, CHECKPOINTS) for bad in ([6], [3, 1], 5, ("a",))),
        ({"lr": -1.0}, "lr must be finite and not negative, got"),
        ({"lr": math.nan}, "lr must be finite"),
        ({"lr": "fast"}, "lr must hold real numbers, got .*fast"),
        ({"lr": [0.1, 0.2, 0.3]}, r"lr must be a number or \[2\], got \(3,\)"),
        ({"decay": -0.1}, "decay must be finite and not negative"),
        ({"decay": [[0.1]]}, r"decay must be a number or \[2\], got \(1, 1\)"),
        ({"alpha": math.inf}, "alpha must be finite"),
        ({"alpha": None}, "alpha must be finite and not negative, got None"),
        ({"c": -1.0}, "c must be finite and not negative"),
        ({"loss": ["square"]}, r"unknown loss \['square'\]; choose one of square"),
        ({"loss": "hinge"}, "unknown loss 'hinge'; choose one of square, logistic, softmax"),
        ({"schedule": -1.0}, r"schedule must be finite and not negative, got -1\.0"),
        ({"schedule": [math.nan]}, r"schedule must be finite and not negative, got nan at index \(0,\)"),
        ({"schedule": 1j}, "schedule must hold real numbers, got complex128; pass the real part"),
        ({"schedule": [1, 1, 1]}, r"schedule must be a number or \[4\], got \(3,\)"),
        ({"data": Rows(X, Y, None, 3)}, "draws need one seed for each of 2 members, got 0 with batch 3"),
        ({"data": Rows(X, Y, None, 3, [1])}, "got 1 with batch 3"),
        ({"data": Rows(X, Y, None, 3, [1, 1.5])}, r"seeds must be integers, got 1\.5; pass range"),
        ({"data": Rows(X, Y, None, 3, [1, "3"])}, "seeds must be integers, got '3'; pass range"),
        (
            {"validation": Validation(X, Y, np.zeros(9))},
            "^validation: weight must be above 0 in some row, got 0 in all; leave",
        ),
    ],
)
def test_train(options, text):
    with pytest.raises(ValueError, match=text):
        call(**options)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        *((lambda bad=bad: Rows(X, Y, batch=bad), f"batch {COUNT}") for bad in (-1, 2**70, 1.5, "many")),
        *((lambda bad=bad: Validation(X, Y, every=bad), f"every {COUNT}") for bad in (0, 2**70, 1.5)),
        (lambda: Validation(X, Y, patience=0), "need patience > 0 and tolerance >= 0; got 0 and"),
        (lambda: Validation(X, Y, patience=math.nan), "need patience > 0 and tolerance >= 0; got nan and"),
        (lambda: Validation(X, Y, tolerance=-1.0), "need patience > 0 and tolerance >= 0; got inf and -1"),
        *(
            (lambda bad=bad: Validation(X, Y, average=bad), f"average must be .* from 0 to 1, got {bad}")
            for bad in (-0.1, 1.1, math.nan)
        ),
        (lambda: initial(NETWORK, []), "one generator for each member, got none; pass"),
    ],
)
def test_parts(make, text):
    with pytest.raises(ValueError, match=text):
        make()
