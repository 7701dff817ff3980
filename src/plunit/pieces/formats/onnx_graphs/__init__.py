"""ONNX models as networks: a graph becomes the layers of a `Network`, or is refused if it is not piecewise linear.

Open `follower.py` first: it follows the graph node by node. `operators.py` is the table of what each operator does to
the functions of units (`waves.py`) and to whole tensors; `lowering.py` rewrites pools and operators of scikit-learn as
such operators. `plunit.pieces.graphs` turns the tensors into layers, and `comparing.py` compares each step with onnx's
reference implementation.
"""
