import numpy as np
import pytest


@pytest.fixture(scope="session")
def tables(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(0)
    x = np.sort(rng.uniform(0, 10, 300))
    y = np.abs(x - 3) - 0.7 * np.maximum(0, x - 7) + rng.normal(0, 0.05, 300)
    np.savetxt(folder / "one.csv", np.column_stack([x, y]), delimiter=",", header="x,y", comments="")
    u = rng.uniform(-1, 1, (300, 3))
    rows = np.column_stack([u, u[:, 0] * u[:, 1] + u[:, 2]])
    np.savetxt(folder / "three.csv", rows, delimiter=",", header="a,b,c,z", comments="")
    (folder / "esc.csv").write_text("\x1b[31mx,y\n" + "".join(f"{n},{n * n}\n" for n in range(12)))
    temp, colour, sex = rng.normal(20, 5, 300), rng.choice(["red", "blue", "green"], 300), rng.choice(["m", "f"], 300)
    city = np.where(rng.random(300) < 0.01, "once upon a time", [f"c{int(n)}" for n in rng.exponential(9, 300)])
    price = temp * (1 + (colour == "red")) + 5 * (sex == "m") + rng.normal(0, 0.1, 300)
    colour, gone = np.where(rng.random(300) < 0.1, "", colour), rng.random(300) < 0.1
    temps = ["NA" if is_gone else f"{number:.2f}" for is_gone, number in zip(gone, temp, strict=True)]
    lines = [",".join(map(str, row)) for row in zip(temps, colour, sex, city, price, strict=True)]
    (folder / "mixed.csv").write_text("\n".join(["temp,colour,sex,city,price", *lines]))
    (folder / "few.csv").write_text("x,y\n" + "".join(f"{n % 4},{n}\n" for n in range(12)))
    gaps = "".join(f"{n if n % 3 else ''},{n % 5},{n}\n" for n in range(12))
    (folder / "twice.csv").write_text("a,a is missing,y\n" + gaps)
    names = ["other"] * 9 + [f"c{n}" for n in range(24)] * 2
    (folder / "other.csv").write_text("c,y\n" + "".join(f"{name},{n}\n" for n, name in enumerate(names)))
    return folder
